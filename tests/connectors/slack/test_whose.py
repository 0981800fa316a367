# SPDX-License-Identifier: Apache-2.0
"""Who is of our workspace is proved: channels shared with another company, and organisations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import RatingEvent
from goodbot.base.errors import RetriableError
from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.kit.backoff import FloodError
from goodbot_connectors.slack import SPEC, intake
from goodbot_connectors.slack.api import RefusedError
from goodbot_connectors.slack.connector import SlackConnector
from goodbot_connectors.slack.identity import ActorOrigin, BotIdentity
from goodbot_connectors.slack.members import Members
from goodbot_fakes.slack import FakeSlack

from tests.connectors.slack.peer import SlackPeer
from tests.core.builders import until

ME = BotIdentity(user="U0BOT", team="T0OURS", enterprise="E0ORG")
LONE = BotIdentity(user="U0BOT", team="T0OURS")
AUTHORIZED = [{"enterprise_id": "E0ORG", "team_id": "T0OURS", "is_enterprise_install": False}]
THEIRS = {"team": "T0THEM"}


def callback(wrapper: dict[str, Any], **event: Any) -> dict[str, Any]:
    body = {"type": "event_callback", "team_id": "T0OURS", "authorizations": AUTHORIZED}
    return {**body, **wrapper, "event": {"type": "message", "user": "U1", **event}}


SHARED = {"is_ext_shared_channel": True}
ABROAD = {"team_id": "T0THEM", "enterprise_id": "E0THEM"}
INSIDE = {"team_id": "T0SIDE", "enterprise_id": "E0ORG"}
CASES: list[tuple[dict[str, Any], ActorOrigin]] = [
    (callback({}), ActorOrigin.OURS),
    (callback({}, team="T0OURS", user_team="T0OURS"), ActorOrigin.OURS),
    (callback(SHARED, team="T0OURS", user_team="T0OURS"), ActorOrigin.UNPROVED),
    (callback(SHARED, type="reaction_added"), ActorOrigin.UNPROVED),
    (callback(SHARED | ABROAD, type="reaction_added"), ActorOrigin.UNPROVED),
    (callback(SHARED | ABROAD, team="T0THEM"), ActorOrigin.THEIRS),
    (callback(SHARED, team="T0OURS", user_team="E0THEM"), ActorOrigin.THEIRS),
    (callback({}, user_profile=THEIRS), ActorOrigin.THEIRS),
    (callback({}, user_team="E0ORG"), ActorOrigin.ORGANISATION),
    (callback(INSIDE, team="T0SIDE", user_team="T0SIDE"), ActorOrigin.UNPROVED),
    (callback({"authorizations": [{"team_id": "T0THEM"}, *AUTHORIZED]}), ActorOrigin.OURS),
    (callback({"authorizations": [{"team_id": "T0THEM"}]}), ActorOrigin.THEIRS),
    ({"type": "event_callback", "event": {"type": "message", "user": "U1"}}, ActorOrigin.UNPROVED),
    ({"command": "/rl", "team_id": "T0OURS", "user_id": "U1"}, ActorOrigin.OURS),
    ({"command": "/rl", "team_id": "T0THEM", "user_id": "U1"}, ActorOrigin.THEIRS),
    ({"type": "block_actions", "user": {"id": "U1"}, "team": {"id": "T0OURS"}}, ActorOrigin.UNPROVED),
    ({"type": "block_actions", "user": {"id": "U1", "team_id": "T0OURS"}}, ActorOrigin.OURS),
    ({"type": "block_actions", "user": {"id": "U1", "team_id": "T0THEM"}}, ActorOrigin.THEIRS),
    (
        {
            "type": "view_submission",
            "user": {"id": "U1", "team_id": "T0OURS"},
            "view": {"app_installed_team_id": "T0THEM"},
        },
        ActorOrigin.THEIRS,
    ),
]


@pytest.mark.parametrize(("body", "standing"), CASES)
def test_what_a_payload_says_of_who_acts(body: dict[str, Any], standing: ActorOrigin) -> None:
    assert ME.standing(body) is standing
    if standing is not ActorOrigin.UNPROVED:
        assert LONE.standing(body) is standing, "our organisation's id stands beside our team's"


@pytest.mark.parametrize(
    ("person", "ours"),
    [
        ({"team_id": "T0OURS"}, True),
        ({}, False),
        ({"team_id": "T0THEM"}, False),
        ({"team_id": "T0OURS", "is_stranger": True}, False),
        ({"team_id": "T0OURS", "is_bot": True}, False),
        ({"team_id": "E0ORG", "enterprise_user": {"enterprise_id": "E0ORG"}}, False),
        ({"team_id": "T0SIDE", "enterprise_user": {"enterprise_id": "E0ORG", "teams": ["T0OURS"]}}, True),
        ({"team_id": "T0SIDE", "enterprise_user": {"enterprise_id": "E0X", "teams": ["T0OURS"]}}, False),
    ],
)
def test_what_slack_says_of_a_person(person: dict[str, Any], ours: bool) -> None:
    assert ME.member(person) is ours


class Told:
    """A Slack that says who somebody is, or raises."""

    def __init__(self, *answers: dict[str, Any] | Exception) -> None:
        self.answers, self.asked = list(answers), 0

    async def call(self, method: str, **arguments: Any) -> dict[str, Any]:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return {"user": {"id": arguments["user"], **answer}}


def members(told: Any, clock: VirtualClock) -> Members:
    return Members(clock, lambda: told, lambda: ME)


async def test_an_answer_is_believed_for_a_while() -> None:
    clock, told = VirtualClock(), Told({"team_id": "T0OURS"}, {"team_id": "T0THEM"})
    known = members(told, clock)
    assert await known.ours("U1")
    assert await known.ours("U1")
    assert told.asked == 1
    clock.jump(-7200)  # whoever has left is out though our clock is set back
    clock.advance(901)
    assert not await known.ours("U1")


async def test_who_cannot_be_looked_up_is_not_ours() -> None:
    clock = VirtualClock()
    told = Told(RefusedError("users.info", "user_not_found"), {"team_id": "T0OURS"})
    known = members(told, clock)
    for _ in range(3):
        assert not await known.ours("U1")
    assert told.asked == 1, "each reaction of theirs would cost a call, and all others wait"
    clock.advance(61)
    assert await known.ours("U1")
    told = Told(FloodError("a pause", retry_after=30.0), {"team_id": "T0OURS"})
    known = members(told, clock)
    for _ in range(2):
        with pytest.raises(RetriableError):
            await known.ours("U1")
    assert told.asked == 1, "a pause is kept"
    clock.jump(-7200)
    clock.advance(31)
    assert await known.ours("U1")


@pytest.fixture
async def connector(slack: FakeSlack, peer: SlackPeer, tmp_path: Path) -> AsyncIterator[SlackConnector]:
    host = RecordingHost(SPEC, environ=peer.environ, state_dir=tmp_path)
    connector = SlackConnector(host, peer.settings)
    await connector.start()
    yield connector
    await connector.stop()
    await host.close()
    assert host.failures == []


@pytest.fixture
def host(connector: SlackConnector) -> RecordingHost:
    assert isinstance(connector.host, RecordingHost)
    return connector.host


async def test_a_channel_shared_with_another_company(
    slack: FakeSlack,
    peer: SlackPeer,
    connector: SlackConnector,
    host: RecordingHost,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger=intake.__name__)
    frida, lab = slack.people.guest("frida", "T0THEIRS9"), peer.lab.id
    ada = slack.people.id("ada")
    slack.people.say("ada", "hello", lab, mention=True)
    await slack.settled()
    await until(lambda: slack.called("users.info"))
    asked = [call.arguments["user"] for call in slack.calls if call.method == "users.info"]
    assert asked == [ada], "for their language alone, where all are ours"
    before = len(host.events)
    said = slack.people.say("frida", "hello", lab, mention=True)
    slack.people.react("frida", lab, said.ts, "+1")
    slack.people.command("frida", "status", lab)
    await slack.settled()
    assert len(host.events) == before
    slack.people.say("ada", "and I?", lab, mention=True)
    await slack.settled()
    assert {event.user.id for event in host.events} == {ada}
    assert len(host.events) > before
    assert frida not in {event.user.id for event in host.events}
    asked = [call.arguments["user"] for call in slack.calls if call.method == "users.info"]
    assert asked.count(ada) <= 2, "for their language, and once whether they are ours"
    dropped = connector._intake.dropped
    assert dropped >= 2, "the message and the command"
    await connector.stop()
    first, last = [one.getMessage() for one in caplog.records if one.name == intake.__name__]
    assert "is not known to be of this workspace (" in first, "of the first one alone"
    assert "T0THEIRS9" in first
    assert last == f"slack: {dropped} payloads of others than our people were left out"
    assert frida not in first + last


async def test_slack_tells_what_somebody_reads(
    slack: FakeSlack, peer: SlackPeer, host: RecordingHost
) -> None:
    slack.workspace.users[slack.people.id("ada")].locale = "pt-BR"
    ada, bob = (slack.people.id(name) for name in ("ada", "bob"))

    async def read() -> bool:
        """By the newest message of each; it is asked beside the first ones."""
        for name in ("ada", "bob"):
            slack.people.say(name, "hello", peer.lab.id, mention=True)
            await slack.settled()
        return {one.user.id: one.user.language for one in host.events} == {ada: "pt-BR", bob: "en-US"}

    await until(read)
    asked = [call.arguments for call in slack.calls if call.method == "users.info"]
    assert [one["user"] for one in asked] == [ada, bob], "asked once"
    assert all(one["include_locale"] is True for one in asked)


@pytest.mark.parametrize("failure", ["refused", "pause", "silence"])
async def test_where_slack_does_not_say_it_a_message_is_taken_all_the_same(
    failure: str, slack: FakeSlack, peer: SlackPeer, host: RecordingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    match failure:
        case "refused":
            slack.app.scopes.discard("users:read")
        case "pause":
            slack.faults.rate_limit("users.info", seconds=30)
        case _:
            monkeypatch.setattr("goodbot_connectors.slack.members._WAIT", 0.0)
    for _ in range(2):
        slack.people.say("ada", "hello", peer.lab.id, mention=True)
        await slack.settled()
    assert len(host.events) >= 2
    assert {event.user.language for event in host.events} == {""}
    asked = [call for call in slack.calls if call.method == "users.info"]
    assert len(asked) <= 1, "not with each message"


async def test_what_somebody_reads_is_believed_for_a_day_and_forgotten_with_them() -> None:
    clock = VirtualClock()
    told = Told({"team_id": "T0OURS", "locale": "de-DE"}, {"locale": "fr-FR"}, {"locale": "ja-JP"})
    known = members(told, clock)
    assert await known.ours("U1")
    assert await known.language("U1") == "de-DE"
    assert told.asked == 1, "one answer tells both"
    clock.advance(86401)
    assert await known.language("U1") == "fr-FR"
    known.forget("U1")
    assert await known.language("U1") == "ja-JP"
    told.answers.append(RefusedError("users.info", "user_not_found"))
    clock.advance(86401)
    assert await known.language("U1") == "ja-JP", "as it was told last"
    assert await known.language("") == ""


@pytest.mark.parametrize("may_ask", [True, False])
async def test_a_reaction_that_names_no_team_is_asked_about(
    slack: FakeSlack, peer: SlackPeer, host: RecordingHost, *, may_ask: bool
) -> None:
    """Without the scope for that nobody is proved, and nobody's counts."""
    frida, lab = slack.people.guest("frida", "T0THEIRS9"), peer.lab
    lab.members.add(frida)
    if not may_ask:
        slack.app.scopes.discard("users:read")
    answer = slack.workspace.post(lab.id, slack.app.user.id, "Green.")
    for name in ("frida", "ada"):
        slack.people.react(name, lab.id, answer.ts, "+1")
        await slack.settled()
    asked = {call.arguments.get("user") for call in slack.calls if call.method == "users.info"}
    assert asked == {frida, slack.people.id("ada")}
    rated = [event.user.id for event in host.events if isinstance(event, RatingEvent)]
    assert rated == ([slack.people.id("ada")] if may_ask else [])
