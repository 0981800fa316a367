# SPDX-License-Identifier: Apache-2.0
"""A connector with a person of its own, for each test that wants one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.connectors.claude_code.peer import Peer


@pytest.fixture
async def peer(tmp_path: Path) -> AsyncIterator[Peer]:
    peer = Peer(tmp_path)
    await peer.start()
    yield peer
    await peer.close()
    assert peer.failures == []
