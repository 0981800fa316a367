# SPDX-License-Identifier: Apache-2.0
"""A stranger's wrong pairing code is answered on every platform that people pair on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from goodbot.testing.connector_base import eventually

from tests.connectors.test_every_note import Far, beside, discord, slack, teams, telegram


@pytest.mark.parametrize("surface", [telegram, discord, slack, teams], ids=lambda surface: surface.__name__)
async def test_a_wrong_code_is_answered(
    tmp_path: Path, surface: Callable[[Path], Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with surface(tmp_path) as far, beside(tmp_path, surface.__name__, far, monkeypatch):
        await far.say("AAAA-2222", user="bob")

        async def told() -> bool:
            seen = [*(post.text for post in await far.posts(user="bob")), *await far.notices("bob")]
            return any(f"goodbot pair {surface.__name__}" in text for text in seen)

        await eventually(told)
