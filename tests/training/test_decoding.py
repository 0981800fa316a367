# SPDX-License-Identifier: Apache-2.0
"""The sampling loop around a scripted model: pieces, endings, limits."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from goodbot.api.sampler import SampleRequest
from goodbot.base.errors import ServerError
from goodbot.base.thoughts import KNOWN
from goodbot_training.backends.decoding import first_tokens
from goodbot_training.backends.generating import generate, together

END = 256


def _no_thought(_: Sequence[int]) -> None:
    """No prompt here begins one."""


class Bytes:
    """A chat whose tokens are UTF-8 bytes."""

    stops = frozenset({END})

    def __init__(self) -> None:
        self.thoughts = SimpleNamespace(marks=KNOWN, raw=self.text, opened=_no_thought)

    def prompt(self, messages: Sequence[Any], *, thinking: bool | None = False) -> tuple[int, ...]:
        return tuple(messages[-1]["content"].encode())

    def name(self, token: int) -> str:
        return chr(token)

    def text(self, tokens: Sequence[int]) -> str:
        return bytes(tokens).decode(errors="replace")


class Script:
    """A model that says what it is told to, row by row."""

    context = 64

    def __init__(self, *texts: bytes, logprob: float = -0.5) -> None:
        self._rows = [[*text, END] for text in texts]
        self._logprob = logprob
        self.shapes: list[tuple[int, ...]] = []
        self.read_for: list[list[int]] = []
        self._position = 0

    def decoder(self) -> Script:
        self._position = 0
        return self

    def read(self, inputs: Any) -> None:
        self.shapes.append(inputs.shape)

    def select(self, rows: Sequence[int]) -> None:
        self.read_for.append(list(rows))

    def __call__(self, inputs: Any, temperatures: Any, uniforms: Any) -> tuple[list[int], list[float]]:
        self.shapes.append(inputs.shape)
        tokens = [row[min(self._position, len(row) - 1)] for row in self._rows[: len(inputs)]]
        self._position += 1
        return tokens, [self._logprob] * len(tokens)


class Opening(Script):
    """A model whose answers begin with a, b or c, as likely as it is told."""

    def __init__(self, *logprobs: float) -> None:
        super().__init__()
        self._logprobs = [*logprobs]

    def likeliest(self, inputs: Any, top: int) -> tuple[list[int], list[float]]:
        return [*b"abc"], self._logprobs


def ask(text: str = "hi", **changes: Any) -> SampleRequest:
    fields: dict[str, Any] = {"max_tokens": 32} | changes
    return SampleRequest(messages=[{"role": "user", "content": text}], **fields)


def stream(model: Script, **changes: Any) -> tuple[list[str], Any]:
    pieces: list[str] = []
    (answer,) = generate(
        model,
        Bytes(),  # pyright: ignore[reportArgumentType]
        [ask(**changes)],
        lambda text: not pieces.append(text),
    )
    return pieces, answer


def test_no_piece_ends_inside_a_character() -> None:
    pieces, answer = stream(Script("ä 👍!".encode()))
    assert [piece for piece in pieces if piece] == ["ä", " ", "👍", "!"]
    assert answer.text == "ä 👍!"
    assert answer.finish == "stop"
    assert len(answer.tokens) == len(answer.logprobs) == len(pieces) == 2 + 1 + 4 + 1 + 1


def test_an_answer_cut_inside_a_character_still_adds_up() -> None:
    pieces, answer = stream(Script("ab👍".encode()), max_tokens=4)
    assert answer.finish == "length"
    assert "".join(pieces) == answer.text
    assert answer.text.startswith("ab")
    assert len(answer.tokens) == 4


def test_a_long_answer_adds_up_though_only_its_end_is_looked_at() -> None:
    text = "Zwölf Äpfel 👍, und so weiter. " * 9
    chat, looked = Bytes(), list[int]()
    decode = chat.text

    def counted(tokens: Sequence[int]) -> str:
        looked.append(len(tokens))
        return decode(tokens)

    chat.text = counted
    pieces: list[str] = []
    model = Script(text.encode())
    model.context = 1 << 10
    (answer,) = generate(
        model,
        chat,  # pyright: ignore[reportArgumentType]
        [ask(max_tokens=999)],
        lambda piece: not pieces.append(piece),
    )
    assert "".join(pieces) == answer.text == text
    assert len(answer.tokens) > 300
    assert max(looked) <= 36


def test_the_cache_sees_the_prompt_once() -> None:
    model = Script(b"abc")
    stream(model)
    assert model.shapes == [(1, 2), (1, 1), (1, 1), (1, 1)]


def test_what_several_rows_begin_with_is_read_once() -> None:
    model = Script(b"a", b"b", b"c")
    asked = [ask("same"), ask("else"), ask("same!")]
    answers = generate(model, Bytes(), asked)  # pyright: ignore[reportArgumentType]
    assert model.shapes == [(2, 3), (3, 1), (3, 1)]
    assert model.read_for == [[0, 1, 0]], "the three bytes before the last of the shortest"
    assert [bytes(answer.prompt) for answer in answers] == [b"same", b"else", b"same!"]


def test_answers_that_grow_together_fit_the_cache() -> None:
    assert [len(group) for group in together([100] * 300, 28)] == [128, 128, 44]
    assert [len(group) for group in together([1000] * 40, 24)] == [16, 16, 8]
    assert together([50_000, 50_000], 64) == [[0], [1]], "one alone always goes"
    assert together([10, 200, 20]) == [[0, 2], [1]]


class Crowd(Script):
    """A model whose cache takes in rows of other lengths."""

    def __init__(self, *texts: bytes) -> None:
        super().__init__(*texts)
        self.padded: list[list[int]] = []
        self.joined = 0
        self.context = 1 << 10

    def begin(self, lengths: Sequence[int]) -> None:
        self.padded.append(list(lengths))

    def join(self, other: Any) -> None:
        self.joined += 1

    def select(self, rows: Sequence[int]) -> None:
        super().select(rows)
        if self._position:
            self._rows = [self._rows[row] for row in rows]


def ask_crowd(model: Crowd, *texts: str, **abilities: bool) -> list[str]:
    able: Any = SimpleNamespace(model=model, **({"mixes": True, "pads": True} | abilities))
    asked = [ask(text) for text in texts]
    answers = generate(model, Bytes(), asked, abilities=able)  # pyright: ignore[reportArgumentType]
    assert [bytes(answer.prompt).decode() for answer in answers] == list(texts)
    return [answer.text for answer in answers]


def test_prompts_of_all_lengths_are_one_batch_and_each_is_read_once() -> None:
    model = Crowd(b"0", b"1", b"2", b"3")
    assert ask_crowd(model, "four", "x" * 200, "four", "three") == ["0", "3", "1", "2"]
    assert model.padded == [[3, 4]], "of like length are the first three, and two of them are one"
    assert model.shapes[:3] == [(2, 4), (1, 199), (4, 1)]
    assert (model.joined, model.read_for[0]) == (1, [0, 0, 1, 2])
    assert {shape[1] for shape in model.shapes[2:]} == {1}


def test_what_cannot_be_padded_is_read_one_by_one() -> None:
    model = Crowd(b"0", b"1")
    assert ask_crowd(model, "one", "three", pads=False) == ["0", "1"]
    assert (model.padded, model.shapes[:3], model.joined) == ([], [(1, 2), (1, 4), (2, 1)], 1)


def test_what_cannot_be_mixed_keeps_pace() -> None:
    for prompts, able in ((("one", "three"), False), (("1", "three"), True)):
        model = Crowd(b"0" * 9, b"1" * 9)
        ask_crowd(model, *prompts, mixes=able)
        assert (model.padded, model.joined) == ([], 0)


def test_a_batch_goes_on_without_those_that_have_ended() -> None:
    model = Crowd(b"0", b"1" * 5, b"2" * 5, b"3" * 9)
    answers = ask_crowd(model, "aa", "bb", "cc", "dd")
    assert answers == ["0", "11111", "22222", "3" * 9]
    assert [shape[0] for shape in model.shapes[1:]] == [4] * 2 + [3] * 4 + [1] * 4


def test_rows_end_on_their_own() -> None:
    model = Script(b"long one", b"s")
    one, two = generate(model, Bytes(), [ask("aa"), ask("bb")])  # pyright: ignore[reportArgumentType]
    assert (one.text, two.text) == ("long one", "s")
    assert len(two.tokens) == len(two.logprobs) == 2


def test_the_context_bounds_an_answer() -> None:
    _, answer = stream(Script(b"x" * 99), text="p" * 60, max_tokens=32)
    assert len(answer.tokens) == 4
    assert answer.finish == "length"
    with pytest.raises(ServerError, match="longer"):
        stream(Script(b"x"), text="p" * 64)


def test_numbers_that_are_not_finite_are_an_error() -> None:
    with pytest.raises(ServerError, match="finite"):
        stream(Script(b"x", logprob=float(np.nan)))


def test_first_tokens_are_numbers_that_can_be_told() -> None:
    """JSON has no others: one that is none would end the process, and everybody's answers."""
    chat: Any = Bytes()
    never = float("-inf")
    assert first_tokens(Opening(-0.1, -2.0, never), chat, ask().messages, 3) == {"a": -0.1, "b": -2.0}
    with pytest.raises(ServerError, match="not finite"):
        first_tokens(Opening(*[float("nan")] * 3), chat, ask().messages, 3)
