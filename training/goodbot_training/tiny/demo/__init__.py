# SPDX-License-Identifier: Apache-2.0
"""`goodbot demo`: says so at once, then imports what takes a while, and plays it."""

from __future__ import annotations

import argparse
import asyncio
import os

from goodbot.base import priority

from goodbot_training.tiny import show


def main(arguments: argparse.Namespace) -> int:
    """Run the demo; 0 when the bot followed the word and has learnt, else 1."""
    os.environ.setdefault(priority.KEEP, "1")  # somebody sits before it and waits for this training
    screen = show.DemoPrinter(quiet=arguments.json)
    with screen.beginning():
        from goodbot_training.tiny.demo.play import play

        result = asyncio.run(play(arguments, screen))
    screen.result(result)
    return 0 if result["state"] == "activated" and result["word"]["followed"] else 1
