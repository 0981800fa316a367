# SPDX-License-Identifier: Apache-2.0
"""The fake Teams, without a bot of ours: it refuses, splits, throttles and tells again as Teams does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from goodbot.testing.clock import VirtualClock
from goodbot.testing.connector_base import eventually
from goodbot_fakes.teams import APP_ID, PASSWORD, FakeTeams, Pace, cards
from goodbot_fakes.teams.identity import SCOPE

from tests.connectors.teams import schema
from tests.connectors.teams.conftest import VIRTUAL, pass_time
from tests.support import free_port, missing

Json = dict[str, Any]
CARD: Json = {
    "type": "AdaptiveCard",
    "version": "1.5",
    "body": [
        {"type": "TextBlock", "text": "Why?"},
        {"type": "Input.Text", "id": "reason", "label": "Reason", "isRequired": True},
        {"type": "TextBlock", "text": "hidden", "isVisible": False},
    ],
    "actions": [{"type": "Action.Submit", "title": "Send", "data": {"form": "why"}}],
}
ATTACHED = {"contentType": "application/vnd.microsoft.card.adaptive", "content": CARD}


class Bot:
    """A bot of a few lines: it takes notes, and answers as it is told."""

    def __init__(self, teams: FakeTeams) -> None:
        self.teams, self.seen = teams, list[Json]()
        self.status, self.answer = 200, dict[str, Any]()
        self.authorizations: list[str] = []
        self.http = aiohttp.ClientSession()

    async def take(self, request: web.Request) -> web.Response:
        self.authorizations.append(request.headers.get("Authorization", ""))
        self.seen.append(await request.json())
        return web.json_response(self.answer, status=self.status)

    async def log_in(self, **other: str) -> tuple[int, Json]:
        form = {
            "grant_type": "client_credentials",
            "client_id": APP_ID,
            "client_secret": PASSWORD,
            "scope": SCOPE,
            **other,
        }
        async with self.http.post(self.teams.token_endpoint, data=form) as answer:
            return answer.status, await answer.json()

    async def call(self, method: str, path: str, body: Json | None = None, **query: str) -> Any:
        """Status and answer of a call with a good token."""
        _, login = await self.log_in()
        headers = {"Authorization": f"Bearer {login['access_token']}"}
        url = f"{self.teams.service_url}v3/conversations{path}"
        async with self.http.request(method, url, json=body, headers=headers, params=query) as answer:
            return answer.status, await answer.json()

    async def say(self, text: str, place: str, **more: Any) -> tuple[int, Json]:
        return await self.call("POST", f"/{place}/activities", message(text, **more))


def message(text: str, **more: Any) -> Json:
    return {"type": "message", "text": text, **more}


def piece(kind: str, text: str, sequence: int = 0, stream: str = "", type_: str = "") -> Json:
    info: Json = {"type": "streaminfo", "streamType": kind}
    info |= {"streamSequence": sequence} if sequence else {}
    info |= {"streamId": stream} if stream else {}
    made = type_ or ("message" if kind == "final" else "typing")
    return {"type": made, "text": text, "entities": [info]}


@pytest.fixture
async def bot(teams: FakeTeams) -> AsyncIterator[Bot]:
    bot, port = Bot(teams), free_port()
    application = web.Application()
    application.router.add_post("/api/messages", bot.take)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    teams.endpoint = f"http://127.0.0.1:{port}/api/messages"
    yield bot
    await bot.http.close()
    await runner.cleanup()


def test_it_needs_no_sdk_of_a_bot() -> None:
    code = (
        "import sys, goodbot_fakes.teams; "
        "print(*[name for name in ('botbuilder', 'botframework', 'msal') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


# -- logins and tokens


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"client_secret": "guessed"}, "invalid_client"),
        ({"client_id": "0d5e5f0e"}, "unauthorized_client"),
        ({"scope": "https://graph.microsoft.com/.default"}, "invalid_request"),
        ({"grant_type": "password"}, "invalid_request"),
    ],
)
async def test_a_wrong_login_gets_no_token(bot: Bot, wrong: Json, error: str) -> None:
    status, answer = await bot.log_in(**wrong)
    assert (status >= 400, answer["error"]) == (True, error)


async def test_without_a_token_that_is_good_nothing_is_done(teams: FakeTeams, bot: Bot) -> None:
    place = teams.person("Ada").chat.id
    url = f"{teams.service_url}v3/conversations/{place}/activities"
    for header in ("", "Bearer guessed", teams.identity.header(teams.service_url)):
        headers = {"Authorization": header} if header else {}
        async with bot.http.post(url, json=message("Hi."), headers=headers) as answer:
            assert answer.status == 401
    assert teams.person("Ada").sees() == []


async def test_what_it_tells_is_signed_by_the_key_that_it_names(teams: FakeTeams, bot: Bot) -> None:
    import jwt

    teams.person("Ada").says("hello")
    await teams.settled()
    async with bot.http.get(teams.openid_metadata) as answer:
        where = (await answer.json())["jwks_uri"]
    async with bot.http.get(where) as answer:
        [key] = (await answer.json())["keys"]
    token = bot.authorizations[0].removeprefix("Bearer ")
    claims = jwt.decode(token, jwt.PyJWK(key), ["RS256"], audience=APP_ID)
    assert claims["iss"] == "https://api.botframework.com"
    assert claims["serviceurl"] == bot.seen[0]["serviceUrl"] == teams.service_url
    assert "msteams" in key["endorsements"]


# -- what a bot may do


async def test_text_and_card_become_two_messages_without_an_id(teams: FakeTeams, bot: Bot) -> None:
    """As documented, and as in Microsoft's playground."""
    ada = teams.person("Ada")
    assert await bot.say("Hi.", ada.chat.id, attachments=[ATTACHED]) == (202, {})
    text, card = ada.sees()
    assert (text.text, text.cards, card.text, card.cards) == ("Hi.", [], "", [CARD])
    path = f"/{ada.chat.id}/activities/{text.id}"
    status, _ = await bot.call("PUT", path, message("Hi.", attachments=[ATTACHED]))
    assert status == 400
    assert (await bot.call("PUT", path, message("Hello.")))[0] == 200
    assert [m.text for m in ada.sees()] == ["Hello.", ""]


async def test_a_bot_changes_its_own_messages_only(teams: FakeTeams, bot: Bot) -> None:
    ada = teams.person("Ada")
    hers = ada.says("mine")
    path = f"/{ada.chat.id}/activities/{hers.id}"
    assert (await bot.call("PUT", path, message("yours")))[0] == 403
    assert (await bot.call("DELETE", path))[0] == 403
    _, sent = await bot.say("Hi.", ada.chat.id)
    assert (await bot.call("DELETE", f"/{ada.chat.id}/activities/{sent['id']}"))[0] == 200
    assert ada.sees() == []
    assert (await bot.call("PUT", f"/{ada.chat.id}/activities/{sent['id']}", message("x")))[0] == 404


async def test_what_is_empty_too_long_or_nowhere_is_refused(teams: FakeTeams, bot: Bot) -> None:
    place = teams.person("Ada").chat.id
    assert (await bot.say("", place))[0] == 400
    assert (await bot.say("x" * 60_000, place))[0] == 413
    assert (await bot.say("x", "a:nowhere"))[0] == 404
    lab = teams.channel("Lab", [])
    del lab.members[teams.tenant.bot.id]
    assert (await bot.say("x", lab.id))[0] == 403


async def test_a_chat_is_opened_with_those_only_who_have_the_app(teams: FakeTeams, bot: Bot) -> None:
    ada, bob = teams.person("Ada"), teams.person("Bob")
    chat = ada.chat.id
    data = {"tenant": {"id": teams.tenant.id}}
    body: Json = {"members": [{"id": ada.id}], "channelData": data}
    assert await bot.call("POST", "", body) == (201, {"id": chat})
    assert (await bot.call("POST", "", body | {"members": [{"id": bob.id}]}))[0] == 403
    assert (await bot.call("POST", "", {"members": [{"id": ada.id}]}))[0] == 400


async def test_a_reply_in_a_channel_stays_in_its_thread(teams: FakeTeams, bot: Bot) -> None:
    ada = teams.person("Ada")
    lab = teams.channel("Lab", [ada])
    root = ada.says("hello", lab, mention=True)
    ada.says("nothing to do with the bot", lab)
    for path in (f"/{lab.id};messageid={root.id}/activities", f"/{lab.id}/activities/{root.id}"):
        assert (await bot.call("POST", path, message("Hi.")))[0] == 201
    _, own = await bot.say("A thread of mine.", lab.id)
    assert [m.thread for m in ada.sees(lab)] == [root.id, root.id, own["id"]]
    await teams.settled()
    [told] = bot.seen
    assert told["conversation"]["id"] == f"{lab.id};messageid={root.id}"
    assert told["text"] == "<at>goodbot</at> hello"


async def test_a_targeted_message_is_seen_by_one(teams: FakeTeams, bot: Bot) -> None:
    ada, bob = teams.person("Ada"), teams.person("Bob")
    group = teams.group("Friends", [ada, bob])
    body = message("For you.", recipient={"id": ada.id})
    path = f"/{group.id}/activities"
    status, sent = await bot.call("POST", path, body, isTargetedActivity="true")
    assert status == 201
    assert [m.id for m in ada.sees(group)] == [sent["id"]]
    assert bob.sees(group) == []
    assert (await bot.call("PUT", f"{path}/{sent['id']}", message("x")))[0] == 403


# -- streams


async def test_a_stream_grows_and_ends(teams: FakeTeams, bot: Bot) -> None:
    ada = teams.person("Ada")
    path = f"/{ada.chat.id}/activities"
    status, begun = await bot.call("POST", path, piece("informative", "Thinking…", 1))
    assert status == 201
    id_ = begun["id"]
    assert await bot.call("POST", path, piece("streaming", "It", 2, id_)) == (202, {})
    wrong = {
        "other words": (piece("streaming", "No", 3, id_), 403),
        "an old number": (piece("streaming", "It is", 2, id_), 412),
        "a message in between": (piece("streaming", "It is", 3, id_, "message"), 400),
        "an end without an id": (piece("final", "It is 4."), 400),
        "a second one beside it": (piece("streaming", "And", 1), 403),
        "no words": (piece("streaming", "", 3, id_), 400),
    }
    for why, (body, expected) in wrong.items():
        assert (await bot.call("POST", path, body))[0] == expected, why
    assert await bot.call("POST", path, piece("final", "It is 4.", 0, id_)) == (202, {"id": id_})
    assert (await bot.call("POST", path, piece("streaming", "It is 4. Or", 4, id_)))[0] == 403
    [answer] = ada.sees()
    assert (answer.text, answer.stream, answer.id) == ("It is 4.", "final", id_)


async def test_there_are_streams_in_personal_chats_only(teams: FakeTeams, bot: Bot) -> None:
    lab = teams.channel("Lab", [teams.person("Ada")])
    status, answer = await bot.call("POST", f"/{lab.id}/activities", piece("streaming", "It", 1))
    assert (status, answer["error"]["code"]) == (405, "BadArgument")


@VIRTUAL
async def test_a_stream_lasts_two_minutes(teams: FakeTeams, bot: Bot) -> None:
    path = f"/{teams.person('Ada').chat.id}/activities"
    _, begun = await bot.call("POST", path, piece("streaming", "It", 1))
    await pass_time(teams, 119)
    assert (await bot.call("POST", path, piece("streaming", "It is", 2, begun["id"])))[0] == 202
    await pass_time(teams, 2)
    status, answer = await bot.call("POST", path, piece("final", "It is 4.", 0, begun["id"]))
    assert (status, answer["error"]["code"]) == (403, "ContentStreamNotAllowed")


# -- what people do


async def test_a_bot_hears_of_reactions_on_its_own_messages(teams: FakeTeams, bot: Bot) -> None:
    ada = teams.person("Ada")
    ada.reacts(ada.says("hello"), "heart")
    _, sent = await bot.say("Hi.", ada.chat.id)
    answer = teams.tenant.message(ada.chat.id, sent["id"])
    ada.reacts(answer, "like")
    ada.reacts(answer, "angry", instead_of=["like"])
    await teams.settled()
    _, added, changed = bot.seen
    assert (added["replyToId"], added["reactionsAdded"]) == (sent["id"], [{"type": "like"}])
    assert changed["reactionsAdded"] == [{"type": "angry"}]
    assert changed["reactionsRemoved"] == [{"type": "like"}]
    assert answer.reactions == {"like": [], "angry": [ada.id]}


async def test_a_form_of_the_bot_comes_back_as_it_was_filled_in(teams: FakeTeams, bot: Bot) -> None:
    ada = teams.person("Ada")
    loop = {"feedbackLoop": {"type": "custom"}}
    _, sent = await bot.say("Hi.", ada.chat.id, channelData=loop)
    window = {"title": "Why?", "card": ATTACHED}
    bot.answer = {"task": {"type": "continue", "value": window}}
    ada.rates(teams.tenant.message(ada.chat.id, sent["id"]), good=False)
    await teams.settled()
    [dialog] = ada.dialogs
    assert cards.text(dialog.card) == "Why?"
    [send] = cards.actions(dialog.card)
    with pytest.raises(AssertionError, match="empty"):
        cards.filled(dialog.card, {})
    bot.answer = {}
    ada.submits(dialog, send, {"reason": "too long"})
    await teams.settled()
    said = bot.seen[-1]["value"]["actionValue"]
    assert said == {"reaction": "dislike", "feedback": '{"form": "why", "reason": "too long"}'}
    assert ada.dialogs == []


# -- how often it tells


@VIRTUAL
async def test_it_waits_fifteen_seconds_and_tells_again(teams: FakeTeams) -> None:
    assert isinstance(teams.clock, VirtualClock)
    assert teams.outbox.pace == Pace(ack=15.0, invoke=5.0)
    teams.person("Ada").says("is anybody there?")  # nobody is
    [delivery] = teams.outbox.log
    await eventually(lambda: _true(delivery.attempts == 1))
    await pass_time(teams, 60)
    assert (delivery.attempts, delivery.state) == (4, "lost")


async def _true(value: bool) -> bool:
    return value


async def test_a_bot_that_fails_is_told_again_and_one_that_refuses_is_not(teams: FakeTeams, bot: Bot) -> None:
    ada = teams.person("Ada")
    bot.status = 503
    ada.says("hello")
    await teams.until(lambda: len(bot.seen) >= 2)
    assert bot.seen[0] == bot.seen[1], "the same id and the same time"
    bot.status = 200
    await teams.settled()
    assert teams.outbox.log[0].state == "acknowledged"
    bot.status = 403
    ada.says("hello again")
    await teams.settled()
    assert (teams.outbox.log[1].state, teams.outbox.log[1].attempts) == ("lost", 1)


# -- the checks themselves


def test_what_is_not_of_teams_fails_the_check() -> None:
    if reason := schema.unavailable():
        missing(reason)
    card = {"type": "AdaptiveCard", "version": "1.5", "body": [{"type": "TextBlock", "txt": "x"}]}
    schema.check_cards([CARD])
    with pytest.raises(AssertionError, match="txt"):
        schema.check_cards([CARD, card])
    with pytest.raises(AssertionError, match="Calls send"):
        schema.check_call("send", message("Hi.", textformat="markdown"))
    with pytest.raises(AssertionError, match="Calls send"):
        schema.check_call("send", message("Hi.") | {"type": "invoke"})
