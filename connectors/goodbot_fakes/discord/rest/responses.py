# SPDX-License-Identifier: Apache-2.0
"""Answers to interactions; the token in the path is all that they need."""

from __future__ import annotations

from goodbot_fakes.discord.errors import unknown
from goodbot_fakes.discord.rest.routing import Answer, ApiCall, route
from goodbot_fakes.discord.state import State

_WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"
_ORIGINAL, _MESSAGE = _WEBHOOK + "/messages/@original", _WEBHOOK + "/messages/{message_id}"


def _token(state: State, call: ApiCall) -> str:
    if call.params["webhook_id"] != state.application.id:
        raise unknown("Webhook")
    return call.params["webhook_token"]


@route("POST", "/interactions/{interaction_id}/{interaction_token}/callback", free=True)
def respond(state: State, call: ApiCall) -> Answer:
    id_, token = call.params["interaction_id"], call.params["interaction_token"]
    body = call.fields()
    message = state.interactions.respond(id_, token, body)
    if call.query.get("with_response", "").lower() not in ("1", "true"):
        return None
    one = next(one for one in state.interactions.log if one.id == id_)
    about = {"id": one.id, "type": one.kind, "channel_id": one.channel.id}
    if message is None or body["type"] == 6:
        return {"interaction": about}
    about |= {
        "response_message_id": message.id,
        "response_message_ephemeral": message.ephemeral,
        "response_message_loading": one.answer == "deferred",
    }
    resource = {"type": 7 if body["type"] == 7 else 4, "message": state.world.message_json(message)}
    return {"interaction": about, "resource": resource}


@route("POST", _WEBHOOK, free=True)
def follow_up(state: State, call: ApiCall) -> Answer:
    message = state.interactions.follow_up(_token(state, call), call.fields())
    return state.world.message_json(message)


@route("GET", _MESSAGE, free=True)
@route("GET", _ORIGINAL, free=True)  # the lower one is looked at first
def get_answer(state: State, call: ApiCall) -> Answer:
    id_ = call.params.get("message_id", "@original")
    return state.world.message_json(state.interactions.message(_token(state, call), id_))


@route("PATCH", _MESSAGE, free=True)
@route("PATCH", _ORIGINAL, free=True)  # the lower one is looked at first
def edit_answer(state: State, call: ApiCall) -> Answer:
    id_ = call.params.get("message_id", "@original")
    message = state.interactions.edit(_token(state, call), id_, call.fields())
    return state.world.message_json(message)


@route("DELETE", _MESSAGE, free=True)
@route("DELETE", _ORIGINAL, free=True)  # the lower one is looked at first
def delete_answer(state: State, call: ApiCall) -> Answer:
    id_ = call.params.get("message_id", "@original")
    state.world.delete(state.interactions.message(_token(state, call), id_))
    return None
