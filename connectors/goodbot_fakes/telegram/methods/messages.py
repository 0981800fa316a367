# SPDX-License-Identifier: Apache-2.0
"""Sending, editing, deleting, and answering presses."""

from __future__ import annotations

from typing import Any, cast

from goodbot_fakes.telegram import keyboards, reactions, texts
from goodbot_fakes.telegram.account import BotAccount, MessageDraft, Toast
from goodbot_fakes.telegram.chats import Chat, Message, as_reply
from goodbot_fakes.telegram.errors import NOT_MODIFIED, OLD_QUERY, Json, bad_request

QUERY_SECONDS = 300.0
"""How long a press waits for its answer. Telegram names no figure; it is minutes."""
DRAFT_SECONDS = 30.0
"""core.telegram.org/bots/api#sendmessagedraft."""
_TOAST_LIMIT = 200
_DELETABLE_SECONDS = 48 * 3600


def send_message(
    account: BotAccount,
    *,
    chat_id: int | str = 0,
    text: str = "",
    entities: list[Any] | None = None,
    parse_mode: str = "",
    message_thread_id: int = 0,
    reply_parameters: Json | None = None,
    reply_markup: Json | None = None,
    link_preview_options: Json | None = None,
    disable_notification: bool = False,
    protect_content: bool = False,
) -> Json:
    """sendMessage; text with entities only, no `parse_mode`."""
    chat = account.chat(chat_id)
    text, marked = _text(text, entities, parse_mode)
    markup = keyboards.checked(reply_markup)
    replied = _replied(chat, reply_parameters or {})
    thread = _thread(chat, message_thread_id)
    account.flood.admit(chat.id, group=not chat.private)
    fields: Json = {"text": text}
    fields |= {"entities": marked} if marked else {}
    fields |= {"reply_markup": shown} if (shown := keyboards.shown(markup)) else {}
    fields |= {"link_preview_options": link_preview_options} if link_preview_options else {}
    fields |= {"has_protected_content": True} if protect_content else {}
    fields |= {"reply_to_message": as_reply(replied.json)} if replied else {}
    message = account.post(chat, account.user, thread=thread, **fields)
    message.force_reply, message.silent = bool(markup.get("force_reply")), disable_notification
    account.seen.drafts.pop(chat.id, None)
    return message.json


def send_message_draft(
    account: BotAccount,
    *,
    chat_id: int = 0,
    draft_id: int = 0,
    text: str = "",
    message_thread_id: int = 0,
    parse_mode: str = "",
    entities: list[Any] | None = None,
) -> bool:
    """sendMessageDraft: what is being written, in private chats."""
    chat = account.chat(chat_id)
    if not chat.private:
        raise bad_request("method is available only in private chats")
    if not draft_id:
        raise bad_request("draft_id must be non-zero")
    shown = _text(text, entities, parse_mode)[0] if text.strip() else ""
    until = account.clock.monotonic() + DRAFT_SECONDS
    account.seen.drafts[chat.id] = MessageDraft(text=shown, until=until)
    return True


def edit_message_text(
    account: BotAccount,
    *,
    chat_id: int | str = 0,
    message_id: int = 0,
    text: str = "",
    entities: list[Any] | None = None,
    parse_mode: str = "",
    reply_markup: Json | None = None,
    link_preview_options: Json | None = None,
) -> Json:
    """editMessageText. Without a keyboard, the one that was there goes."""
    chat, message = account.own(chat_id, message_id, "edit")
    text, marked = _text(text, entities, parse_mode)
    fields: Json = {"text": text}
    fields |= {"entities": marked} if marked else {}
    fields |= {"link_preview_options": link_preview_options} if link_preview_options else {}
    return _edit(account, chat, message, fields, reply_markup)


def edit_message_reply_markup(
    account: BotAccount, *, chat_id: int | str = 0, message_id: int = 0, reply_markup: Json | None = None
) -> Json:
    """editMessageReplyMarkup."""
    chat, message = account.own(chat_id, message_id, "edit")
    kept = ("text", "entities", "link_preview_options")
    fields = {name: message.json[name] for name in kept if name in message.json}
    edited = message.json.get("edit_date")
    _edit(account, chat, message, fields, reply_markup)
    del message.json["edit_date"]  # to people it is no edit
    message.json |= {"edit_date": edited} if edited else {}
    return message.json


def delete_message(account: BotAccount, *, chat_id: int | str = 0, message_id: int = 0) -> bool:
    """deleteMessage: the bot's own, or as administrator anybody's, within 48 hours."""
    chat = account.chat(chat_id)
    message = chat.message(message_id, "delete")
    old = account.seconds() - message.json["date"] > _DELETABLE_SECONDS
    mine = message.author == account.id or chat.private or account.is_admin(chat)
    if old or not mine:
        raise bad_request("message can't be deleted for everyone")
    del chat.messages[message.id]
    return True


def delete_messages(
    account: BotAccount, *, chat_id: int | str = 0, message_ids: list[Any] | None = None
) -> bool:
    """deleteMessages: those that are not there are skipped."""
    chat = account.chat(chat_id)
    for message_id in message_ids or []:
        if message_id in chat.messages:
            delete_message(account, chat_id=chat_id, message_id=message_id)
    return True


def send_chat_action(
    account: BotAccount, *, chat_id: int | str = 0, action: str = "", message_thread_id: int = 0
) -> bool:
    """sendChatAction."""
    chat = account.chat(chat_id)
    if action not in _ACTIONS:
        raise bad_request("wrong parameter action in request")
    _thread(chat, message_thread_id)
    account.seen.actions.append((chat.id, action))
    return True


def set_message_reaction(
    account: BotAccount,
    *,
    chat_id: int | str = 0,
    message_id: int = 0,
    reaction: list[Any] | None = None,
    is_big: bool = False,
) -> bool:
    """setMessageReaction: the bot's own; without one it is taken away."""
    chat = account.chat(chat_id)
    message = chat.message(message_id, "react")
    chosen = reactions.chosen(reaction or [])
    allowed = {str(one) for put in message.reactions.values() for one in put}
    if any(one["type"] == "custom_emoji" and str(one) not in allowed for one in chosen):
        raise bad_request("REACTION_INVALID")
    message.reactions[account.id] = chosen
    return True


def answer_callback_query(
    account: BotAccount,
    *,
    callback_query_id: str = "",
    text: str = "",
    show_alert: bool = False,
    url: str = "",
    cache_time: int = 0,
) -> bool:
    """answerCallbackQuery: once for each press, within minutes."""
    user, at = account.queries.get(callback_query_id, (0, 0.0))
    if not user or account.clock.monotonic() - at > QUERY_SECONDS:
        raise bad_request(OLD_QUERY)
    if len(text) > _TOAST_LIMIT:
        raise bad_request("MESSAGE_TOO_LONG")
    del account.queries[callback_query_id]
    account.seen.toasts.append(Toast(user=user, text=text, alert=show_alert))
    return True


METHODS = (
    send_message,
    send_message_draft,
    edit_message_text,
    edit_message_reply_markup,
    delete_message,
    delete_messages,
    send_chat_action,
    set_message_reaction,
    answer_callback_query,
)
_ACTIONS = (
    "typing",
    "upload_photo",
    "record_video",
    "upload_video",
    "record_voice",
    "upload_voice",
    "upload_document",
    "choose_sticker",
    "find_location",
    "record_video_note",
    "upload_video_note",
)


def _text(text: str, entities: list[Any] | None, parse_mode: str) -> tuple[str, list[Json]]:
    if parse_mode:
        raise bad_request("unsupported parse_mode")
    return texts.formatted(text, entities or [])


def _replied(chat: Chat, parameters: Json) -> Message | None:
    wanted = parameters.get("message_id")
    if wanted is None:
        return None
    found = chat.messages.get(cast("int", wanted))
    if found is None and not parameters.get("allow_sending_without_reply"):
        raise bad_request("message to be replied not found")
    return found


def _thread(chat: Chat, thread: int) -> int:
    """A forum's General topic has the id 1, which is never given."""
    if thread and thread not in chat.topics:
        raise bad_request("message thread not found")
    return thread


def _edit(account: BotAccount, chat: Chat, message: Message, fields: Json, markup: Json | None) -> Json:
    if shown := keyboards.shown(keyboards.checked(markup)):
        fields = fields | {"reply_markup": shown}
    changeable = ("text", "entities", "link_preview_options", "reply_markup")
    compared = ("text", "entities", "reply_markup")
    if all(message.json.get(name) == fields.get(name) for name in compared):
        raise bad_request(NOT_MODIFIED)
    account.flood.admit(chat.id, group=not chat.private)
    kept = {name: value for name, value in message.json.items() if name not in changeable}
    message.json = kept | fields | {"edit_date": account.seconds()}
    return message.json
