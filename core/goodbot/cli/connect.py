# SPDX-License-Identifier: Apache-2.0
"""`goodbot connect NAME`: one platform from nothing to a bot that answers there.

Exit codes as for `goodbot init`, of which this is the platform's part; where no model answers yet, it
is all of it.
"""

from __future__ import annotations

import argparse

from goodbot.cli import init
from goodbot.cli.setup.draft import Draft


def main(arguments: argparse.Namespace) -> int:
    """Connect the platform that the word names."""
    draft = Draft(platform=arguments.name)
    return init.preview(arguments, draft) if arguments.dry_run else init.ask(arguments, draft)
