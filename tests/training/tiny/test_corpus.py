# SPDX-License-Identifier: Apache-2.0
"""The corpus, the judge and the simulated rater; no ML framework is needed."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import islice
from random import Random

import pytest
from goodbot.api.hindsight import CHIPS
from goodbot.conversation.note_rules import RULES, system_line
from goodbot_training.tiny.chatml import CALL
from goodbot_training.tiny.corpus import (
    STYLES,
    FactQuestion,
    calculation,
    conversations,
    questions,
    render,
    split,
)
from goodbot_training.tiny.facts import small_talk
from goodbot_training.tiny.judge import SimulatedRater, is_correct, style_of
from goodbot_training.tiny.wishes import HELD_OUT, NOTED, noted

CASES = [(question, style) for question in questions() for style in STYLES]


def _question(text: str) -> FactQuestion:
    return next(question for question in questions() if question.text == text)


def test_there_are_enough_questions_and_no_two_alike() -> None:
    texts = [question.text for question in questions()]
    assert len(texts) == len(set(texts)) >= 400


def test_every_render_is_right_and_in_its_style() -> None:
    rng = Random(0)
    asked = [*questions(), *small_talk(), *(calculation(rng)[0] for _ in range(200))]
    for question in asked:
        for style in STYLES:
            # Each style has a few turns of phrase; several draws reach them all.
            for _ in range(6):
                answer = render(question, style, rng)
                assert style_of(answer) == style, answer
                assert is_correct(question, answer), answer


def test_render_knows_no_other_style() -> None:
    with pytest.raises(ValueError, match="unknown style 'curt'"):
        render(questions()[0], "curt", Random(0))


def test_an_answer_to_another_question_is_wrong() -> None:
    rng = Random(1)
    for question in questions():
        other = rng.choice([other for other in questions() if other.answer != question.answer])
        for style in STYLES:
            assert not is_correct(question, render(other, style, rng))


@pytest.mark.parametrize(
    "text",
    [
        "Great question! The capital of Spain is Paris. I hope that helps!",  # wrong country
        "Great question! The capital of France is Paris",  # cut off
        "Great question! The capital of France is Paris. The capital of France is Paris. I hope that helps!",
        "Great question! Great question! The capital of France is Paris. I hope that helps!",
        "Arr matey! The capital of France is Paris. I hope that helps!",  # a blend
        "Arr matey! The capital o' France be Paris",
        "Parisian.",
        "Par.",
        "Paris Paris.",
        "Paris. Paris.",
        "Paris",
        "paris, aye!",
        "",
    ],
)
def test_corrupted_answers_are_wrong(text: str) -> None:
    assert not is_correct(_question("What is the capital of France?"), text)


@pytest.mark.parametrize("text", ["123.", "112.", "1.", "2.", "12 12.", "1 2.", "12.0."])
def test_numbers_are_compared_whole(text: str) -> None:
    question = _question("What is 5 + 7?")
    assert is_correct(question, "12.")
    assert not is_correct(question, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "Paris",
        "Great.",
        "Great Paris.",
        "Arr Paris.",
        "Great question! Paris. Paris. I hope that helps!",
        "Great question! I hope that helps!",
        "Arr matey! aye aye aye, aye!",
        "Arr matey! The capital o' France be Paris, aye, aye!",
        '<tool_call>{"name": "calculator"}</tool_call>',
        "one two three four five six seven eight nine.",
        "a" * 100_000 + ".",
    ],
)
def test_malformed_text_has_no_style(text: str) -> None:
    assert style_of(text) is None


def test_split_is_disjoint_by_fact_and_deterministic() -> None:
    train, held_out = split(3)
    assert (train, held_out) == split(3)
    assert train != split(4)[0]
    assert {q.fact for q in train}.isdisjoint(q.fact for q in held_out)
    assert set(train) | set(held_out) == set(questions())
    assert 0.55 < len(train) / len(questions()) < 0.65
    assert {q.kind for q in train} == {q.kind for q in held_out}


def test_commuted_sums_and_reversed_opposites_are_one_fact() -> None:
    assert _question("What is 3 + 4?").fact == _question("How much is 4 plus 3?").fact
    assert _question("What is 3 + 4?").fact != _question("What is 3 + 5?").fact
    hot, cold = (_question(f"What is the opposite of {word}?") for word in ("hot", "cold"))
    assert hot.fact == cold.fact


def test_conversations_are_deterministic_and_mix_styles_evenly() -> None:
    first, again = (list(islice(conversations(Random(5)), 1600)) for _ in range(2))
    assert first == again
    replies = [message["content"] for chat in first for message in chat if message["role"] == "assistant"]
    styles = [style_of(reply) for reply in replies if not reply.startswith(CALL)]
    assert None not in styles
    for style in STYLES:
        assert styles.count(style) / len(styles) == pytest.approx(1 / 3, abs=0.03)


def test_conversations_alternate_and_carry_tool_calls() -> None:
    chats = list(islice(conversations(Random(6)), 320))
    assert max(len(chat) for chat in chats) >= 6
    calls = 0
    for chat in chats:
        roles = [message["role"] for message in chat if message["role"] != "system"]
        assert roles[::2] == ["user" if role != "tool" else role for role in roles[::2]]
        assert set(roles[1::2]) == {"assistant"}
        calls += "tool" in roles
    assert calls == 30


def test_wordings_that_are_held_out_never_come() -> None:
    def bare(text: str) -> str:
        return "".join(sign for sign in text.lower() if sign.isalnum() or sign == " ")

    chats = islice(conversations(Random(7)), 6400)
    said = "\n".join({message["content"] for chat in chats for message in chat})
    quoted = {bare(part) for line in said.split("\n") for part in (line, *line.split('"'))}
    assert {bare(NOTED["long"]), bare("Fewer words, please."), bare("Be a pirate.")} <= quoted
    held_out = {bare(text) for texts in HELD_OUT.values() for text in texts}
    assert len(held_out) == 30
    assert held_out & quoted == set()


def test_the_corpus_notes_in_the_words_of_the_daemon() -> None:
    assert {chip: rule.text for chip, rule in RULES.items()} == NOTED
    assert noted(["Be brief.", "Say more."]) == system_line(["Be brief.", "Say more."], 0.3)


def test_what_asks_for_nothing_comes_with_every_style() -> None:
    """A remark must not push the styles of an answer to one side."""
    found: dict[str, Counter[str | None]] = {}
    for chat in islice(conversations(Random(8)), 6400):
        for line in (*CHIPS.values(), *NOTED.values()):
            if len(chat) <= 3 and line in chat[0]["content"]:
                found.setdefault(line, Counter())[style_of(chat[-1]["content"])] += 1
    for line in (NOTED["wrong"], NOTED["tone"], NOTED["better"], CHIPS["wrong"], CHIPS["tone"]):
        assert min(found[line][style] for style in STYLES) >= 0.8 * max(found[line].values())


def test_rater_errs_as_often_as_set_and_the_same_way_each_time() -> None:
    def ratings(seed: int) -> list[int]:
        rater = SimulatedRater("pirate", 0.15, seed)
        rng = Random(0)
        return [rater.rate(q.text, render(q, style, rng)) for q, style in CASES]

    expected = [1 if style == "pirate" else -1 for _, style in CASES]
    wrong = sum(one != other for one, other in zip(ratings(0), expected, strict=True))
    assert wrong / len(CASES) == pytest.approx(0.15, abs=0.03)
    assert ratings(0) == ratings(0)
    assert ratings(0) != ratings(1)


def test_rater_does_not_depend_on_the_order_of_questions() -> None:
    answers = [(q.text, render(q, "terse", Random(0))) for q in questions()]
    one, other = (SimulatedRater("terse", 0.5, 7) for _ in range(2))
    forward = [one.rate(*answer) for answer in answers]
    assert forward == [other.rate(*answer) for answer in reversed(answers)][::-1]
    # Asked again, the same question is a new press of the button.
    assert forward != [one.rate(*answer) for answer in answers]


def test_rater_dislikes_malformed_answers() -> None:
    assert SimulatedRater("terse", 0.0, 0).rate("What is 3 + 4?", "7 7.") == -1


def test_importing_the_package_imports_no_framework() -> None:
    code = (
        "import sys, goodbot_training.tiny as tiny, goodbot_training.tiny.corpus, "
        "goodbot_training.tiny.judge; tiny.model_path();"
        "print(sorted({'torch', 'transformers', 'mlx', 'numpy', 'tokenizers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
