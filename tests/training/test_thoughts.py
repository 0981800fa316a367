# SPDX-License-Identifier: Apache-2.0
"""What a model thinks is read before its answer, and never shown or learnt."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import goodbot_training
import pytest
from goodbot.api.sampler import SampleRequest
from goodbot.base.thoughts import tidy

from tests.support import require

require("transformers")

from goodbot_training.backends.chat import ChatTemplate, check_model_directory  # noqa: E402
from goodbot_training.backends.decoding import Row  # noqa: E402

TINY = Path(goodbot_training.__file__).parent / "tiny" / "model"
TURNS = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{{ m['content'].split('</think>')[-1] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
)
OPENS = TURNS + "<think>\n{% endif %}"
HYBRID = TURNS + "{% if not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
SPECIAL = TURNS + "{% endif %}{# [THINK] #}"
HARMONY = TURNS + "{% endif %}{# <|channel|>analysis<|message|> #}"
ASKED = [{"role": "user", "content": "What does <think> mean?"}]


def chat(at: Path, template: str, special: tuple[str, ...] = ()) -> ChatTemplate:
    """The tiny model's tokenizer with another template, and tokens of its own."""
    from transformers import AutoTokenizer

    shutil.copytree(TINY, at)
    for file in at.glob("chat_template*"):
        file.unlink()
    config = json.loads((at / "tokenizer_config.json").read_text())
    config["chat_template"] = template
    (at / "tokenizer_config.json").write_text(json.dumps(config))
    if special:
        library: Any = AutoTokenizer
        tokenizer = library.from_pretrained(str(at))
        tokenizer.add_special_tokens({"additional_special_tokens": list(special)})
        tokenizer.save_pretrained(str(at))
    return ChatTemplate(at, check_model_directory(at))


def shown(
    chat: ChatTemplate, text: str, *, streams: bool, finish: bool = True, asked: Any = ASKED
) -> tuple[list[str], Any]:
    """A row that writes this text token by token."""
    pieces: list[str] = []

    def on_text(piece: str) -> bool:
        pieces.append(piece)
        return True

    ids = chat._tokenizer.encode(text, add_special_tokens=False)
    request = SampleRequest(messages=asked, max_tokens=len(ids) + finish, seed=1)
    row = Row(chat.prompt(asked), request, chat, 4096, on_text if streams else None)
    for token in [*ids, *([chat.end] if finish else [])]:
        row.add(token, -0.5, chat.stops)
    return pieces, row.result()


WRITTEN = {
    "begun by the template": (OPENS, (), "Hm, a color.\n</think>\n\nGreen."),
    "marks in the text": (HYBRID, (), "<think>\nHm, a color.\n</think>\n\nGreen."),
    "tokens that are not shown": (SPECIAL, ("[THINK]", "[/THINK]"), "[THINK]Hm, a color.[/THINK]Green."),
    "harmony": (
        HARMONY,
        ("<|channel|>", "<|message|>", "<|end|>", "<|start|>"),
        "<|channel|>analysis<|message|>Hm, a color.<|end|><|start|>assistant"
        "<|channel|>final<|message|>Green.",
    ),
}


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("case", WRITTEN)
def test_a_thought_is_neither_shown_nor_among_the_answers_tokens(
    tmp_path: Path, case: str, streams: bool
) -> None:
    template, special, written = WRITTEN[case]
    loaded = chat(tmp_path / "m", template, special)
    pieces, answer = shown(loaded, written, streams=streams)
    assert (answer.text, answer.thought) == ("Green.", "Hm, a color.")
    if streams:
        assert "".join(pieces) == "Green."
    said = answer.turn
    assert loaded.text(said.response[:-1]).strip() == "Green."
    assert said.prompt + said.response == answer.prompt + answer.tokens
    assert answer.finish == "stop"


@pytest.mark.parametrize("case", WRITTEN)
def test_a_thought_is_told_while_it_lasts(tmp_path: Path, case: str) -> None:
    template, special, written = WRITTEN[case]
    loaded = chat(tmp_path / "m", template, special)
    ids = loaded._tokenizer.encode(written, add_special_tokens=False)
    request = SampleRequest(messages=ASKED, max_tokens=len(ids) + 1, seed=1)
    pieces: list[str] = []
    told: list[str] = []

    def on_text(piece: str) -> bool:
        told.append(row.thought())
        assert not (told[-1] and "".join(pieces)), "nothing is thought behind the answer's beginning"
        pieces.append(piece)
        return True

    row = Row(loaded.prompt(ASKED), request, loaded, 4096, on_text)
    for token in [*ids, loaded.end]:
        row.add(token, -0.5, loaded.stops)
    assert len([one for one in told if one]) > 2, "piece by piece"
    assert tidy("".join(told)) == row.result().thought == "Hm, a color."


def test_all_of_a_thought_that_is_cut_is_told(tmp_path: Path) -> None:
    loaded = chat(tmp_path / "m", OPENS)
    ids = loaded._tokenizer.encode("Hm, a color, I </", add_special_tokens=False)
    request = SampleRequest(messages=ASKED, max_tokens=len(ids), seed=1)
    row = Row(loaded.prompt(ASKED), request, loaded, 4096, lambda _: True)
    for token in ids:
        row.add(token, -0.5, loaded.stops)
    answer = row.result()
    assert (answer.finish, tidy(row.thought()), answer.thought) == ("length", *["Hm, a color, I </"] * 2)


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    "text", ["Green.", "  Green.", "Write <think> first, then </think>.", "<thin ice", "日本語 ✨ ок"]
)
def test_an_answer_without_a_thought_stays_as_it_is(tmp_path: Path, text: str, streams: bool) -> None:
    pieces, answer = shown(chat(tmp_path / "m", HYBRID), text, streams=streams)
    assert (answer.text, answer.thought, answer.thought_tokens) == (text, "", 0)
    if streams:
        assert "".join(pieces) == text


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize(
    "written",
    [
        "Hm, a color.</think>\n<answer>\nGreen.\n</answer>",
        "Hm, a color.</think><response>Green.</response>\n",
        "Hm, a color.</THINK>Green.<|return|>",
    ],
)
def test_what_an_answer_stands_in_is_not_shown_and_its_tokens_begin_with_its_words(
    tmp_path: Path, written: str, streams: bool
) -> None:
    loaded = chat(tmp_path / "m", OPENS)
    pieces, answer = shown(loaded, written, streams=streams)
    assert (answer.text, answer.thought) == ("Green.", "Hm, a color.")
    assert not streams or "".join(pieces) == "Green."
    said = answer.turn
    assert loaded.text(said.response[:-1]).lstrip() == written[written.index("Green.") :]
    assert len(said.response) == len(answer.tokens) - answer.thought_tokens
    assert said.prompt + said.response == answer.prompt + answer.tokens


def test_tags_that_were_asked_for_are_words_of_the_answer(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": "Think, then write <answer>a color</answer>."}]
    written = "Hm, a color.</think>\n<answer>Green.</answer>"
    pieces, answer = shown(chat(tmp_path / "m", OPENS), written, streams=True, asked=asked)
    assert (answer.text, answer.thought) == ("<answer>Green.</answer>", "Hm, a color.")
    assert "".join(pieces) == answer.text


@pytest.mark.parametrize("finish", [True, False])
def test_what_only_looks_like_its_end_is_shown(tmp_path: Path, finish: bool) -> None:
    for text in ("a <|return", "a <|return|> b", "a <", "x </answer>"):
        pieces, answer = shown(chat(tmp_path / str(len(text)), HYBRID), text, streams=True, finish=finish)
        assert answer.text == text
        assert not finish or "".join(pieces) == text


def test_signs_of_several_tokens_are_whole_behind_a_thought(tmp_path: Path) -> None:
    loaded = chat(tmp_path / "m", OPENS)
    pieces, answer = shown(loaded, "так\n</think>\n\n日本語 ✨ " * 1 + "ок " * 60, streams=True)
    assert answer.text == "".join(pieces) == "日本語 ✨ " + "ок " * 60


def test_a_thought_that_is_cut_is_no_answer(tmp_path: Path) -> None:
    pieces, answer = shown(chat(tmp_path / "m", OPENS), "Hm, a col", streams=True, finish=False)
    assert (answer.text, answer.thought, answer.finish) == ("", "Hm, a col", "length")
    assert "".join(pieces) == ""


def test_what_is_learnt_is_the_answer_after_its_thought(tmp_path: Path) -> None:
    loaded = chat(tmp_path / "m", OPENS)
    with_, without = loaded.turn(ASKED, "Green.", "Hm."), loaded.turn(ASKED, "Green.")
    assert with_.response == without.response
    raw = loaded.thoughts.raw
    assert raw(with_.prompt).endswith("<|im_start|>assistant\n<think>\nHm.\n</think>\n\n")
    assert raw(without.prompt).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    hybrid = chat(tmp_path / "h", HYBRID)
    assert raw(hybrid.turn(ASKED, "Green.", "Hm.").prompt).endswith(
        "<|im_start|>assistant\n<think>\nHm.\n</think>\n\n"
    )
    assert hybrid.turn(ASKED, "Green.").prompt == hybrid.prompt(ASKED)


def test_whoever_chooses_decides_whether_it_thinks(tmp_path: Path) -> None:
    hybrid = chat(tmp_path / "h", HYBRID)
    raw = hybrid.thoughts.raw
    assert raw(hybrid.prompt(ASKED)).endswith("</think>\n\n")
    assert raw(hybrid.prompt(ASKED, thinking=True)).endswith("assistant\n")
    harmony = chat(tmp_path / "g", HARMONY)
    assert raw(harmony.prompt(ASKED, thinking=None)).endswith("<|channel|>final<|message|>")
