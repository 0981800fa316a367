# SPDX-License-Identifier: Apache-2.0
"""Sessions go by their days, whatever the clock showed when they were used."""

from __future__ import annotations

from pathlib import Path

from goodbot.testing.clock import VirtualClock
from goodbot.testing.host import RecordingHost
from goodbot_connectors.codex import SPEC
from goodbot_connectors.codex.session import Session
from goodbot_connectors.codex.sessions import Sessions

DAY = 86_400.0


async def test_a_session_of_a_time_to_come_is_dropped_after_its_days_too(tmp_path: Path) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, clock=clock)
    clock.jump(400 * DAY)
    await Sessions(host, 30).put("old", Session(answer="of old"))
    clock.jump(-400 * DAY)
    await Sessions(host, 30).start()
    assert "of old" in str(host._values)
    clock.advance(31 * DAY)
    again = Sessions(host, 30)
    await again.start()
    assert "of old" not in str(host._values)
    await host.close()


async def test_b1_a_clock_that_is_ahead_for_a_moment_drops_nothing(tmp_path: Path) -> None:
    clock = VirtualClock()
    host = RecordingHost(SPEC, state_dir=tmp_path, clock=clock)
    sessions = Sessions(host, 30)
    await sessions.put("old", Session(answer="of old"))
    clock.jump(40 * DAY)
    await sessions.put("new", Session(answer="of new"))
    await Sessions(host, 30).start()
    clock.jump(-40 * DAY)
    again = Sessions(host, 30)
    await again.start()
    assert (await again.get("old")).answer == "of old"
    clock.advance(31 * DAY)
    await again.start()
    assert "of old" not in str(host._values)
    await host.close()
