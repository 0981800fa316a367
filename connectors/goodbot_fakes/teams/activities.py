# SPDX-License-Identifier: Apache-2.0
"""What Teams tells a bot, as Activities: one function a kind. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from goodbot_fakes.teams.tenant import Account, Message, Tenant, TenantConversation

Json = dict[str, Any]


def _base(
    tenant: Tenant,
    service_url: str,
    conversation: TenantConversation,
    author: Account,
    type_: str,
    id_: str,
    thread: str = "",
) -> Json:
    when = datetime.fromtimestamp(tenant.now() / 1000, UTC)
    stamp = when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    place: Json = {
        "conversationType": conversation.kind,
        "tenantId": tenant.id,
        "id": f"{conversation.id};messageid={thread}" if thread else conversation.id,
    }
    if conversation.kind != "personal":
        place |= {"isGroup": True} | ({"name": conversation.name} if conversation.name else {})
    data: Json = {"tenant": {"id": tenant.id}}
    if conversation.kind == "channel":
        data |= {
            "teamsChannelId": conversation.id,
            "teamsTeamId": conversation.team,
            "channel": {"id": conversation.id},
            "team": {"id": conversation.team},
        }
    return {
        "type": type_,
        "id": id_,
        "timestamp": stamp,
        "localTimestamp": stamp,
        "channelId": "msteams",
        "serviceUrl": service_url,
        "from": author.shape,
        "conversation": place,
        "recipient": {"id": tenant.bot.id, "name": tenant.bot.name},
        "channelData": data,
    }


def _client() -> Json:
    return {
        "type": "clientInfo",
        "locale": "en-US",
        "country": "US",
        "platform": "Web",
        "timezone": "Europe/Berlin",
    }


def message(
    tenant: Tenant, service_url: str, told: Message, *, type_: str = "message", event: str = ""
) -> Json:
    """What somebody wrote, or how it reads after an edit (`messageUpdate`, `editMessage`)."""
    activity = _base(tenant, service_url, told.conversation, told.author, type_, told.id, told.thread)
    activity["channelData"] |= {"eventType": event} if event else {}
    entities = told.activity.get("entities", [])
    return activity | {
        **told.activity,
        "textFormat": "plain",
        "locale": "en-US",
        "localTimezone": "Europe/Berlin",
        "entities": [*entities, _client()],
    }


def written(
    text: str, *, mentioned: Account | None = None, quoted: Message | None = None, files: Sequence[Json] = ()
) -> Json:
    """The contents of a message as the client composes it: with an HTML copy of its text."""
    html, entities = escape(text).replace("\n", "<br>"), list[Json]()
    if mentioned is not None:
        name = escape(mentioned.name)
        at = f"<at>{name}</at>"
        text = f"{at} {text}"
        html = f'<span itemtype="http://schema.skype.com/Mention">{name}</span> {html}'
        who = {"id": mentioned.id, "name": mentioned.name}
        entities.append({"type": "mention", "mentioned": who, "text": at})
    if quoted is not None:
        text = f'<quoted messageId="{quoted.id}"/> {text}'
        itself = f'itemscope itemtype="http://schema.skype.com/Reply" itemid="{quoted.id}"'
        html = f"<blockquote {itself}>{escape(quoted.text[:60])}</blockquote>{html}"
        what = {
            "messageId": quoted.id,
            "senderId": quoted.author.id,
            "preview": quoted.text[:60],
            "isReplyDeleted": False,
            "validatedMessageReference": True,
        }
        entities.append({"type": "quotedReply", "quotedReply": what})
    copy = {"contentType": "text/html", "content": f"<p>{html}</p>"}
    return {"text": text, "entities": entities, "attachments": [*files, copy]}


def file(name: str) -> Json:
    """An attachment: `image` is a picture from the clipboard. There is nothing to download."""
    if name == "image":
        address = "https://smba.example/views/original"
        return {"contentType": "image/*", "contentUrl": address}
    where = f"https://contoso.sharepoint.example/{name}"
    content = {"downloadUrl": where, "uniqueId": "1150D938", "fileType": name.rpartition(".")[2]}
    return {
        "contentType": "application/vnd.microsoft.teams.file.download.info",
        "contentUrl": where,
        "name": name,
        "content": content,
    }


def reaction(
    tenant: Tenant,
    service_url: str,
    told: Message,
    author: Account,
    *,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
) -> Json:
    """Somebody added reactions to a message, or took some away."""
    activity = _base(
        tenant, service_url, told.conversation, author, "messageReaction", f"f:{tenant.now():x}", told.thread
    )
    activity["replyToId"] = told.id
    if added:
        activity["reactionsAdded"] = [{"type": name} for name in added]
    if removed:
        activity["reactionsRemoved"] = [{"type": name} for name in removed]
    return activity


def invoke(tenant: Tenant, service_url: str, told: Message, author: Account, name: str, value: Json) -> Json:
    """Somebody pressed something that waits for an answer."""
    activity = _base(
        tenant, service_url, told.conversation, author, "invoke", f"f:{tenant.now():x}", told.thread
    )
    activity["channelData"] |= {"source": {"name": "message"}}
    return activity | {
        "name": name,
        "value": value,
        "replyToId": told.id,
        "locale": "en-US",
        "localTimezone": "Europe/Berlin",
        "entities": [_client()],
    }


def submit(tenant: Tenant, service_url: str, told: Message, author: Account, value: Json) -> Json:
    """Somebody pressed an `Action.Submit` of a card: a message without a text."""
    activity = _base(
        tenant, service_url, told.conversation, author, "message", f"f:{tenant.now():x}", told.thread
    )
    activity["channelData"] |= {"source": {"name": "message"}, "legacy": {"replyToId": told.id}}
    return activity | {
        "value": value,
        "replyToId": told.id,
        "locale": "en-US",
        "localTimezone": "Europe/Berlin",
        "entities": [_client()],
    }


def members_added(
    tenant: Tenant,
    service_url: str,
    conversation: TenantConversation,
    author: Account,
    added: Sequence[Account],
) -> Json:
    """People, or the bot itself, came into a conversation."""
    activity = _base(tenant, service_url, conversation, author, "conversationUpdate", f"f:{tenant.now():x}")
    return activity | {"membersAdded": [account.shape for account in added]}


def installation(
    tenant: Tenant, service_url: str, conversation: TenantConversation, author: Account, action: str
) -> Json:
    """The app was installed (`add`) or taken away (`remove`)."""
    activity = _base(tenant, service_url, conversation, author, "installationUpdate", f"f:{tenant.now():x}")
    return activity | {"action": action}
