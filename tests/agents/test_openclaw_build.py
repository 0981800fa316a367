# SPDX-License-Identifier: Apache-2.0
"""The plugin that is shipped is what the pinned compiler makes of its sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot_connectors.openclaw.setup import PLUGIN

from tests.connectors.openclaw.build import compile_to, compiled

pytestmark = pytest.mark.agents


def test_compiled_anew_it_is_the_same(tmp_path: Path) -> None:
    compile_to(tmp_path / "dist")
    assert sorted(path.name for path in (tmp_path / "dist").iterdir()) == sorted(
        path.name for path in (PLUGIN / "dist").iterdir()
    )
    assert compiled(tmp_path / "dist") == compiled(PLUGIN / "dist")
