# SPDX-License-Identifier: Apache-2.0
"""What is said of a clock that is not the platform's."""

from __future__ import annotations

import logging

import pytest
from goodbot.base.platform_time import PlatformTime


def test_two_clocks_apart_are_told_in_status_and_once_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    time = PlatformTime()
    time.note("Slack", 1000.0, 1030.0)
    assert time.ahead == {}
    time.note("Slack", 1180.0, 1000.0)
    time.note("Slack", 1190.0, 1000.0)
    time.note("Telegram", 1000.0, 1100.0)
    assert time.ahead == {"Slack": -190.0, "Telegram": 100.0}
    assert sum("behind Slack" in record.getMessage() for record in caplog.records) == 1
    time.note("Slack", 1000.0, 1000.0)
    assert time.ahead == {"Telegram": 100.0}
    assert "agrees with that of Slack again" in caplog.records[-1].getMessage()
