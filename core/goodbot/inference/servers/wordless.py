# SPDX-License-Identifier: Apache-2.0
"""Answers that are a thought and nothing more, and what people are told in their place."""

from __future__ import annotations

import logging

from goodbot.api.server import Generated
from goodbot.api.texts import say
from goodbot.api.turns import Turn

logger = logging.getLogger(__name__)

THINKS_SECONDS = 2.0
"""A thought that takes so long is told of while it lasts."""
_CUT = "it thought until max_tokens: raise [serving] max_tokens, or set thinking = false"
_NEVER = "it ended its answer within a thought, and said nothing"


class Wordless:
    """Those of one daemon."""

    def __init__(self) -> None:
        self._cut: set[str] = set()
        """Turns whose thought took all of `max_tokens`."""

    def note(self, turn: Turn, answer: Generated) -> None:
        """Say in the log that there is a thought and no answer, and why."""
        if answer.thought and not answer.text.strip():
            cut = answer.finish == "length"
            logger.warning(_CUT if cut else _NEVER)
            if cut:
                self._cut.add(turn.id)

    def text(self, turn: Turn, language: str) -> str:
        """What is sent where there are no words; after a restart it is not known any more why."""
        if not turn.thought:
            return say("no_words", language)
        return say("thought_too_long" if turn.id in self._cut else "thought_only", language)
