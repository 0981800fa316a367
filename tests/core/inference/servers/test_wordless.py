# SPDX-License-Identifier: Apache-2.0
"""What people see of a thought: that it lasts, and a true sentence where no answer followed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from goodbot.api import marks
from goodbot.api.server import Generated, GenerateRequest
from goodbot.api.texts import say
from goodbot.api.turns import Turn
from goodbot.base.thoughts import Thought
from goodbot.conversation.generate import Generator
from goodbot.inference.servers.wordless import Wordless

from tests.core.made import turn

REQUEST = GenerateRequest(messages=[], max_tokens=64, temperature=1.0, seed=1)
WHOLE = Generated(text="Green.", version=0, finish="stop", thought="Hm.")


class Shown:
    """A stream of a chat."""

    language = ""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def note(self, text: str) -> None:
        self.seen.append(f"({text})")

    async def append(self, text: str) -> None:
        self.seen.append(text)


async def shown(pieces: Sequence[tuple[float, Any]], label: str = "") -> list[str]:
    """What a chat shows of an answer whose pieces come at these times."""
    times = iter(at for at, _ in pieces)

    async def generate(_: GenerateRequest) -> AsyncGenerator[Any]:
        for _, piece in pieces:
            yield piece

    writer: Any = SimpleNamespace(
        _server=SimpleNamespace(generate=generate),
        _model=SimpleNamespace(label=label),
        _clock=SimpleNamespace(monotonic=lambda: next(times)),
    )
    stream: Any = Shown()
    assert await Generator._streamed(writer, REQUEST, stream) == WHOLE
    return stream.seen


async def test_a_thought_that_lasts_is_told_once_before_the_first_word() -> None:
    pieces = [(0, Thought("H")), (1, Thought("m")), (3, Thought(".")), (9, Thought(" ")), (9, "Green.")]
    assert await shown([*pieces, (9, WHOLE)]) == [f"({say('thinking')})", "Green."]


async def test_a_short_one_is_not_and_neither_is_one_behind_words() -> None:
    assert await shown([(0, Thought("Hm.")), (1, "Green."), (1, WHOLE)]) == ["Green."]
    late = [(0, "Gre"), (5, Thought("hm")), (9, Thought("hm")), (9, "en."), (9, WHOLE)]
    assert await shown(late) == ["Gre", "en."]
    assert await shown([(0, Thought("H")), (9, Thought("m")), (9, WHOLE)], label="[demo] ") == []


@pytest.mark.parametrize(
    ("finish", "words"), [("length", "no room left to answer"), ("stop", "found no answer")]
)
def test_why_there_is_no_answer_is_true(finish: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    made: Turn = turn("t1", response="", thought="Hm.")
    wordless = Wordless()
    wordless.note(made, Generated(text=" ", version=0, finish=finish, thought="Hm."))
    assert words in wordless.text(made, "en")
    assert ("max_tokens" in caplog.text) is (finish == "length")
    assert "found no answer" in Wordless().text(made, "en")  # after a restart
    assert Wordless().text(turn("t2", response=""), "en") == "(The model gave an empty answer.)"


TEMPLATES = {
    "{{ messages }}": ("", ""),
    "{% if enable_thinking %}<think>{% endif %}": ("can think", "thinks before"),
    "{{ '<think>\\n' }}": ("thinks before", "thinks before"),
    "{{ '<|channel|>analysis<|message|>' }}": ("thinks before", "thinks before"),
    "{{ '<thinking>' }}": ("thinks before", "thinks before"),
}


@pytest.mark.parametrize("template", TEMPLATES)
def test_it_is_said_whether_a_model_thinks(tmp_path: Path, template: str) -> None:
    (tmp_path / "chat_template.jinja").write_text(template, encoding="utf-8")
    for on, words in zip((False, True), TEMPLATES[template], strict=True):
        told = marks.thinks(tmp_path, thinking=on)
        assert words in told
        assert bool(told) is bool(words)
        assert ("/rl thought" in told) is ("thinks before" in told)
