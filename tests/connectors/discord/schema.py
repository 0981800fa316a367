# SPDX-License-Identifier: Apache-2.0
"""Discord's own OpenAPI document: what a fake Discord was sent, and what it said, is held to it.

The document lies beside the project. Of the gateway it has no events, but the objects in them.
"""

from __future__ import annotations

import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
from goodbot_fakes.discord import ApiCall, FakeDiscord
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from tests.support import missing

Json = dict[str, Any]
PATH = Path(__file__).parents[3].parent / "shared" / "specs" / "discord-openapi-v10.json"
_ROOT = "urn:discord"
_CHANNELS = {
    0: "GuildChannelResponse",
    1: "PrivateChannelResponse",
    11: "ThreadResponse",
    15: "GuildChannelResponse",
}
# What discord.py sends, Discord takes, and the document leaves out.
_UNWRITTEN = {
    "ApplicationCommandUpdateRequest": "nsfw",
    "ApplicationCommandCreateRequest": "nsfw",
    "IncomingWebhookUpdateForInteractionCallbackRequestPartial": "tts",
    "IncomingWebhookUpdateRequestPartial": "tts",
    "MessageEditRequestPartial": "tts",
}
# What events have beyond the object that they tell of.
_BESIDE = {"guild_id", "member", "channel_type", "newly_created", "permissions"}
_GUILD_BESIDE = {
    "joined_at",
    "large",
    "unavailable",
    "member_count",
    "voice_states",
    "presences",
    "members",
    "channels",
    "threads",
    "stage_instances",
    "guild_scheduled_events",
    "soundboard_sounds",
}


def specified() -> bool:
    """Whether the document lies beside the project."""
    return PATH.exists()


def require() -> None:
    """Skip, or fail where nothing may be skipped, without the document."""
    if not specified():
        missing("there is no ../shared/specs/discord-openapi-v10.json beside the project")


@functools.cache
def document() -> Json:
    """The document, with all objects closed: a misspelt field is an error."""
    found: Json = json.loads(PATH.read_text(encoding="utf-8"))
    open_ = {name for schema in _walk(found["components"]) for name in _parts(schema)}
    for name, schema in found["components"]["schemas"].items():
        if "properties" in schema and name not in open_:
            schema.setdefault("additionalProperties", False)
            schema["properties"] |= {_UNWRITTEN[name]: {}} if name in _UNWRITTEN else {}
    return found


def _walk(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _walk(inner)


def _parts(schema: Json) -> Iterator[str]:
    """The names of what is put together by `allOf`."""
    for part in schema.get("allOf", ()) if isinstance(schema.get("allOf"), list) else ():
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]


@functools.cache
def _registry() -> Registry[Any]:
    resource = Resource(contents=document(), specification=DRAFT202012)
    return Registry[Any]().with_resource(_ROOT, resource)


@functools.cache
def _validator(pointer: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({"$ref": f"{_ROOT}#{pointer}"}, registry=_registry())


def _check(pointer: str, value: Any, what: str) -> None:
    error = jsonschema.exceptions.best_match(_validator(pointer).iter_errors(value))
    if error is not None:
        raise AssertionError(f"{what}: {error.json_path}: {error.message}\n{json.dumps(value)[:3000]}")


def check_object(name: str, value: Any, what: str = "") -> None:
    """Fail unless `value` is what the document calls a `name`."""
    _check(f"/components/schemas/{name}", value, what or name)


def check_call(call: ApiCall) -> None:
    """Fail unless this request may be sent so, and may be answered so."""
    what = f"{call.method} {call.path}"
    assert call.path in document()["paths"], what
    assert call.status != 500, f"the fake fell over {what}: {call.body}"
    operation = document()["paths"][call.path][call.method.lower()]
    at = f"/paths/{call.path.replace('/', '~1')}/{call.method.lower()}"
    if call.status < 400:
        known = {one["name"]: one for one in operation.get("parameters", ())}
        assert call.query.keys() <= known.keys(), f"{what} takes no {call.query}"
        if "requestBody" in operation:
            media = "/requestBody/content/application~1json/schema"
            _check(f"{at}{media}", _ids_as_text(call.body), f"{what} was sent")
        else:
            assert call.body is None, f"{what} takes no body: {call.body}"
        assert str(call.status) in operation["responses"], f"{what} answers no {call.status}"
        if call.status == 200:
            media = "/responses/200/content/application~1json/schema"
            _check(f"{at}{media}", call.answer, f"{what} answered")
    elif call.answer is not None:
        name = "RatelimitedResponse" if call.status == 429 else "ErrorResponse"
        # The document has numbers for the codes of single fields, which are words.
        plain = {key: value for key, value in call.answer.items() if key != "errors"}
        check_object(name, plain, f"{what} refused")


def _ids_as_text(value: Any) -> Any:
    """discord.py sends some ids as numbers, which Discord takes."""
    if isinstance(value, dict):
        return {name: _ids_as_text(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_ids_as_text(inner) for inner in value]
    return str(value) if isinstance(value, int) and value > 1 << 53 else value


def check_event(event: str, payload: Json) -> None:
    """Fail unless the objects of a gateway event have the shapes that REST gives them."""
    if isinstance(member := payload.get("member"), dict):
        whole = {"user": payload.get("author") or payload.get("user")} | member
        name = "PrivateGuildMemberResponse" if "permissions" in member else "GuildMemberResponse"
        check_object(name, whole, f"the member of {event}")
    plain = {name: value for name, value in payload.items() if name not in _BESIDE}
    plain |= {"guild_id": payload["guild_id"]} if "guild_id" in payload else {}
    if event in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
        plain.pop("guild_id", None)
        check_object("MessageResponse", plain, event)
    elif event == "GUILD_CREATE":
        own = {name: value for name, value in payload.items() if name not in _GUILD_BESIDE}
        check_object("GuildWithCountsResponse", own, event)
        for one in (*payload["channels"], *payload["threads"]):
            check_object(_CHANNELS[one["type"]], one, event)
        for one in payload["members"]:
            check_object("GuildMemberResponse", one, event)
    elif event in ("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"):
        check_object(_CHANNELS[plain["type"]], plain, event)
    elif event.startswith("MESSAGE_REACTION_"):
        check_object("MessageReactionEmojiResponse", payload["emoji"], event)
        for name in ("user_id", "channel_id", "message_id"):
            check_object("SnowflakeType", payload[name], event)
    elif event == "INTERACTION_CREATE":
        _check_interaction(payload)


def _check_interaction(payload: Json) -> None:
    what = "INTERACTION_CREATE"
    channel = payload["channel"]
    check_object(_CHANNELS[channel["type"]], channel, what)
    assert ("user" in payload) != ("member" in payload), "a user in private, a member in a server"
    if "user" in payload:
        check_object("UserResponse", payload["user"], what)
    messages = list(payload["data"].get("resolved", {}).get("messages", {}).values())
    for message in (*messages, *([payload["message"]] if "message" in payload else [])):
        check_object("MessageResponse", message, what)


def check_all(discord: FakeDiscord) -> None:
    """Hold all that went to and fro to the document; nothing without it."""
    if not specified():
        return
    for call in copy.copy(discord.calls):
        if call.status:
            check_call(call)
    for frame in discord.sessions.log:
        check_event(frame["t"], frame["d"])
