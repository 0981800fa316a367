# SPDX-License-Identifier: Apache-2.0
"""Marks of a template in what people write: found, broken, and whole again in what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import marks
from goodbot.api.marks import ANY, BREAK, broken, whole

TEMPLATE = "{{ bos_token }}[INST] {{ m['content'].split('</think>')[-1] }} [/INST]<tools>{{ eos_token }}"
FAMILIES = (
    "<|im_start|>",
    "<|im_end|>",
    "<|channel|>",
    "<|channel>",
    "<channel|>",
    "<｜User｜>",
    "<｜end▁of▁sentence｜>",
    "[INST]",
    "[/INST]",
    "[THINK]",
    "[gMASK]",
    "<<SYS>>",
    "<</SYS>>",
    "<s>",
    "</s>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<think>",
    "</think>",
    "<tool_call>",
    "<sop>",
)


@pytest.mark.parametrize("mark", FAMILIES)
def test_every_familys_marks_are_known(mark: str) -> None:
    text = broken(f"a{mark}{mark}b", ANY)
    assert mark not in text
    assert whole(text) == f"a{mark}{mark}b"


@pytest.mark.parametrize(
    "text",
    ["if a <b and c> d", "x |> f", "[1][2]", "[TODO] later", "a < |b| > c", "<b>bold</b>", "日本語 <3"],
)
def test_what_is_no_mark_stays(text: str) -> None:
    assert broken(text, ANY) == text


def test_marks_that_share_characters_are_all_broken() -> None:
    found = marks.pattern(["<<a>", "<a>>", "a>>b"])
    text = broken("<<a>>b", found)
    assert not any(name in text for name in ("<<a>", "<a>>", "a>>b"))
    assert whole(text) == "<<a>>b"
    assert broken("anything", marks.pattern([])) == "anything"


def test_they_are_broken_however_deep_they_lie() -> None:
    said = [{"role": "tool", "n": 1, "parts": [{"text": "</s>"}], "<s>": {"a": ("<s>", None)}}]
    made = broken(said, ANY)
    assert "<s>" not in json.dumps(made, ensure_ascii=False)
    assert whole(made)[0]["parts"] == [{"text": "</s>"}]
    assert made[0]["n"] == 1


def test_a_models_own_marks_are_those_of_its_tokenizer_and_template(tmp_path: Path) -> None:
    assert marks.of(tmp_path / "nowhere") is ANY
    tokens = [
        {"content": "<|im_end|>", "special": True},
        {"content": "<odd>", "special": False},
        {"content": "    ", "special": False},
    ]
    whole_file = {"version": "1.0", "added_tokens": tokens, "model": {"vocab": {}}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(whole_file))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    found = marks.of(tmp_path)
    said = "<|im_end|> <odd>     [INST] </think> <tools> <|other|> <s>"
    assert broken(said, found) == (
        f"<{BREAK}|im_end|> <{BREAK}odd>     [{BREAK}INST] <{BREAK}/think> <{BREAK}tools> <|other|> <s>"
    )


def test_files_are_read_again_when_they_are_others_and_else_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    loads = json.loads

    def counted(data: bytes) -> Any:
        parsed.append(data.decode())
        return loads(data)

    monkeypatch.setattr(marks.json, "loads", counted)
    tokens = {"added_tokens": [{"content": "<odd>", "special": True}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokens))
    for written, mark in (("A <tools>", "<tools>"), ("Others: <box>", "<box>")):
        (tmp_path / "new.json").write_text(json.dumps({"chat_template": written}))
        (tmp_path / "new.json").replace(tmp_path / "tokenizer_config.json")
        for _ in range(3):
            assert marks.chat_template(tmp_path) == written
            assert mark not in broken(mark, marks.of(tmp_path))
    assert len(parsed) == 2
