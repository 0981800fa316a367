# SPDX-License-Identifier: Apache-2.0
"""F1, F13: payloads of Slack Connect and of an Enterprise Grid, and what else Slack's clients send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import MessageEvent
from goodbot_connectors.slack import emoji
from goodbot_connectors.slack.config import SlackSettings
from goodbot_connectors.slack.identity import ActorOrigin, BotIdentity
from goodbot_connectors.slack.normalize import Normalizer
from goodbot_connectors.slack.threads import Threads
from goodbot_fakes.slack import FakeSlack
from goodbot_fakes.slack.blocks import shown

from tests.connectors.slack.peer import SlackPeer
from tests.end_to_end.daemon import running
from tests.end_to_end.slack import Person, daemon_beside
from tests.end_to_end.test_slack import PATIENT
from tests.support import require

ME = BotIdentity(user="U0BOT", team="T0OURS", bot="B0BOT", name="goodbot")
ROOT, ANSWER = "1795290000.000100", "1795290010.000100"
INSTALLED = {"enterprise_id": "E0ORG", "team_id": "T0OURS", "user_id": "U0BOT", "is_bot": True}
ORG = {"enterprise_id": "E0ORG"}
OURS, THEIRS, UNPROVED = ActorOrigin.OURS, ActorOrigin.THEIRS, ActorOrigin.UNPROVED
ORGANISATION = ActorOrigin.ORGANISATION


def normalizer() -> Normalizer:
    threads = Threads()
    threads.note("C0LAB", ROOT, ANSWER, answer=True)
    return Normalizer(me=ME, values=emoji.values(SlackSettings()), threads=threads)


NORMALIZER = normalizer()


def mention(**more: Any) -> dict[str, Any]:
    return {
        "type": "app_mention",
        "user": "U0ADA",
        "ts": "1795291534.000200",
        "channel": "C0LAB",
        "text": "<@U0BOT> hello",
        "team": "T0OURS",
        **more,
    }


def body(event: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "event_callback",
        "event_id": "Ev1",
        "team_id": "T0OURS",
        "authorizations": [{**INSTALLED, "is_enterprise_install": False}],
        "event": event,
        **more,
    }


def team(name: str) -> dict[str, str]:
    return {"user_team": name, "source_team": name, "team": name}


def org_wide(team_id: str | None) -> list[dict[str, Any]]:
    return [{"enterprise_id": "E0ORG", "team_id": team_id, "is_enterprise_install": True}]


CONNECT: dict[str, Any] = {  # as bolt's own request tests have them
    "team_id": "T0THEM",
    "enterprise_id": "E0THEM",
    "context_team_id": "T0OURS",
    "context_enterprise_id": "E0ORG",
    "is_ext_shared_channel": True,
}
SAID = {"type": "message", "user": "U0FOREIGN", "channel_type": "channel", "team": "T0THEM"}
REACTION = {
    "type": "reaction_added",
    "user": "U0FOREIGN",
    "reaction": "+1",
    "item": {"type": "message", "channel": "C0LAB", "ts": ANSWER},
    "item_user": "U0BOT",
    "event_ts": "1795291535.000000",
}
SHARED = {"context_team_id": "T0OURS", "is_ext_shared_channel": True}
PAYLOADS: dict[str, tuple[dict[str, Any], ActorOrigin]] = {
    "plain": (body(mention()), OURS),
    "our organisation's id as the author's team": (
        body(mention(user_team="E0ORG", source_team="E0ORG"), **ORG),
        ORGANISATION,
    ),
    "an organisation's user id": (body(mention(user="W0ADA"), **ORG), OURS),
    "another workspace of our organisation": (
        body(mention(**team("T0SIBLING")), **ORG, team_id="T0SIBLING"),
        UNPROVED,
    ),
    "installed for the organisation, no team": (body(mention(), **ORG, authorizations=org_wide(None)), OURS),
    "installed for the organisation, its id as the team": (
        body(mention(), **ORG, authorizations=org_wide("E0ORG")),
        OURS,
    ),
    "Connect": (body(mention(**team("T0THEM")), team_id="T0THEM"), THEIRS),
    "Connect, a message that names no user_team": (body(mention(**SAID), **CONNECT), THEIRS),
    "Connect, a command": (body(mention(**SAID, text="<@U0BOT> rl status"), **CONNECT), THEIRS),
    "Connect, a reaction that names no team": (body(REACTION, **SHARED), UNPROVED),
    "Connect, a reaction, the wrapper's team is theirs": (
        body(REACTION, **SHARED | {"team_id": "T0THEM", "enterprise_id": "E0THEM"}),
        UNPROVED,
    ),
    # Siblings.
    "Connect, their organisation's id alone": (body(mention(user_team="E0THEM"), **CONNECT), THEIRS),
    "Connect, no team anywhere in the event": (body(mention(team=None), **CONNECT), UNPROVED),
    "Connect, a reaction is taken back": (body({**REACTION, "type": "reaction_removed"}, **SHARED), UNPROVED),
    "Connect, the profile alone names a team": (
        body(mention(team=None, user_profile={"team": "T0THEM"}), **SHARED),
        THEIRS,
    ),
    "Connect, a file": (body(mention(**SAID, subtype="file_share", files=[{}]), **CONNECT), THEIRS),
    "Connect, a reply that is sent to the channel too": (
        body(mention(**SAID, subtype="thread_broadcast", thread_ts=ROOT), **CONNECT),
        THEIRS,
    ),
    "Connect, in a reply to us that mentions nobody": (
        body(mention(**SAID, thread_ts=ROOT, text="and this?"), **CONNECT),
        THEIRS,
    ),
    "installed for another organisation": (
        body(
            mention(),
            team_id="T0THEM",
            enterprise_id="E0THEM",
            authorizations=[{"enterprise_id": "E0THEM", "team_id": None, "is_enterprise_install": True}],
        ),
        THEIRS,
    ),
    "Home of somebody who names no team, in a shared channel": (
        body({"type": "app_home_opened", "tab": "home", "user": "U0X", "channel": "D1"}, **SHARED),
        UNPROVED,
    ),
    "a slash command from a channel of ours that they are in": (
        {"command": "/rl", "text": "status", "team_id": "T0THEM", "user_id": "U0FOREIGN"},
        THEIRS,
    ),
}


@pytest.mark.parametrize("name", PAYLOADS)
def test_f1_f13_nobody_is_ours_who_is_not_proved_to_be(name: str) -> None:
    payload, standing = PAYLOADS[name]
    assert ME.standing(payload) is standing
    found = [event.user.id for event in NORMALIZER.events(payload, 1)]
    assert found == ([payload["event"]["user"]] if standing in (OURS, ORGANISATION) else [])


PRESS = {
    "type": "block_actions",
    "user": {"id": "U0ADA", "team_id": "E0ORG"},
    "team": {"id": "T0OURS", "enterprise_id": "E0ORG"},
    "enterprise": {"id": "E0ORG"},
    "container": {},
    "actions": [{"action_id": "x"}],
}
PRESSES: dict[str, tuple[dict[str, Any], ActorOrigin]] = {
    "our organisation's id": (PRESS, ORGANISATION),
    "our team's id": ({**PRESS, "user": {"id": "U0ADA", "team_id": "T0OURS"}}, OURS),
    "installed for the organisation, no team": (
        {**PRESS, "user": {"id": "U0ADA"}, "team": None, "is_enterprise_install": True},
        UNPROVED,
    ),
    # Siblings.
    # Where our organisation is, it may be a workspace of it: `users.info` tells.
    "another organisation's id": ({**PRESS, "user": {"id": "U0X", "team_id": "E0THEM"}}, UNPROVED),
    "another company's id": ({**PRESS, "user": {"id": "U0X", "team_id": "T0THEM"}}, UNPROVED),
    "another company's id, of no organisation of ours": (
        {"type": "block_actions", "user": {"id": "U0X", "team_id": "T0THEM"}, "team": {"id": "T0OURS"}},
        THEIRS,
    ),
}


@pytest.mark.parametrize("name", PRESSES)
def test_f13_a_press_of_our_own_organisation_is_not_foreign(name: str) -> None:
    payload, standing = PRESSES[name]
    assert ME.standing(payload) is standing
    assert ME.foreign(payload) is (standing is THEIRS)


THREAD = {"type": "message", "subtype": "thread_broadcast", "thread_ts": ROOT, "text": "and this?"}
WORDS: dict[str, tuple[dict[str, Any], str | None]] = {
    "a reply that is sent to the channel too": (mention(**THREAD), "and this?"),
    "a link whose address holds a bar": (
        mention(text="<@U0BOT> see <https://e.org/a|b> &amp;lt; 1"),
        "see b (https://e.org/a) &lt; 1",
    ),
    "a mention with a label": (mention(text="<@U0BOT|goodbot> hi"), "hi"),
    "it ends with the mention": (mention(text="what is 2&gt;1, <@U0BOT>?"), "what is 2>1, ?"),
    "no words at all": (mention(text="", blocks=[{"type": "rich_text", "elements": []}]), None),
    "/me": (mention(type="message", channel="D0ADA", subtype="me_message", text="waves"), None),
    # Siblings: other alphabets, and signs that Slack escapes.
    "the mention in the middle of Arabic": (mention(text="مرحبا <@U0BOT> كيف حالك"), "مرحبا كيف حالك"),
    "the mention before Japanese, no blank": (mention(text="<@U0BOT>元気？"), "元気？"),
    "an ampersand that was typed as an entity": (mention(text="<@U0BOT> &amp;amp;"), "&amp;"),
}


@pytest.mark.parametrize("name", WORDS)
def test_f1_words_are_read_as_people_have_written_them(name: str) -> None:
    event, words = WORDS[name]
    found = [one.text for one in NORMALIZER.events(body(event)) if isinstance(one, MessageEvent)]
    assert found == ([] if words is None else [words])


def test_f1_who_is_proved_is_heard() -> None:
    def kinds(payload: dict[str, Any]) -> list[str]:
        return [type(one).__name__ for one in NORMALIZER.events(payload, 1, proved=True)]

    command = mention(text="<@U0BOT> rl status", team=None)
    assert kinds(body(command, **SHARED)) == ["CommandEvent"]
    assert kinds(body(REACTION, **SHARED)) == ["RatingEvent"]
    assert kinds(body({**command, **SAID, "text": "<@U0BOT> rl status"}, **CONNECT)) == []


@pytest.mark.slow
async def test_f1_a_running_goodbot_answers_and_stores_nobody_of_another_workspace(tmp_path: Path) -> None:
    require("slack_bolt")
    async with FakeSlack(pace=PATIENT) as slack:
        peer = SlackPeer(slack)
        frida, ada, lab = slack.people.guest("frida", "T0THEIRS9"), Person(peer, "ada"), peer.lab.id
        async with running(daemon_beside(tmp_path / "h", peer)) as daemon:
            assert await ada.command("enable", lab)
            foreign = slack.people.say("frida", "What colour is grass?", lab, mention=True)
            await slack.settled()
            answer = await ada.ask("What colour is grass?", lab, mention=True)
            assert shown(answer.text, answer.blocks).startswith("[demo model]")
            slack.people.react("frida", answer.channel, answer.ts, "+1")
            await slack.settled()
            ada.react(answer, "-1")
            await slack.settled()
            assert Person(peer, "frida").answers(foreign) == []
            [(talker,)] = daemon.rows("SELECT talker FROM turns")
            assert slack.people.id("ada") in talker
            raters = daemon.rows("SELECT DISTINCT rater FROM events")
            assert raters
            assert not [one for (one,) in raters if frida in one]
