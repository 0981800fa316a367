# SPDX-License-Identifier: Apache-2.0
"""The thought is told from the answer, however it comes in pieces."""

from __future__ import annotations

import pytest
from goodbot.api.marks import opened_by_template
from goodbot.base.endings import HEADERS, WRAPPERS, is_plain
from goodbot.base.thoughts import KNOWN, Splitter, Thought, ThoughtTags, opened_by, split

THINK = KNOWN[0]
CASES = [
    ("<think>\nThe user asks.\n</think>\n\nGreen.", None, "The user asks.", "Green."),
    ("The user asks.\n</think>\n\nGreen.", THINK, "The user asks.", "Green."),
    ("<think>again</think>Green.", THINK, "again", "Green."),
    ("[THINK]hm[/THINK]Green.", None, "hm", "Green."),
    ("<seed:think>hm</seed:think>Green.", None, "hm", "Green."),
    ("<reasoning>\nhm\n</reasoning>\nGreen.", None, "hm", "Green."),
    ("<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Green.", None, "hm", "Green."),
    ("<|channel>thought\nhm<channel|>Green.", None, "hm", "Green."),
    (
        "<|channel|>analysis<|message|>User asks.<|end|><|start|>assistant<|channel|>final<|message|>Green.",
        None,
        "User asks.",
        "Green.",
    ),
    ("<|channel|>final<|message|>Green.", None, "", "Green."),
    ("analysisUser asks.assistantfinalGreen.", None, "User asks.", "Green."),
    ("Here is my thought process: hm\nHere is my response: Green.", None, "hm", "Green."),
    ("<think>a</think><think>b</think>Green.", None, "ab", "Green."),
    ("<think>a <think>b</think> c</think>Green.", None, "a <think>b</think> c", "Green."),
    ("<think>it says <think> there</think>Green.", None, "it says <think> there", "Green."),
    ("<think></think>\nGreen.", None, "", "Green."),
    ("Use <think> and </think> for thoughts.", None, "", "Use <think> and </think> for thoughts."),
    ("<thin ice>", None, "", "<thin ice>"),
    ("  Green.", None, "", "  Green."),
    ("analysis of variance", None, "", "analysis of variance"),
    ("Here is my thought process: I like it.", None, "", "Here is my thought process: I like it."),
    ("<think>hm</think><response>Green.</response>", None, "hm", "Green."),
    ("<think>hm</think>\n<answer>\nGreen.\n</answer>\n", None, "hm", "Green."),
    ("<think>hm</think>\n<answer>Green.", None, "hm", "Green."),
    ("<think>hm</think>a <answer> b</answer>", None, "hm", "a <answer> b</answer>"),
    ("<answer>Green.</answer>", None, "", "<answer>Green.</answer>"),
    ("<Thought>\nhm\n</Thought>\n<Output>\nGreen.\n</Output>", None, "hm", "Green."),
    ("<THINK>hm</THINK>Green.", None, "hm", "Green."),
    ("hm</THINK>Green.", THINK, "hm", "Green."),
    ('<|channel|>final <|constrain|>json<|message|>{"a":1}', None, "", '{"a":1}'),
    (
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final <|constrain|>json"
        '<|message|>{"a":1}<|return|>',
        None,
        "hm",
        '{"a":1}',
    ),
    ("<|start|>assistant<|channel|>final json<|message|>{}<|end|>", None, "", "{}"),
    ("<|begin_of_thought|>hm<|end_of_thought|><|begin_of_solution|>G.<|end_of_solution|>", None, "hm", "G."),
    ("<|START_RESPONSE|>Green.<|END_RESPONSE|>", None, "", "Green."),
    ("Green.<|return|>", None, "", "Green."),
    ("A <|return|> ends it, <|ret", None, "", "A <|return|> ends it, <|ret"),
    ("Green. \n", None, "", "Green. \n"),
    ("<think>never ends", None, "never ends", ""),
    ("", None, "", ""),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(("text", "opened", "thought", "answer"), CASES)
def test_a_thought_is_split_off_in_pieces_of_any_size(
    size: int, text: str, opened: ThoughtTags | None, thought: str, answer: str
) -> None:
    splitter = Splitter(KNOWN, opened)
    pieces: list[str | Thought] = []
    for start in range(0, len(text), size):
        pieces += splitter.feed(text[start : start + size])
    pieces += splitter.end()
    assert "".join(one for one in pieces if isinstance(one, str)) == answer
    assert split(text, opened=opened) == (thought, answer)


def test_no_piece_of_a_thought_is_ever_answered() -> None:
    splitter = Splitter()
    pieces = [piece for sign in "<think>secret</think>Green." for piece in splitter.feed(sign)]
    assert "".join(one.text for one in pieces if isinstance(one, Thought)) == "secret"
    assert "".join(one for one in pieces if isinstance(one, str)) == "Green."


def test_a_thought_whose_beginning_the_prompt_holds_ends_on_a_line_of_its_own() -> None:
    assert split("The user asks.\n</think>\n\nGreen.") == ("The user asks.", "Green.")
    mentioned = "Write </think> at the end."
    assert split(mentioned) == ("", mentioned)
    fenced = "So:\n```\na\n</think>\n```\nThere."
    assert split(fenced) == ("", fenced)


def test_or_it_follows_the_thought_at_once_and_nothing_follows_on_its_line() -> None:
    assert split("The user asks. OK.</think>\n\nGreen.") == ("The user asks. OK.", "Green.")
    assert split("Hm.</Think>\nGreen.") == ("Hm.", "Green.")
    for told in (
        "It ends with </think>\nThat is all.",
        'Write "</think>\n"',
        "`</think>`\nis it",
        "a</think>b",
        'Config:\n\n<plan>\n<reasoning type="x">because</reasoning>\n<step>two</step>\n</plan>',
        '<thought lang="de">Gut</thought>\nis German',
        "What Ada wrote.</thinking>\nends the block",
    ):
        assert split(told) == ("", told)


def test_a_cut_thought_is_no_answer() -> None:
    assert split("Here is my thought process: I like", cut=True) == ("I like", "")
    assert split("<think>so lo", cut=True) == ("so lo", "")


def test_a_prompt_or_a_template_tells_whether_it_begins_a_thought() -> None:
    assert opened_by("<|im_start|>assistant\n<think>\n") == THINK
    assert opened_by("What does <think> mean?<|im_end|>\n<|im_start|>assistant\n") is None
    always = "{% if add_generation_prompt %}{{'<|Assistant|><think>\\n'}}{% endif %}"
    hybrid = (
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
        "{% if enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"
    )
    asked = "{% if add_generation_prompt %}{% if thinking %}{{'<think>'}}{% endif %}{% endif %}"
    plain = "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    assert opened_by_template(always, thinking=False) == THINK
    assert opened_by_template(plain, thinking=False) == THINK
    assert opened_by_template(hybrid, thinking=False) is None
    assert opened_by_template(asked, thinking=False) is None
    assert opened_by_template(asked, thinking=True) == THINK


MANY = 140_000


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>" * MANY + "é", ""),
        ("<think>a" * MANY + "</think>é" * (MANY - 1), "é"),  # the last end counts
        ("<think></think>" * MANY + "é", "<think></think>" * (MANY - 64) + "é"),
        ("<|channel|>final<|message|>" * MANY + "é", "<|channel|>final<|message|>" * (MANY - 64) + "é"),
        ("é\n" + "</think>\n" * MANY, "</think>\n" * (MANY - 1)),
    ],
    ids=["opened", "never closed", "one behind another", "headers", "closed"],
)
def test_a_text_of_nothing_but_marks_is_read_in_a_few_passes(text: str, left: str) -> None:
    """Anybody who may send answers can send one: at a pass for each mark it takes hours."""
    assert split(text)[1] == left


def test_what_is_plain_is_taken_apart_into_itself() -> None:
    marks = [*HEADERS, *WRAPPERS, *(one.opens for one in KNOWN), *(one.closes for one in KNOWN if one.sure)]
    assert not [mark for mark in marks if is_plain(mark) or is_plain(f" \n{mark} a")]
    for text in ("", " \n", "3 > 2.\n", "  An analysis of it.\n\n", "Analysis", "assistantfinal é", "a]b"):
        assert (is_plain(text), split(text)) == (True, ("", text))


@pytest.mark.parametrize("asked", ["In <answer> tags, please.", "End with </answer>.", "<\u2060ANSWER>"])
def test_a_tag_that_the_messages_speak_of_is_a_word_of_the_answer(asked: str) -> None:
    """Who asked for it, a program most of all, looks for it there."""
    messages = [{"role": "user", "content": [{"type": "text", "text": asked}]}]
    kept, other = "<answer>Green.</answer>", "<response>Green.</response>"
    assert split(f"<think>hm</think>{kept}", asked=messages) == ("hm", kept)
    assert split(f"hm\n</think>\n{kept}", asked=messages) == ("hm", kept)
    assert split(f"<think>hm</think>{other}", asked=messages) == ("hm", "Green.")
    splitter = Splitter(asked=messages)
    pieces = [piece for sign in f"<think>hm</think>\n{kept}" for piece in splitter.feed(sign)]
    assert "".join(one for one in [*pieces, *splitter.end()] if isinstance(one, str)) == kept
