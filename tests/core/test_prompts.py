# SPDX-License-Identifier: Apache-2.0
"""What the model is shown never overflows its context, and says what it cannot see."""

from __future__ import annotations

from pathlib import Path

import goodbot_training
import pytest
from goodbot.api.actions import HINTS
from goodbot.api.events import MessageEvent, OrderKey, Outcome
from goodbot.config import ServingConfig
from goodbot.inference import prompts
from goodbot.inference.prompts import Room, TooLongError
from goodbot.learning.training.settings import shape
from goodbot.store import turns
from goodbot.store.turns import PastExchange
from hypothesis import example, given
from hypothesis import strategies as st

from tests.core.builders import CHANNEL, OWNER, open_bot, turn

ROOM = Room(context=1000, answer=200, history=600)
LARGE = Room(context=0, answer=200, history=600)
TEXT = st.text(max_size=400)


def exchange(number: int, question: str = "q", answer: str = "a", **counted: int) -> PastExchange:
    return PastExchange(turn=f"t{number}", talker="loopback:ada", question=question, answer=answer, **counted)


def tokens(prompt: prompts.Prompt) -> int:
    """By the worst vocabulary that there is, with eight around each message and a word before."""
    return sum(len(str(m["content"]).encode()) + 8 for m in prompt.messages) + 50


@given(st.lists(st.tuples(TEXT, TEXT), max_size=12), TEXT, TEXT)
@example([("", "")] * 80, "", "")  # what is around a message counts, if it says nothing, too
def test_what_is_shown_fits_with_the_answer(said: list[tuple[str, str]], system: str, text: str) -> None:
    earlier = [exchange(n, question, answer) for n, (question, answer) in enumerate(said)]
    try:
        prompt = prompts.compose(system, earlier, text, ROOM)
    except TooLongError:
        assert len((system + text).encode()) > 1000
        return
    kept = len(prompt.context)
    if kept:
        assert tokens(prompt) + ROOM.answer <= ROOM.context
    assert prompt.messages[-1] == {"role": "user", "content": text}
    assert prompt.context == tuple((e.turn, e.talker) for e in earlier[len(earlier) - kept :])
    assert len(prompt.messages) == bool(system) + 2 * kept + 1


def test_the_oldest_give_way_first_and_none_is_cut_out_of_the_middle() -> None:
    earlier = [exchange(0), exchange(1, "x" * 2000), exchange(2), exchange(3)]
    prompt = prompts.compose("", earlier, "now?", LARGE)
    assert [turn for turn, _ in prompt.context] == ["t2", "t3"]


def test_answers_cost_what_they_were_sampled_as() -> None:
    dense = exchange(0, answer="x" * 100, answer_tokens=590)
    sparse = exchange(0, answer="x" * 2000, answer_tokens=100)
    for room in (ROOM, LARGE):
        assert prompts.compose("", [dense], "now?", room).context == ()
        assert len(prompts.compose("", [sparse], "now?", room).context) == 1


def test_a_vocabulary_is_known_by_what_its_prompts_cost() -> None:
    """900 bytes of a question: half as many tokens as a rule, as many as bytes for some."""
    asked = {"prompt_bytes": 1000, "prompt_messages": 1, "answer_tokens": 5}
    large = exchange(0, "x" * 900, "a", prompt_tokens=220, **asked)
    small = exchange(0, "x" * 900, "a", prompt_tokens=1000, **asked)
    for room in (ROOM, LARGE):
        assert len(prompts.compose("", [large], "now?", room).context) == 1
        assert prompts.compose("", [small], "now?", room).context == ()


def test_a_question_without_room_for_more_is_asked_alone_and_a_longer_one_refused() -> None:
    assert prompts.compose("", [exchange(0)], "x" * 1400, ROOM).context == ()
    with pytest.raises(TooLongError, match=r"send me about \d+ characters of it") as refused:
        prompts.compose("", [], "x" * 1600, ROOM)
    fits = refused.value.reason.facts["most"]
    assert 1400 <= fits < 1600
    assert prompts.compose("", [], "x" * fits, ROOM).messages
    system = "be kind " * 200
    with pytest.raises(TooLongError, match="about 10 characters"):
        prompts.compose(system, [], "x" * 1600, Room(context=800, answer=100))
    with pytest.raises(TooLongError):
        prompts.compose("be kind " * 2000, [], "", Room(context=800, answer=100))
    assert len(prompts.compose("", [exchange(0)], "x" * 9000, LARGE).context) == 1


def test_a_small_context_leaves_room_for_the_question() -> None:
    tiny = Room(context=400, answer=512, history=600)
    assert prompts.compose("", [], "x" * 200, tiny).messages


def test_what_a_model_says_of_itself_is_believed() -> None:
    shipped = Path(goodbot_training.__file__).parent / "tiny" / "model"
    room = Room.of(shape(shipped), ServingConfig(max_tokens=100, history_tokens=300))
    assert room == Room(context=1024, answer=100, history=300, density=1.0)
    assert Room.of(None, ServingConfig()) == Room(context=0, answer=512, history=2048)


def test_another_answer_drops_the_oldest_exchanges_where_it_must() -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "x" * 1000},
        {"role": "assistant", "content": "first"},
        {"role": "user", "content": "second"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "third"},
    ]
    earlier = turn("t3", messages=messages, response="3", context=(("t1", "a"), ("t2", "a")))
    hint, notes = HINTS["wrong"], "n" * 250
    prompt = prompts.again(earlier, hint, Room(context=500, answer=100, history=0), "Be kind.", notes=notes)
    assert [m["content"] for m in prompt.messages] == ["Be kind.", "second", "2", "third", "3", hint.told]
    assert prompt.context == (("t2", "a"), ("t3", "loopback:owner"))
    with pytest.raises(TooLongError, match="too long for me to try again"):
        prompts.again(earlier, hint, Room(context=130, answer=10, history=0), "Be kind.")
    fits = prompts.again(earlier, hint, Room(context=2000, answer=100, history=0), "", notes=notes)
    assert fits.messages[0] == {"role": "system", "content": notes}
    assert [m["role"] for m in fits.messages].count("system") == 1


async def test_a_long_conversation_is_shown_as_far_as_it_fits(tmp_path: Path) -> None:
    async with open_bot(tmp_path, history=8) as bot:
        for number in range(8):
            await bot.say(f"{number} " + "word " * 800)
        last = await bot.say("And now?")
        shown = await bot.store.read(lambda db: turns.get(db, last.turn))
        assert shown is not None
        assert 1 <= len(shown.context) < 8


# -- what was attached


async def test_a_message_of_files_alone_is_answered_in_private_and_not_by_the_model(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        event = MessageEvent(
            event_id="m",
            order=OrderKey(1),
            user=OWNER,
            channel=CHANNEL,
            message_id="m",
            text=" ",
            addressed=True,
            attachments=("image",),
        )
        [receipt] = await bot.chat.host.submit([event])
        assert receipt.outcome is Outcome.IGNORED
        assert "text only" in receipt.text
        assert (await bot.chat.host.submit([event]))[0].text == receipt.text
        await bot.say("next")
        assert [answer.text for answer in bot.replies] == ["v0 says: next"]


async def test_what_was_attached_to_words_is_noted_in_the_prompt(tmp_path: Path) -> None:
    async with open_bot(tmp_path, history=8) as bot:
        event = MessageEvent(
            event_id="m",
            order=OrderKey(1),
            user=OWNER,
            channel=CHANNEL,
            message_id="m",
            text="What is it?",
            addressed=True,
            attachments=("image", "file a\n\x00b" + "c" * 500 + ".pdf", *["x"] * 100),
        )
        await bot.chat.host.submit([event])
        last = await bot.say("And now?")
        shown = await bot.store.read(lambda db: turns.get(db, last.turn))
        assert shown is not None
        asked = str(shown.messages[0]["content"])
        assert asked.startswith("What is it?\n\n[Attached, and not visible to you: image, file a ")
        assert len(asked) < 250
