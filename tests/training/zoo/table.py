# SPDX-License-Identifier: Apache-2.0
"""The table of the zoo in docs/models.md: `python -m tests.training.zoo.table` writes it anew.

What is offered to whom stands here, and the tests go by it. A column that says "yes" names its tests in
`TESTS`: each runs for every row, none may fail or be skipped for one, and `test_table` holds them to that.
Where something is not offered, its test looks for the sentence that says so.
"""

from __future__ import annotations

from pathlib import Path

from tests.training.backends.families import FAMILIES
from tests.training.zoo.dialects import DIALECTS, ROWS

PAGE = Path(__file__).parents[3] / "docs" / "models.md"
BEGIN, END = "<!-- the zoo: begin -->\n", "<!-- the zoo: end -->\n"
GGUF_WHOLE = {"llama", "qwen2", "qwen3", "r1 distill", "exaone", "built of roles"}
"""Rows whose whole model is written as GGUF here."""
_LIKE_LLAMA = {"vicuna", "alpaca"}
GGUF_ADAPTER = (
    GGUF_WHOLE | _LIKE_LLAMA | {"mistral", "gemma", "gemma2", "gemma3", "phi3", "llama 2 chat", "magistral"}
)
"""Rows whose adapter is."""
TESTS = {
    "prompt": ("test_words", "the_question_is_in_the_prompt_and_all_that_was_said", "nobody_forges_a_mark"),
    "ends": ("test_words", "an_answer_ends_where_the_family_ends_it"),
    "scripts": ("test_words", "ten_scripts_are_whole_as_shown_and_as_stored"),
    "thoughts": ("test_words", "an_answer_without_a_thought_stays_as_it_is"),
    "draw": ("test_rounds", "an_answer_is_drawn_as_the_makers_say_and_weighs_what_that_leaves"),
    "round": ("test_rounds", "a_round_trains_at_each_presets_rank_and_the_gate_loads_it_again"),
    "gate": ("test_rounds", "a_round_trains_at_each_presets_rank_and_the_gate_loads_it_again"),
}
"""Of each column that says "yes" in every row: the module and its tests."""
SOME = {
    "thoughts": (
        "test_words",
        "a_thought_is_neither_shown_nor_learnt_nor_told_again",
        "told_not_to_think_it_does_not_or_is_split_all_the_same",
    ),
    "tools": ("test_words", "a_tool_its_call_and_its_result_are_in_the_prompt"),
}
"""And tests of those rows that have the trait."""
SHAPES = {
    "byte level": "bytes",
    "byte fallback": "SentencePiece, blank in front",
    "no prefix": "SentencePiece, no blank in front",
}


def mlx(row: str) -> bool:
    """Whether mlx-lm loads the family's checkpoints as transformers saves them."""
    return FAMILIES[ROWS[row][0]].mlx is not None


def line(row: str) -> list[str]:
    """The cells of a row."""
    family, name = ROWS[row]
    dialect = DIALECTS[name]
    traits = [
        *(["no system role"] if dialect.system == "refused" else []),
        *(["strict turns"] if dialect.turns == "strict" else []),
        *(["marks are plain text"] if dialect.plain else []),
        *(["tools"] if dialect.tools else []),
        *(["content parts"] if dialect.parts else []),
        *(["ends unlike eos"] if dialect.end != dialect.eos else []),
    ]
    thought = "–" if dialect.thought is None else "always" if dialect.always else "if told to"
    whole = "whole, adapter" if row in GGUF_WHOLE else "adapter" if row in GGUF_ADAPTER else "no"
    shown = row if family == row else f"{row} ({family})"
    offered = "yes" if mlx(row) else "no"
    every = ["yes"] * len(TESTS)
    return [
        shown,
        dialect.like,
        SHAPES[dialect.shape],
        ", ".join(traits) or "–",
        thought,
        *every,
        whole,
        offered,
    ]


HEAD = ["family", "writes as", "tokenizer", "template", "thinks", *TESTS, "GGUF", "MLX"]


def table() -> str:
    """The table as Markdown."""
    rows = [HEAD, ["---"] * len(HEAD), *map(line, ROWS)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def page(text: str) -> str:
    """The page with the table of now in it."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{table()}{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
