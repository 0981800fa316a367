# SPDX-License-Identifier: Apache-2.0
"""An error has something to say, whatever it is."""

from __future__ import annotations

import pytest
from goodbot.base.errors import message_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("it is\n  no number"), "it is no number"),
        (MemoryError(), "there was not enough memory"),
        (TimeoutError(), "it took too long"),
        (ConnectionResetError(" \n"), "ConnectionResetError without a message"),
    ],
)
def test_what_an_error_says_is_never_empty(error: Exception, said: str) -> None:
    assert message_of(error) == said
