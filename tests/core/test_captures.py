# SPDX-License-Identifier: Apache-2.0
"""Answers that other programs have given: turns like ours, once each, whoever has seen them."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    ChannelRef,
    CommandEvent,
    OrderKey,
    Outcome,
    RatingEvent,
    Receipt,
    UserRef,
)
from goodbot.api.turns import Turn, turn_id
from goodbot.conversation import capture_rules
from goodbot.store import turns

from tests.core.builders import CHANNEL, GRANTS, OWNER, Bot, open_bot, rate, rows, until

QUESTION = {"role": "user", "content": "What is 2 + 2?"}


@dataclasses.dataclass(frozen=True)
class Place:
    """A connector's view: who speaks there, and where."""

    user: UserRef
    channel: ChannelRef


HERE = Place(OWNER, CHANNEL)


def elsewhere(id_: str = "me") -> Place:
    """Another connector, one that the daemon has no code for: only its grants count."""
    user = UserRef(connector="agent", account="local", id=id_)
    channel = ChannelRef(connector="agent", account="local", id=id_, kind=ChannelKind.PRIVATE)
    return Place(user, channel)


def capture(event_id: str, at: Place = HERE, **fields: Any) -> CaptureEvent:
    given: dict[str, Any] = {"messages": (QUESTION,), "response": "4", "model": "cloud-1"}
    return CaptureEvent(
        event_id=event_id, order=OrderKey(1), user=at.user, channel=at.channel, **{**given, **fields}
    )


def rating(event_id: str, value: float = 1.0, at: Place = HERE, **fields: Any) -> RatingEvent:
    made = rate(event_id, 5, value, user=at.user, channel=at.channel, source="command")
    return dataclasses.replace(made, **{"message_id": "", **fields})


async def submit(bot: Bot, *events: Any) -> tuple[Receipt, ...]:
    """As the connector of their user would."""
    return await bot.app.dispatcher.submit(events, events[0].user.connector)


async def one(bot: Bot, *events: Any) -> Receipt:
    return (await submit(bot, *events))[-1]


async def stored(bot: Bot, turn: str) -> Turn:
    found = await bot.store.read(lambda db: turns.get(db, turn))
    assert found is not None
    return found


async def rewards(bot: Bot) -> dict[str, float]:
    return dict(await rows(bot.store, "SELECT turn, value FROM labels"))


async def count(bot: Bot, table: str) -> int:
    return (await rows(bot.store, f"SELECT count(*) FROM {table}"))[0][0]


class Plugin:
    """Sees every turn, and lets none with a word of its choice train."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.forbidden = "secret"

    @hookimpl
    def on_turn(self, turn: Turn) -> None:
        self.seen.append(turn.id)

    @hookimpl
    def veto_capture(self, turn: Turn) -> str | None:
        return "not that" if self.forbidden in turn.response else None


@pytest.fixture
async def bot(tmp_path: Path, plugin: Plugin) -> AsyncGenerator[Bot]:
    async with open_bot(tmp_path, extra=(plugin,)) as opened:
        config = opened.app.authorization._config
        config["agent"] = dataclasses.replace(GRANTS, owners=("me",), talkers=("talker", "other"))
        yield opened


@pytest.fixture
def plugin() -> Plugin:
    return Plugin()


async def test_a_captured_answer_is_a_turn_and_is_rated_by_turn_and_by_message(
    bot: Bot, plugin: Plugin
) -> None:
    receipt = await one(bot, capture("a", message_id="msg"))
    assert (receipt.outcome, receipt.turn) == (Outcome.ACCEPTED, turn_id(capture("a")))
    turn = await stored(bot, receipt.turn)
    assert (turn.origin, turn.response, list(turn.messages)) == ("captured", "4", [QUESTION])
    assert (turn.answered_by, turn.version, turn.model) == ("cloud-1", 0, bot.app.model.name)
    by_turn = await one(bot, rating("r1", turn=receipt.turn))
    assert (by_turn.outcome, by_turn.turn) == (Outcome.ACCEPTED, receipt.turn)
    await one(bot, rating("r2", -1.0, message_id="msg"))
    assert await rewards(bot) == {receipt.turn: -1.0}
    await until(lambda: plugin.seen == [receipt.turn])


async def test_a_rating_and_its_capture_in_one_submit(bot: Bot) -> None:
    event = capture("a", message_id="msg")
    [taken, rated] = await submit(bot, event, rating("r", turn=turn_id(event)))
    assert rated.turn == taken.turn


async def test_a_capture_that_comes_again_is_stored_once(tmp_path: Path) -> None:
    event = capture("a", digest="d")
    async with open_bot(tmp_path) as bot:
        first = await one(bot, event)
        again = await one(bot, event, event)
        assert again == first
        assert again.duplicate
        assert not first.duplicate
    async with open_bot(tmp_path) as bot:
        assert await one(bot, event) == first
        await bot.store.write(lambda db: db.execute("DELETE FROM inbox"))  # its receipt expired
        assert (await one(bot, event)).turn == first.turn
        assert await count(bot, "turns") == 1


async def test_an_id_that_is_used_for_something_else_is_refused(bot: Bot) -> None:
    first = await one(bot, capture("a", digest="one"))
    refused = await one(bot, capture("a", digest="two", response="5"))
    assert refused.outcome is Outcome.CONFLICT
    assert "id was used before" in refused.text
    assert (await one(bot, capture("a"))).outcome is Outcome.ACCEPTED  # it says nothing of itself
    assert (await stored(bot, first.turn)).response == "4"
    await one(bot, rating("r", turn=first.turn, digest="one"))
    assert (await one(bot, rating("r", -1.0, turn=first.turn, digest="two"))).outcome is (Outcome.CONFLICT)
    assert await rewards(bot) == {first.turn: 1.0}
    command = CommandEvent(
        event_id="c", order=OrderKey(1), user=OWNER, channel=CHANNEL, name="help", digest="one"
    )
    await one(bot, command)
    await bot.command("status")  # commands are done in their order
    refused = await one(bot, dataclasses.replace(command, name="status", digest="two"))
    assert refused.outcome is Outcome.CONFLICT
    again = await one(bot, command)
    assert (again.digest, again.duplicate) == ("one", True)
    assert again.text


async def test_whoever_may_not_talk_brings_nothing_in(bot: Bot, plugin: Plugin) -> None:
    stranger = elsewhere("stranger")
    receipt = await one(bot, capture("a", stranger))
    assert receipt.outcome is Outcome.DENIED
    assert "agent:stranger may not talk" in receipt.text
    room = dataclasses.replace(CHANNEL, id="room", kind=ChannelKind.SHARED)
    assert (await one(bot, capture("b", Place(OWNER, room)))).outcome is Outcome.DENIED
    assert await count(bot, "turns") == 0
    assert (await one(bot, capture("a", elsewhere("talker")))).outcome is Outcome.ACCEPTED


async def test_what_a_plugin_forbids_is_kept_and_never_trains(bot: Bot) -> None:
    receipt = await one(bot, capture("a", response="a secret"))
    await one(bot, rating("r", turn=receipt.turn))
    assert await rows(bot.store, "SELECT trainable, rated FROM turns") == [(0, 1)]
    assert "0 of 8" in await bot.command("status")


async def test_a_rating_that_came_first_waits_for_its_capture(bot: Bot) -> None:
    early = await one(bot, rating("r", -1.0, message_id="msg"))
    assert early.outcome is Outcome.UNKNOWN_TARGET
    receipt = await one(bot, capture("a", message_id="msg"))
    assert await rewards(bot) == {receipt.turn: -1.0}


@pytest.mark.parametrize("first", ["proxy", "hook"])
async def test_two_connectors_that_see_one_call_make_one_turn(bot: Bot, first: str) -> None:
    agent = elsewhere()
    proxy = capture(
        "p",
        trace="w3c:1",
        message_id="of-proxy",
        model="",
        version=0,
        tokens=(5, 6),
        prompt_tokens=(1,),
        logprobs=(-0.5, -0.25),
    )
    hook = capture("h", agent, trace="w3c:1", message_id="of-hook", response=" 4 ")
    events = [proxy, hook] if first == "proxy" else [hook, proxy]
    [made] = await submit(bot, events[0])
    [joined] = await submit(bot, events[1])
    assert made.turn == joined.turn
    assert await count(bot, "turns") == 1
    turn = await stored(bot, made.turn)
    assert (turn.tokens, turn.answered_by, turn.response) == ((5, 6), "", "4")
    assert (await one(bot, rating("r1", message_id="of-proxy"))).turn == made.turn
    assert (await one(bot, rating("r2", at=agent, message_id="of-hook"))).turn == made.turn
    assert (await one(bot, rating("r3", at=agent, turn=made.turn))).turn == made.turn
    stranger = Place(agent.user, dataclasses.replace(agent.channel, id="another"))
    assert (await one(bot, rating("r4", at=stranger, turn=made.turn))).outcome is (Outcome.UNKNOWN_TARGET)


async def test_of_several_calls_of_a_trace_the_one_with_the_same_words_is_meant(bot: Bot) -> None:
    first, second, third = [
        await one(bot, capture(f"p{n}", trace="codex:1", response=words))
        for n, words in enumerate(["let me see", "the answer is 4", "a title"])
    ]
    agent = elsewhere()
    same = await one(bot, capture("h", agent, trace="codex:1", response="the answer is 4\n"))
    other = await one(bot, capture("h2", agent, trace="codex:1", response="what nobody has said"))
    assert same.turn == second.turn
    # Which of them the words of nobody are of would be a guess.
    assert len({first.turn, second.turn, third.turn, other.turn}) == 4
    assert (await one(bot, capture("x", agent, trace="codex:2"))).turn not in (
        first.turn,
        second.turn,
        third.turn,
    )


async def test_a_hook_that_overtakes_the_proxy_is_given_to_the_call_that_it_is_of(bot: Bot) -> None:
    agent = elsewhere()
    early = await one(bot, capture("p1", trace="codex:1", response="let me see"))
    hook = await one(bot, capture("h", agent, trace="codex:1", response="it is 4", message_id="m"))
    assert hook.turn == early.turn
    await one(bot, rating("r", -1.0, at=agent, message_id="m"))
    late = await one(bot, capture("p2", trace="codex:1", response="it is 4"))
    assert late.turn != early.turn
    assert await rewards(bot) == {late.turn: -1.0}
    assert (await one(bot, rating("r2", at=agent, message_id="m"))).turn == late.turn


async def test_what_was_trained_on_is_not_rewritten(bot: Bot) -> None:
    agent = elsewhere()
    hook = await one(bot, capture("h", agent, trace="w3c:1", response="from the hook"))
    await bot.store.write(lambda db: db.execute("UPDATE turns SET spent = 1 WHERE id = ?", (hook.turn,)))
    known: dict[str, Any] = {"trace": "w3c:1", "model": "", "version": 0}
    await one(bot, capture("p", response="from the proxy", **known))
    assert (await stored(bot, hook.turn)).response == "from the hook"


async def test_a_rating_stays_with_the_words_that_it_is_of(bot: Bot) -> None:
    agent = elsewhere()
    known: dict[str, Any] = {"model": "", "version": 0, "tokens": (5,)}
    for number, words in enumerate(("from  the hook", "from the proxy")):
        trace = f"w3c:{number}"
        hook = await one(bot, capture(f"h{number}", agent, trace=trace, response="from the hook"))
        await one(bot, rating(f"r{number}", at=agent, turn=hook.turn))
        joined = await one(bot, capture(f"p{number}", trace=trace, response=words, **known))
        assert joined.turn == hook.turn
        turn = await stored(bot, hook.turn)
        assert turn.response.split() == ["from", "the", "hook"]
        assert turn.tokens == ((5,) if number == 0 else ())


async def test_nobody_puts_words_into_the_turn_of_somebody_who_may_do_more(bot: Bot) -> None:
    hook = await one(bot, capture("h", trace="w3c:1", response="of the owner"))
    known: dict[str, Any] = {"trace": "w3c:1", "model": "", "version": 0}
    joined = await one(bot, capture("p", elsewhere("talker"), response="of a talker", **known))
    assert joined.turn == hook.turn
    assert (await stored(bot, hook.turn)).response == "of the owner"
    hook = await one(bot, capture("h2", trace="w3c:2", response="of the owner"))
    known["trace"] = "w3c:2"
    await one(bot, capture("p2", elsewhere("other"), response="of the  owner", **known))
    assert (await stored(bot, hook.turn)).answered_by == ""


async def test_a_side_call_is_kept_and_neither_rated_nor_shown_nor_trained(bot: Bot) -> None:
    side = await one(bot, capture("s", kind="side", message_id="m", trace="w3c:1"))
    assert (await stored(bot, side.turn)).kind == "side"
    by_turn = await one(bot, rating("r1", turn=side.turn))
    assert by_turn.outcome is Outcome.UNKNOWN_TARGET
    await one(bot, rating("r2", message_id="m"))
    assert await rewards(bot) == {}
    assert "no answer here yet" in await bot.command("good")
    assert "there is no answer" in await bot.command("good", side.turn)
    main = await one(bot, capture("h", elsewhere(), trace="w3c:1"))
    assert main.turn != side.turn
    assert await rows(bot.store, "SELECT trainable FROM turns WHERE kind = 'side'") == [(0,)]


def deep(levels: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"role": "user", "content": "x"}
    for _ in range(levels):
        inner = {"role": "user", "content": "x", "more": inner}
    return inner


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"event_id": "x" * 513}, "event_id is too long"),
        ({"event_id": ""}, "no event_id"),
        ({"event_id": "\ud800"}, "half a character"),
        ({"trace": "x" * 513}, "trace is too long"),
        ({"message_id": "x" * 513}, "message_id is too long"),
        ({"model": "x" * 513}, "model is too long"),
        ({"digest": "x" * 513}, "digest is too long"),
        ({"messages": ()}, "1 to 20000 messages"),
        ({"messages": ({"content": "x"},)}, "needs a role"),
        ({"messages": (deep(170),)}, "nested 160 deep"),
        ({"messages": ({"role": "user", "n": float("nan")},)}, "numbers that JSON knows"),
        ({"response": "x" * (8 << 20)}, "too large"),
        ({"kind": "other"}, "`main` or `side`"),
        ({"temperature": float("inf")}, "temperature"),
        ({"version": -1}, "version"),
        ({"tokens": (1, 2), "logprobs": (-1.0,)}, "one log-prob a token"),
        ({"tokens": (1,), "logprobs": (float("nan"),)}, "log-probs must be numbers"),
        ({"tokens": (1 << 31,)}, "tokens must be"),
    ],
)
async def test_what_cannot_be_stored_is_refused_with_the_reason(
    bot: Bot, fields: dict[str, Any], said: str
) -> None:
    receipt = await one(bot, dataclasses.replace(capture("a"), **fields))
    assert receipt.outcome is Outcome.FAILED
    assert said in receipt.text
    assert await count(bot, "turns") == 0


async def test_words_are_stored_as_a_database_takes_them(bot: Bot) -> None:
    parts = [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "x"}}]
    call = {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": "\ud800"}'}}
        ],
    }
    result = {"role": "tool", "tool_call_id": "1", "content": "4"}
    messages = ({"role": "user", "content": parts}, call, result)
    receipt = await one(bot, capture("a", messages=messages, response="it \ud800 is"))
    turn = await stored(bot, receipt.turn)
    asked, called, answered = turn.messages
    assert asked["content"] == "Look:\n[image]"
    assert called["content"] == ""
    assert called["tool_calls"][0]["function"]["arguments"] == '{"a": "\ufffd"}'
    assert answered == result
    assert turn.response == "it \ufffd is"
    history = await bot.command("history")
    assert "Look:" in history  # not the result of the tool


async def test_a_version_that_we_do_not_have_is_none_of_ours(bot: Bot) -> None:
    receipt = await one(bot, capture("a", model="ours", version=99))
    assert (await stored(bot, receipt.turn)).answered_by == "ours"
    unknown = await one(bot, capture("b", model="", version=None))
    assert (await stored(bot, unknown.turn)).answered_by == bot.app.model.name


async def test_forgetting_finds_whoever_was_seen_through_another_connector(bot: Bot) -> None:
    agent = elsewhere("talker")
    proxy = await one(bot, capture("p", trace="w3c:1"))
    await one(bot, capture("h", agent, trace="w3c:1"))
    await bot.command("forget", "agent:talker")
    await bot.command("forget", "agent:talker yes")
    left = [row[0] for row in await rows(bot.store, "SELECT id FROM turns")]
    assert proxy.turn not in left
    assert await count(bot, "traces") == 0


async def test_forgetting_finds_the_other_calls_of_the_same_run_of_an_agent(bot: Bot) -> None:
    agent = elsewhere("talker")
    steps = [
        await one(bot, capture(f"p{n}", trace="w3c:1", response=words))
        for n, words in enumerate(["let me see", "it is 4"])
    ]
    other = await one(bot, capture("p", trace="w3c:2"))
    hook = await one(bot, capture("h", agent, trace="w3c:1", response="it is 4"))
    assert hook.turn == steps[1].turn
    await bot.command("forget", "agent:talker")
    await bot.command("forget", "agent:talker yes")
    assert await rows(bot.store, "SELECT id FROM turns") == [(other.turn,)]


def group(name: str, who: str) -> Place:
    channel = ChannelRef(connector="agent", account="local", id=name, kind=ChannelKind.SHARED)
    return Place(elsewhere(who).user, channel)


async def test_forgetting_leaves_the_groups_alone_that_somebody_was_not_in(bot: Bot) -> None:
    calls: list[dict[str, Any]] = [
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "tool", "tool_call_id": "1", "content": "a result"},
    ]
    system, earlier = {"role": "system", "content": "Be kind."}, {**QUESTION, "content": "before"}
    prompt = (system, earlier, {"role": "assistant", "content": "yes"}, QUESTION, *calls)
    words = "the one secret of mine"
    theirs = ({**QUESTION, "content": words}, *calls)
    for name in ("one", "two"):
        await bot.store.write(
            lambda db, name=name: db.execute(
                "INSERT INTO channels (connector, account, channel, enabled_by, enabled_at)"
                " VALUES ('agent', 'local', ?, 'agent:me', 1)",
                (name,),
            )
        )
    here = await one(bot, capture("a", group("one", "me"), messages=prompt))
    there = await one(bot, capture("b", group("two", "me"), messages=prompt))
    quoted = await one(bot, capture("q", group("one", "me"), messages=prompt, response=f"I know {words}"))
    await one(bot, capture("c", group("one", "talker"), messages=theirs))
    await bot.command("forget", "agent:talker")
    await bot.command("forget", "agent:talker yes")
    assert [m["content"] for m in (await stored(bot, here.turn)).messages] == [
        "Be kind.",
        QUESTION["content"],
        "",
        "a result",
    ]
    assert (await stored(bot, there.turn)).messages == list(prompt)
    assert await bot.store.read(lambda db: turns.get(db, quoted.turn)) is None


async def test_captures_expire_like_our_own_answers(bot: Bot) -> None:
    await one(bot, capture("a", trace="w3c:1", message_id="m"))
    kept = await one(bot, capture("b"))
    await one(bot, rating("r", turn=kept.turn))
    await bot.store.write(lambda db: turns.expire(db, 4e9))
    assert [row[0] for row in await rows(bot.store, "SELECT id FROM turns")] == [kept.turn]
    assert (await count(bot, "traces"), await count(bot, "messages")) == (0, 0)


async def test_the_newest_of_a_program_s_answers_is_not_guessed_at(bot: Bot) -> None:
    receipt = await one(bot, capture("a"))
    assert "say which answer you mean" in await bot.command("good")
    assert await rewards(bot) == {}
    assert "Good." in await bot.command("good", receipt.turn)
    assert await rewards(bot) == {receipt.turn: 1.0}
    await bot.command("undo")
    assert await rewards(bot) == {}


def test_a_captured_answer_is_stored_without_the_thought_that_it_begins_with() -> None:
    seen = capture_rules.storable(capture("1", response="<think>\nHm.\n</think>\n\nGreen."))
    assert (seen.response, seen.thought) == ("Green.", "Hm.")
    mentioned = capture_rules.storable(capture("1", response="Write <think> first."))
    assert (mentioned.response, mentioned.thought) == ("Write <think> first.", "")
    tags = "<answer>4</answer>"
    asked = {"role": "user", "content": f"2 + 2? Write {tags}."}
    wrapped = f"<think>Hm.</think>{tags}"
    assert capture_rules.storable(capture("1", response=wrapped)).response == "4"
    assert capture_rules.storable(capture("1", response=wrapped, messages=(asked,))).response == tags


# -- numbers that mean nothing

NUMBERS: dict[str, Any] = {"version": 0, "prompt_tokens": (1, 5), "tokens": (7, 8), "logprobs": (-0.5, -0.25)}


@pytest.fixture
async def small(tmp_path: Path) -> AsyncGenerator[Bot]:
    """A goodbot whose model knows ten token ids."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/config.json").write_text('{"model_type": "fake", "vocab_size": 10}')
    async with open_bot(tmp_path) as bot:
        yield bot


async def test_s5_numbers_of_our_own_model_are_kept(small: Bot) -> None:
    turn = await stored(small, (await one(small, capture("a", **NUMBERS))).turn)
    assert (turn.prompt_tokens, turn.tokens, turn.logprobs) == ((1, 5), (7, 8), (-0.5, -0.25))


@pytest.mark.parametrize(
    "odd",
    [
        {"tokens": (7, 10)},
        {"tokens": (2_000_000_000, 7)},
        {"prompt_tokens": (1, 10)},
        {"logprobs": (-0.5, 0.5)},
    ],
)
async def test_s5_an_answer_with_numbers_that_the_model_cannot_have_keeps_its_words(
    small: Bot, odd: dict[str, Any]
) -> None:
    receipt = await one(small, capture("a", thought="Hm.", **{**NUMBERS, **odd}))
    assert receipt.outcome is Outcome.ACCEPTED
    turn = await stored(small, receipt.turn)
    assert (turn.response, turn.thought) == ("4", "Hm.")
    assert (turn.prompt_tokens, turn.tokens, turn.logprobs, turn.lifts) == ((), (), (), ())
    assert turn.thought_tokens == 0


async def test_s5_a_second_sight_of_the_same_call_brings_no_such_numbers_either(small: Bot) -> None:
    first = await one(small, capture("a", trace="t"))
    await one(small, capture("b", trace="t", **{**NUMBERS, "tokens": (7, 10)}))
    assert (await stored(small, first.turn)).tokens == ()


async def test_s5_a_model_server_that_lies_about_its_tokens_has_its_words_kept(tmp_path: Path) -> None:
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/config.json").write_text('{"model_type": "fake", "vocab_size": 4}')
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        [(turn,)] = await rows(bot.store, "SELECT id FROM turns")
        kept = await stored(bot, turn)
        assert kept.response in answer.text
        assert (kept.prompt_tokens, kept.tokens, kept.logprobs) == ((), (), ())
