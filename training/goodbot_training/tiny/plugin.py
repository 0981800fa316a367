# SPDX-License-Identifier: Apache-2.0
"""What the tiny model plugs in: itself under the name `tiny`, and the command `goodbot demo`."""

from __future__ import annotations

import argparse
from typing import Any

from goodbot import hookimpl
from goodbot.api.model import ModelSpec
from goodbot.api.texts.terminal import phrase

from goodbot_training.tiny import model_path
from goodbot_training.tiny.styles import STYLES


@hookimpl
def register_model() -> ModelSpec:
    """Offer the tiny model, for demonstrations only."""
    return ModelSpec(name="tiny", path=model_path(), demo=True)


@hookimpl
def register_commands(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add `goodbot demo`."""
    parser = subparsers.add_parser(
        "demo", help="watch the tiny model learn from 40 ratings, in a minute, with nothing set up"
    )
    parser.add_argument("--like", choices=STYLES, default="friendly", help="the style that the owner likes")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same answers")
    parser.add_argument(
        "--questions",
        type=_questions,
        default=120,
        metavar="N",
        help="how many it is asked before and after, 20 to 200, none of which is rated (120)",
    )
    parser.add_argument("--backend", default="auto", help="mlx or torch; auto takes what is installed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run="goodbot_training.tiny.demo:main", group="start", first=True)


def _questions(text: str) -> int:
    if not (text.isdecimal() and len(text) <= 3 and 20 <= int(text) <= 200):
        raise argparse.ArgumentTypeError(phrase("demo_number", text=repr(text)))
    return int(text)
