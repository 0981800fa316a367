# SPDX-License-Identifier: Apache-2.0
"""Runs probes side by side. None can hide, delay or stop another.

Each has a daemon thread with an event loop of its own: a plugin's probe may block where it should
wait, and a look at a dead network disk never returns. Such a thread is left behind; the program
ends without it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from goodbot.api.setup import Check, CheckState, Examined, Probe, fail
from goodbot.api.texts.terminal import phrase
from goodbot.base.clock import SystemClock
from goodbot.base.errors import GoodbotError, unexpected
from goodbot.cli.doctor.checks import failed

_GRACE = 1.0
"""Seconds more for a probe that is being cancelled to clean up."""
_SHORTEST_SECRET = 6
"""A shorter value is no token, and masking it would black out words."""


def run(probes: Sequence[Probe], examined: Examined) -> Iterator[Check]:
    """The checks of all probes, in the order of `probes`, as they come in."""
    clock = SystemClock()
    started = clock.monotonic()
    answers = [_start(probe, examined) for probe in probes]
    secrets = _secrets(examined)
    for probe, answer in zip(probes, answers, strict=True):
        left = started + probe.seconds + _GRACE - clock.monotonic()
        try:
            checks = answer.get(timeout=max(left, 0.0))
        except queue.Empty:
            checks = [_hung(probe)]
        for check in checks:
            yield _masked(check, secrets)


def exit_code(checks: Sequence[Check]) -> int:
    """0 when nothing failed, else the code that says most: newer data, then the config."""
    return max((c.exit_code for c in checks if c.state is CheckState.FAIL), default=0)


def _start(probe: Probe, examined: Examined) -> queue.SimpleQueue[Sequence[Check]]:
    answer: queue.SimpleQueue[Sequence[Check]] = queue.SimpleQueue()

    async def limited() -> None:
        # Put before the loop is closed: that waits for threads of its own, which may hang.
        answer.put(await _checks(probe, examined))

    threading.Thread(target=lambda: asyncio.run(limited()), name=f"probe {probe.name}", daemon=True).start()
    return answer


async def _checks(probe: Probe, examined: Examined) -> Sequence[Check]:
    try:
        async with asyncio.timeout(probe.seconds):
            checks = tuple(await probe.run(examined))
    except TimeoutError:
        return [_hung(probe)]
    except GoodbotError as error:
        return [failed(probe.name, error)]
    except BaseException as error:  # also a plugin that calls `sys.exit`
        return [fail(probe.name, phrase("doc_failed", why=unexpected(error)))]
    if all(isinstance(check, Check) for check in checks):  # pyright: ignore[reportUnnecessaryIsInstance]
        return checks
    return [fail(probe.name, phrase("doc_odd"))]


def _hung(probe: Probe) -> Check:
    return fail(probe.name, phrase("doc_slow", seconds=f"{probe.seconds:g}"))


def _secrets(examined: Examined) -> list[str]:
    """The values that no line may show, whatever a probe put into its text; longest first."""
    try:
        specs = examined.plugins.connectors().values()
    except GoodbotError:
        return []
    values = {examined.environ.get(name, "") for spec in specs for name in spec.secrets}
    return sorted((v for v in values if len(v) >= _SHORTEST_SECRET), key=len, reverse=True)


def _masked(check: Check, secrets: Sequence[str]) -> Check:
    text, fix = check.text, check.fix
    for secret in secrets:
        text, fix = text.replace(secret, "***"), fix.replace(secret, "***")
    return replace(check, text=text, fix=fix)
