# SPDX-License-Identifier: Apache-2.0
"""What the plugin sends becomes exactly one event each, and nothing else gets in."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    CommandEvent,
    MessageEvent,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
)
from goodbot_connectors.openclaw import normalize
from goodbot_connectors.openclaw.transcript import messages, said

from tests.connectors.openclaw.conftest import Plugin, event
from tests.support import require

SCHEMA = json.loads((Path(normalize.__file__).parent / "schema.json").read_text())
WRONG: list[dict[str, Any]] = [
    event("rating", type="praise"),
    event("rating", id=""),
    event("rating", value=0),
    event("rating", value=True),
    event("rating", value=0.5),
    event("rating", name=""),
    event("rating", channel="tele:gram"),
    event("rating", sender=""),
    event("rating", chat="x" * 201),
    event("reaction", emoji=""),
    event("capture", messages=[]),
    event("capture", answer=" \n"),
    event("capture", trace="xyz"),
    event("capture", name=""),
    event("named", message=""),
]


def valid(json_: Any) -> bool:
    validator = require("jsonschema").Draft202012Validator(SCHEMA)
    return validator.is_valid({"events": [json_]})


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: f"{one['type']} {len(json.dumps(one))}")
async def test_what_is_no_event_is_refused_whole(plugin: Plugin, wrong: dict[str, Any]) -> None:
    status, body = await plugin.post(event("capture"), wrong)
    assert status == 422
    assert body["error"]["message"].startswith("events[1]: ")
    assert plugin.host.events == []
    assert not valid(wrong)


@pytest.mark.parametrize("type_", normalize.TYPES)
def test_the_schema_takes_what_we_take(type_: str) -> None:
    assert valid(event(type_))


async def test_an_answer_is_captured_with_all_that_names_it(plugin: Plugin) -> None:
    receipt = await plugin.one(event("capture"))
    [got] = plugin.host.events
    assert isinstance(got, CaptureEvent)
    assert (got.user.id, got.channel.id) == ("telegram:default:42", "telegram:default:42")
    assert (got.message_id, got.model, got.response) == ("7", "local/m", "Hi.")
    assert got.trace == "w3c:0af7651916cd43dd8448eb211c80319c"
    assert got.version is None
    assert (receipt["outcome"], receipt["turn"]) == ("accepted", "t1")


async def test_sent_again_it_is_the_same_and_otherwise_a_conflict(plugin: Plugin) -> None:
    first = await plugin.one(event("rating", at=1))
    assert await plugin.one(event("rating", at=2)) == first
    assert len(plugin.host.events) == 1
    assert (await plugin.one(event("rating", value=-1)))["outcome"] == "conflict"


async def test_people_in_one_session_are_kept_apart(plugin: Plugin) -> None:
    """The key of a session is no part of who or where: it is not even sent."""
    await plugin.post(
        event("rating", id="a"),
        event("rating", id="b", chat="43", sender="43"),
        event("rating", id="c", account="work"),
        event("rating", id="d", chat="-100", group=True),
    )
    found = [(one.user.id, one.channel.id, one.channel.kind) for one in plugin.host.events]
    assert found == [
        ("telegram:default:42", "telegram:default:42", ChannelKind.PRIVATE),
        ("telegram:default:43", "telegram:default:43", ChannelKind.PRIVATE),
        ("telegram:work:42", "telegram:work:42", ChannelKind.PRIVATE),
        ("telegram:default:42", "telegram:default:-100", ChannelKind.SHARED),
    ]


@pytest.mark.parametrize(
    ("emoji", "source", "value"),
    [
        ("👍", "👍", 1.0),
        ("👍🏽", "👍", 1.0),
        ("❤️", "❤", 1.0),
        ("👎", "👎", -1.0),
        ("+1::skin-tone-3", "+1", 1.0),
    ],
)
async def test_reactions_rate(plugin: Plugin, emoji: str, source: str, value: float) -> None:
    await plugin.post(event("reaction", emoji=emoji), event("reaction", id="2", emoji=emoji, added=False))
    rated, taken = plugin.host.events
    assert isinstance(rated, RatingEvent)
    assert isinstance(taken, RatingEvent)
    assert (rated.kind, rated.source, rated.value) == (RatingKind.RATE, f"reaction:{source}", value)
    assert (taken.kind, taken.source, taken.value) == (RatingKind.RETRACT, rated.source, None)


async def test_another_reaction_is_no_rating(plugin: Plugin) -> None:
    assert (await plugin.one(event("reaction", emoji="🤔")))["outcome"] == "ignored"
    assert plugin.host.events == []


async def test_each_message_of_an_answer_names_it(plugin: Plugin) -> None:
    await plugin.post(event("named"), event("rating", name="8"), event("rating", id="2", name="8", chat="9"))
    mine, elsewhere = plugin.host.events
    assert isinstance(mine, RatingEvent)
    assert isinstance(elsewhere, RatingEvent)
    assert (mine.message_id, elsewhere.message_id) == ("7", "8")


class TestCommands:
    async def test_one_is_of_the_answer_that_the_plugin_names(self, plugin: Plugin) -> None:
        receipt = await plugin.one(event("command", words="good", name="7"))
        assert receipt["text"] == "good: done"
        [got] = plugin.host.events
        assert isinstance(got, CommandEvent)
        assert (got.name, got.args, got.reply_to) == ("good", "", "7")

    @pytest.mark.parametrize(
        ("admin", "owner", "told"), [(False, True, "/rladmin train"), (True, False, "ownerAllowFrom")]
    )
    async def test_an_administrative_one_needs_openclaw_to_agree(
        self, plugin: Plugin, admin: bool, owner: bool, told: str
    ) -> None:
        receipt = await plugin.one(event("command", words="train", admin=admin, owner=owner))
        assert receipt["outcome"] == "denied"
        assert told in receipt["text"]
        assert plugin.host.events == []

    async def test_and_then_goodbot_decides(self, plugin: Plugin) -> None:
        receipt = await plugin.one(event("command", words="train --now", admin=True, owner=True))
        assert receipt["text"] == "train: done"
        [got] = plugin.host.events
        assert isinstance(got, CommandEvent)
        assert (got.name, got.args) == ("train", "--now")

    async def test_words_are_kept_as_they_were_typed(self, plugin: Plugin) -> None:
        await plugin.one(event("command", words="better Two lines:\nand  more", name="7"))
        [got] = plugin.host.events
        assert isinstance(got, CommandEvent)
        assert (got.name, got.args) == ("better", "Two lines:\nand  more")

    async def test_a_code_makes_an_owner_and_is_no_command(self, plugin: Plugin) -> None:
        for number, words in enumerate(("ABCD-2345", "pair abcd 2345")):
            assert (await plugin.one(event("command", id=str(number), words=words)))["outcome"] == "paired"
        for got in plugin.host.events:
            assert isinstance(got, MessageEvent)
            assert (got.text, got.addressed) == ("ABCD2345", False)

    async def test_news_come_with_the_next_private_one(self, plugin: Plugin) -> None:
        private = await plugin.connector.private("telegram:default:42")
        assert private is not None
        await plugin.connector.send(private, Reply(text="v3 is live"))
        shared = await plugin.one(event("command", id="1", chat="-100", group=True))
        assert shared["text"] == "status: done"
        mine = await plugin.one(event("command", id="2"))
        assert mine["text"] == "status: done\n\nv3 is live"

    async def test_in_a_group_a_private_answer_is_not_said(self, plugin: Plugin) -> None:
        plugin.host.answer = lambda given: Receipt(event_id=given.event_id, outcome=Outcome.ACCEPTED)
        asked = asyncio.create_task(plugin.one(event("command", chat="-100", group=True)))
        await plugin.taken()
        private = await plugin.connector.private("telegram:default:42")
        assert private is not None
        await plugin.connector.send(private, Reply(text="for you alone"))
        assert "private chat" in (await asked)["text"]
        plugin.host.answer = lambda given: Receipt(event_id=given.event_id, outcome=Outcome.DENIED)
        assert "`/rladmin people grant" in (await plugin.one(event("command", id="2")))["text"]

    async def test_and_a_rating_gets_a_nod(self, plugin: Plugin) -> None:
        plugin.host.answer = lambda given: Receipt(event_id=given.event_id, outcome=Outcome.ACCEPTED)
        sent = event("command", words="good", name="7", chat="-100", group=True)
        asked = asyncio.create_task(plugin.one(sent))
        await plugin.taken()
        private = await plugin.connector.private("telegram:default:42")
        assert private is not None
        await plugin.connector.send(private, Reply(text="Good."))
        [given] = plugin.host.events
        nod = Receipt(event_id=given.event_id, outcome=Outcome.ACCEPTED, turn="t1")
        await plugin.connector.acknowledge(given, nod)
        assert await asked == {"id": given.event_id, "outcome": "accepted", "text": "", "turn": "t1"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer gb_" + "x" * 43}, 401),
        ({"Authorization": ""}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
async def test_nobody_else_gets_in(plugin: Plugin, headers: dict[str, str], status: int) -> None:
    found, _ = await plugin.post(event("rating"), **headers)
    assert found == status
    assert plugin.host.events == []


async def test_nothing_is_acknowledged_that_was_not_stored(plugin: Plugin) -> None:
    plugin.host.refuse()
    status, _ = await plugin.post(event("rating"))
    assert status == 503
    assert (await plugin.one(event("rating")))["outcome"] == "accepted"


def test_a_transcript_is_what_people_and_tools_said() -> None:
    stamp = "[Sun 2026-11-22 15:48 UTC] Conversation info: ⟦openclaw:ctx⟧"
    told = f'{stamp}\n```json\n{{"sender":{{"id":"42"}}}}\n```\n\nhello there'
    asked = {"id": "c1", "name": "clock", "arguments": {"zone": "UTC"}}
    found = messages(
        [
            {"role": "custom", "content": "x"},
            {"role": "user", "content": "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>> x"},
            {"role": "user", "content": told},
            {"role": "assistant", "content": "", "calls": [asked]},
            {"role": "toolResult", "call": "c1", "name": "clock", "content": "12:00"},
        ]
    )
    call = {"name": "clock", "arguments": '{"zone": "UTC"}'}
    assert found == (
        {"role": "user", "content": "hello there"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
    )


@pytest.mark.parametrize("text", ["hello", "[not a time] hello", "```\ncode\n```", ""])
def test_words_of_people_stay_as_they_are(text: str) -> None:
    assert said(text) == text


RECORDED = Path(__file__).parent / "recorded"


@pytest.mark.parametrize("type_", ["capture", "rating", "reaction", "command"])
async def test_what_the_real_gateway_sent_is_taken(plugin: Plugin, type_: str) -> None:
    """Of `GOODBOT_RECORD=1 make test-agents`, with the receipts that the real core gave."""
    kept = json.loads((RECORDED / f"{type_}.json").read_text())
    assert kept
    for one in kept:
        assert valid(one["event"])
        receipt = await plugin.one(one["event"])
        assert receipt["id"] == one["event"]["id"]
        if one["receipt"] is None:  # goodbot was stopping, and it came again
            continue
        assert one["receipt"]["id"] == one["event"]["id"]
        refused = one["receipt"]["outcome"] == "denied" and "for owners" in one["receipt"]["text"]
        assert (receipt["outcome"] == "denied") is refused
