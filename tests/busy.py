# SPDX-License-Identifier: Apache-2.0
"""pytest's own limit of a test is a net for what hangs: on a busy machine it is as much longer."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.support import patience

_ROOM = 2
"""The machine may become busier while the test runs."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Before pytest-timeout reads it: the limit that the test, or else the project, has asked for."""
    limits = [mark for mark in item.iter_markers("timeout") if mark.args]
    seconds = limits[0].args[0] if limits else default(item.config)
    if seconds:
        item.add_marker(pytest.mark.timeout(_ROOM * patience(float(seconds))), append=False)
    return (yield)


def default(config: pytest.Config) -> float:
    """`--timeout`, or what pyproject.toml says."""
    given = config.getoption("timeout", default=None)
    return float(given if given is not None else config.getini("timeout") or 0)
