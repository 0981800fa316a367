# SPDX-License-Identifier: Apache-2.0
"""People's words on their way to a server that makes prompts itself, and its answers on their way back.

Such a server takes `<|im_end|>` in a message for the template's own. So it gets none:
see `goodbot.api.marks`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from goodbot.api import marks
from goodbot.api.marks import Pattern
from goodbot.api.server import Generated, GenerateRequest, Piece
from goodbot.base.thoughts import Thought


async def marks_of(model: Path) -> Pattern:
    """The marks of the model that a server answers with."""
    return await asyncio.to_thread(marks.of, model)


def guarded(request: GenerateRequest, found: Pattern) -> tuple[GenerateRequest, bool]:
    """The request with each mark in its messages broken, and whether there was one."""
    said = list(request.messages)
    kept = marks.broken(said, found)
    return (request, False) if kept == said else (replace(request, messages=kept), True)


def mended(piece: Piece) -> Piece:
    """A piece of an answer without what breaks marks, which a model may repeat."""
    if isinstance(piece, Generated):
        return replace(piece, text=marks.whole(piece.text), thought=marks.whole(piece.thought))
    return Thought(marks.whole(piece.text)) if isinstance(piece, Thought) else marks.whole(piece)
