# SPDX-License-Identifier: Apache-2.0
"""F2: a machine whose clock is beside Slack's, as a laptop's is after sleep: what is told is what counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.base.clock import SystemClock
from goodbot_fakes.slack import FakeSlack

from tests.connectors.slack.peer import SlackPeer
from tests.end_to_end.daemon import running
from tests.end_to_end.slack import Person, daemon_beside
from tests.end_to_end.test_slack import PATIENT
from tests.support import require


class Ahead(SystemClock):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def now(self) -> float:
        return super().now() + self.seconds


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [180.0, 0.0, -180.0, 7200.0])
async def test_f2_a_word_after_a_reaction_counts_and_is_taken_back(seconds: float, tmp_path: Path) -> None:
    require("slack_bolt")
    async with FakeSlack(pace=PATIENT, clock=Ahead(seconds)) as slack:
        peer = SlackPeer(slack)
        ada = Person(peer, "ada")
        async with running(daemon_beside(tmp_path / "h", peer)) as daemon:

            def label() -> list[float]:
                return [value for (value,) in daemon.rows("SELECT value FROM labels")]

            answer = await ada.ask("What colour is grass?")
            ada.react(answer, "+1")
            await slack.settled()
            assert label() == [1.0]
            assert "Bad." in await ada.command("bad", like="Bad.")
            assert label() == [-1.0]
            assert "Taken back." in await ada.command("undo", like="Taken back.")
            assert label() == []
            again = await ada.command("undo", like="undo")
            assert "nothing" in again.lower()
            assert label() == []
