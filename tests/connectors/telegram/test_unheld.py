# SPDX-License-Identifier: Apache-2.0
"""B11: a server that answers polls at once and with nothing is asked ever more slowly, and told of."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from goodbot.base.errors import RetriableError, StoreFullError
from goodbot.base.log import OnceAMinute
from goodbot.testing.host import RecordingHost, VirtualClock
from goodbot_connectors.telegram import SPEC, polling
from goodbot_connectors.telegram.intake import Cursor, Taken
from goodbot_connectors.telegram.polling import Polling


class Unholding:
    """Telegram's `getUpdates` of a server that never holds it; what it is to answer, then the end."""

    def __init__(self, host: RecordingHost, answers: Sequence[Any]) -> None:
        self._host, self._answers = host, iter(answers)
        self.seconds = 0.0
        self.offsets: list[int | None] = []

    def monotonic(self) -> float:
        """Time, of which only a poll that is held takes some."""
        return self.seconds

    async def updates(self, offset: int | None, timeout: int) -> Sequence[Any]:
        del timeout
        self.offsets.append(offset)
        answer = next(self._answers, None)
        if answer is None:
            self._host.stopping.set()
            return []
        if isinstance(answer, RetriableError):
            raise answer
        if isinstance(answer, float):  # it holds this one
            self.seconds += answer
            return []
        return answer


class Taking:
    async def take(self, updates: Sequence[Any], offset: int) -> Taken:
        del updates, offset
        return Taken(events=(), spare=(), prompts=(), moves=())


async def polled(
    tmp_path: Path,
    answers: Sequence[Any],
    monkeypatch: Any,
    *,
    taking: Taking | None = None,
    clock: VirtualClock | None = None,
) -> RecordingHost:
    host = RecordingHost(SPEC, state_dir=tmp_path, environ={}, clock=clock or VirtualClock())
    server = Unholding(host, answers)
    monkeypatch.setattr(polling, "time", server)
    await Polling(
        host,
        server,
        taking or Taking(),
        lambda taken: None,
        30,  # pyright: ignore[reportArgumentType]
        Cursor(offset=None, since_ms=0),
    ).run()
    await host.close()
    return host


def pauses(host: RecordingHost) -> list[float]:
    assert isinstance(host.clock, VirtualClock)
    return [round(pause, 1) for pause in host.clock.slept]


class Full(Taking):
    async def take(self, updates: Sequence[Any], offset: int) -> Taken:
        raise StoreFullError("the disk is full")


class Heard(logging.Handler):
    """When a line passed that is said again and again."""

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__()
        self.at: list[float] = []
        self._now = now
        self.addFilter(OnceAMinute(now))

    def emit(self, record: logging.LogRecord) -> None:
        self.at.append(self._now())


async def test_26_11_a_full_disk_is_one_line_a_minute(tmp_path: Path, monkeypatch: Any) -> None:
    clock = VirtualClock()
    heard, log = Heard(clock.monotonic), logging.getLogger(polling.__name__)
    log.addHandler(heard)
    try:
        await polled(tmp_path, [[{"update_id": 5}]] * 40, monkeypatch, taking=Full(), clock=clock)
    finally:
        log.removeHandler(heard)
    assert len(heard.at) > 5, "it goes on being told"
    assert min(later - before for before, later in itertools.pairwise(heard.at)) >= 60


async def test_b11_polls_that_are_not_held_are_made_ever_more_slowly(
    tmp_path: Path, monkeypatch: Any
) -> None:
    host = await polled(tmp_path, [[]] * 8, monkeypatch)
    slept = pauses(host)
    assert slept[:8] == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]
    assert "does not hold a poll" in host.troubles[-1]


async def test_b11_what_comes_in_makes_it_ask_at_once_and_a_held_poll_ends_it(
    tmp_path: Path, monkeypatch: Any
) -> None:
    host = await polled(tmp_path, [[]] * 7 + [[{"update_id": 5}], [], 0.6, 0.6], monkeypatch)
    slept = pauses(host)
    assert slept[:8] == [0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 0.2], "no pause after the update"
    said = [text for text in host.troubles if text]
    assert said
    assert host.troubles[host.troubles.index(said[-1]) + 1] == ""


async def test_b11_a_server_that_is_away_or_unholding_for_days_is_asked_on(
    tmp_path: Path, monkeypatch: Any
) -> None:
    answers: list[Any] = [*([[]] * 1100), *([RetriableError("away")] * 1100)]
    host = await polled(tmp_path, answers, monkeypatch)
    assert max(pauses(host)) <= 60
    assert len(pauses(host)) >= 2200


async def test_b11_a_server_that_repeats_what_is_stored_is_asked_ever_more_slowly(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """One that ignores the offset, that forgets it for a while, or that sends old ones beside nothing."""
    five, six = {"update_id": 5}, {"update_id": 6}
    answers = [[five], *[[five]] * 3, [], [five, six], *[[six], [five]] * 10]
    host = await polled(tmp_path, answers, monkeypatch)
    assert pauses(host)[:10] == [0.2, 0.4, 0.8, 1.6, 0.2, 0.4, 0.8, 1.6, 3.2, 5]
    assert "does not hold a poll" in host.troubles[-1]


async def test_b11_ids_that_telegram_begins_anew_after_quiet_days_are_taken(
    tmp_path: Path, monkeypatch: Any
) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, environ={}, clock=clock)
    server = Unholding(host, [[{"update_id": 5}], []])
    monkeypatch.setattr(polling, "time", server)
    cursor = Cursor(offset=900, since_ms=int((clock.now() - 6 * 86400) * 1000))
    polls = Polling(host, server, Taking(), lambda taken: None, 30, cursor)  # pyright: ignore[reportArgumentType]
    await polls.run()
    assert server.offsets[:2] == [None, 6]
    await host.close()
