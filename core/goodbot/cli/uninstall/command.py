# SPDX-License-Identifier: Apache-2.0
"""`goodbot uninstall`: lists what goodbot has put on this machine, asks, and takes it away."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from typing import Any

from goodbot.api.texts import explained, reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import spawn
from goodbot.base.errors import GoodbotError
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees
from goodbot.cli.offline import open_anyway
from goodbot.cli.uninstall import Leaving, Trace, find
from goodbot.store.backup import megabytes


def main(arguments: argparse.Namespace) -> int:
    """0: it is gone (or was listed), 1: some of it could not be removed, or the answer was no."""
    return asyncio.run(_uninstall(arguments))


async def _uninstall(arguments: argparse.Namespace) -> int:
    traces = await find(_leaving(arguments))
    going = [trace for trace in traces if trace.remove is not None]
    quiet = arguments.json
    if not quiet:
        _list(arguments, going)
    failed: dict[str, str] = {}
    if going and not arguments.dry_run:
        if not agrees(phrase("uninstall_ask"), yes=arguments.yes):
            say(phrase("not_removed"))
            return 1
        failed = await _remove(going, quiet=quiet)
    stays = {trace.what: trace.stays for trace in traces if trace.stays} | failed
    package = shlex.join(spawn.python("-m", "pip", "uninstall", "goodbot"))
    if quiet:
        data: dict[str, Any] = {
            "dry_run": arguments.dry_run,
            "found": [{"kind": t.kind, "what": t.what, "bytes": t.size} for t in going],
            "stays": stays,
            "failed": sorted(failed),
            "package": package,
        }
        print_answer({"text": "", "data": data}, as_json=True)
    else:
        for what, why in stays.items():
            say(phrase("stays", what=explained(what, why, here())))
        say(phrase("uninstall_package", command=package))
    return 1 if failed else 0


def _leaving(arguments: argparse.Namespace) -> Leaving:
    settings, plugins = open_anyway(arguments.home, arguments.config)
    return Leaving(home=arguments.home, config=settings, plugins=plugins, keep_data=arguments.keep_data)


def _list(arguments: argparse.Namespace, going: list[Trace]) -> None:
    if not going:
        key = "uninstall_none_outside" if arguments.keep_data else "uninstall_none"
        say(phrase(key, home=arguments.home))
        return
    say(phrase("uninstall_would" if arguments.dry_run else "uninstall_goes"))
    for trace in going:
        size = f" ({megabytes(trace.size)})" if trace.size else ""
        say(f"  {trace.what}{size}")
    if arguments.keep_data:
        say(phrase("uninstall_keeps", home=arguments.home))


async def _remove(going: list[Trace], *, quiet: bool) -> dict[str, str]:
    """What could not be removed, and why. What runs must end before anything else goes."""
    failed: dict[str, str] = {}
    for trace in going:
        assert trace.remove is not None  # noqa: S101  the others were sorted out
        try:
            await trace.remove()
        except (GoodbotError, OSError, TimeoutError) as error:
            failed[trace.what] = reworded(error, here()) or phrase("too_slow")
            if trace.kind in ("service", "daemon"):
                for other in going[going.index(trace) + 1 :]:
                    failed[other.what] = phrase("uninstall_runs")
                break
        else:
            if not quiet:
                say(phrase("removed", what=trace.what), file=sys.stderr)
    return failed
