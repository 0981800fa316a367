# SPDX-License-Identifier: Apache-2.0
"""What people want of answers takes at most 120 tokens of a real model's prompt, in whatever words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from goodbot.api import marks
from goodbot.conversation.note_rules import MOST, RULES, one_line, system_line

from tests.core.test_note_rules import DEAR
from tests.support import require
from tests.training.test_note_trial import asked

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def test_it_takes_at_most_120_tokens(real_model: Path) -> None:
    tokenizer: Any = require("transformers").AutoTokenizer.from_pretrained(real_model)
    assert marks.takes_system(marks.chat_template(real_model))

    def tokens(*system: dict[str, str]) -> int:
        messages = [*system, {"role": "user", "content": "Hi"}]
        return len(tokenizer.apply_chat_template(messages, tokenize=True)["input_ids"])

    plain = tokens({"role": "system", "content": ""})
    own = marks.of(real_model)
    for lines in ([rule.text for rule in RULES.values()], *([one_line(text, own)] * MOST for text in DEAR)):
        said = system_line(lines, 0.5)
        assert said
        assert tokens({"role": "system", "content": said}) - plain + 8 <= 120


async def test_it_follows_notes(real_model: Path) -> None:
    found = await asked(real_model)
    assert found.clear, found
