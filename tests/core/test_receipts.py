# SPDX-License-Identifier: Apache-2.0
"""A receipt is stored as codes and facts, and told in words where it goes out."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import sentences
from goodbot.api.events import OrderKey, Outcome, RatingEvent, RatingKind
from goodbot.api.sentences import Reason, because, words
from goodbot.api.texts import LANGUAGES
from goodbot.base.worded import Worded
from goodbot.store import codec

from tests.architecture.source import modules
from tests.core.builders import CHANNEL, OWNER, open_bot, rate, rows
from tests.core.store.golden import state_of_0_1_0
from tests.core.test_dispatcher import message


async def stored(bot: Any, table: str = "events") -> list[dict[str, Any]]:
    return [json.loads(text) for (text,) in await rows(bot.store, f"SELECT receipt FROM {table}")]


async def test_a_rating_is_stored_as_data_and_told_in_words(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        event = rate("r1", 5, -1.0, message_id=answer.message.id)
        [first] = await bot.chat.host.submit([event])
        assert first.text.startswith("Bad. 1 of 8 ratings (7 to go).")
        [kept] = await stored(bot)
        assert kept["x"] == ""
        assert kept["r"][:2] == [["bad", {}], ["until", {"available": 1, "needed": 8}]]
        facts = [fact for _, given in kept["r"] for fact in given.values()]
        assert all(isinstance(fact, int) for fact in facts), "it outlives what others say, and names nobody"
        [again] = await bot.chat.host.submit([event])
        assert (again.text, again.reasons, again.duplicate) == (first.text, first.reasons, True)


async def test_what_an_older_goodbot_has_stored_as_words_is_still_said(tmp_path: Path) -> None:
    state_of_0_1_0(tmp_path / "bot")
    typed = message("m1")
    async with open_bot(tmp_path) as bot:
        [rating, command] = await bot.chat.host.submit([rate("m4", 4, 1.0), typed])
        assert rating.text == "Good. 1 of 8 until the next training."
        assert rating.duplicate
        assert command.text == "Your private chats may train what others talk to."
        await bot.say("And now?")


async def test_a_refused_command_is_stored_as_data(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert await bot.command("train", user="rater") == "`train` is for the owners of this bot."
        [kept] = await stored(bot, "inbox")
        assert (kept["x"], kept["r"]) == ("", [["no_owner", {"command": "train"}]])


async def test_what_a_stranger_was_told_goes_with_what_others_said(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?", user="nobody")
        assert "/rl people grant talker loopback:nobody" in answer.text
        assert any(kept.get("r") for kept in await stored(bot, "inbox"))
        await bot.rated(1, user="rater")
        await bot.command("forget", "me", user="rater")
        await bot.command("forget", "me yes", user="rater")
        assert not any(kept.get("r") for kept in await stored(bot, "inbox"))


@pytest.mark.parametrize("text", ["", "x" * 20_000])
async def test_what_cannot_be_kept_says_why(tmp_path: Path, text: str) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        event = RatingEvent(
            event_id="c",
            order=OrderKey(5),
            user=OWNER,
            channel=CHANNEL,
            kind=RatingKind.COMMENT,
            turn=answer.turn,
            text=text,
        )
        [receipt] = await bot.chat.host.submit([event])
        assert receipt.outcome is Outcome.FAILED
        assert receipt.text == words(*receipt.reasons) != ""


def test_a_receipt_goes_through_the_store() -> None:
    event = RatingEvent(event_id="e", order=OrderKey(5), user=OWNER, channel=CHANNEL, kind=RatingKind.RATE)
    receipt = event.receipt(Outcome.DENIED, None, because("no_owner", command="train"))
    assert receipt.text == "`train` is for the owners of this bot."
    assert codec.load_receipt(codec.dump_receipt(receipt)) == receipt


def test_what_is_worded_in_a_receipt_is_told_in_the_readers_language_too() -> None:
    event = RatingEvent(event_id="e", order=OrderKey(5), user=OWNER, channel=CHANNEL, kind=RatingKind.RATE)
    why = Worded("v{version} is not loaded", version=3)
    receipt = event.receipt(Outcome.FAILED, None, because("ended_not_live", why=why))
    kept = codec.dump_receipt(receipt)
    assert "v3 ist nicht geladen" in words(*codec.load_receipt(kept).reasons, language="de")
    assert json.loads(codec.worded_receipt(kept))["x"] == receipt.text


def test_of_a_code_that_is_not_known_nothing_is_said() -> None:
    """After a step back to an older goodbot."""
    assert words(Reason("of tomorrow", {"n": 1}), because("paired")).startswith("You are my owner")
    assert words(Reason("stranger")) == ""


def codes(of: ast.expr) -> list[str]:
    """Those that an expression can come to, as far as they are written there."""
    match of:
        case ast.Constant(value=str(code)):
            return [code]
        case ast.IfExp():
            return [*codes(of.body), *codes(of.orelse)]
        case _:
            return []


def test_every_code_that_is_used_has_words() -> None:
    used: dict[str, set[str | None]] = {
        **{kind.value: set() for kind in RatingKind if kind is not RatingKind.RATE},
        **{f"stands_{side}": set() for side in ("good", "bad", "neither")},
        **{
            code: set() for code in ("unused", "from_others", "set_aside", "filtered", "other_model", "used")
        },  # by SQL
    }
    for module in modules():
        for name, call in module.calls():
            if name == "because":
                used |= {code: {one.arg for one in call.keywords} for code in codes(call.args[0])}
    for code, names in used.items():
        if None in names:  # which facts it has is not written there
            continue
        facts: dict[str, Any] = {
            name: {"schedule": "auto", "why": "so"}.get(name, 7) for name in names if name
        }
        if "what" in facts:  # a reason within one
            facts["what"] = Reason("plan_unknown", {})
        for language in LANGUAGES:
            assert words(Reason(code, facts), language=language), f"{code} has no words of {sorted(facts)}"


@pytest.mark.parametrize(
    ("code", "facts", "counted"),
    [
        ("until", {"available": 1, "needed": 2}, ("1 of 2 ratings (1 to go)", 1, 2)),
        ("at_least", {"available": 1, "needed": 2}, ("1 or more of 2 ratings", 1, 2)),
        ("can_start", {"needed": 2}, ("2 of 2 ratings: the next training can start", 2, 2)),
        (
            "rests",
            {"needed": 2},
            ("2 of 2 ratings: the next training can start once an owner types `/rl resume`", 2, 2),
        ),
    ],
)
def test_how_far_the_training_is_is_read_from_data(
    code: str, facts: dict[str, Any], counted: tuple[str, int, int]
) -> None:
    told = [because("stars", stars=4, of=5), Reason(code, facts)]
    assert sentences.counted(told, "en") == dict(zip(("words", "have", "need"), counted, strict=True))
    assert sentences.counted(told[:1], "en") is None
