# SPDX-License-Identifier: Apache-2.0
"""A version is exported from the page of versions: at once, or by a command to copy; by owners alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.connectors.web.browsing import person
from tests.connectors.web.test_progress import NARROW, press
from tests.connectors.web.test_versions import wire
from tests.connectors.web.test_whole import goodbot, link

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("viewport", [NARROW, {"width": 1280, "height": 800}], ids=["phone", "desk"])
async def test_an_owner_exports_it_and_copies_the_command_by_keyboard(
    chromium: Any, tmp_path: Path, unused_tcp_port: int, viewport: Any
) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot, person(chromium, viewport=viewport) as owner:
        await bot.rated(8)
        await bot.train()
        await owner.sign_in(await link(bot))
        await press(owner, "Versions")
        await owner.sees("v1 answers now.")
        command = shlex.join(
            ["goodbot", "--home", str(tmp_path / "bot"), "adapters", "export", "1", "--out", "goodbot-v1"]
        )
        shown = owner.page.locator("#version-1 .command")
        await owner.page.get_by_role("button", name="Export v1").wait_for()
        assert await shown.is_hidden()
        await press(owner, "Export v1")
        await owner.sees("What it writes is not encrypted.")
        assert await shown.locator("> code").inner_text() == command
        assert not await owner.scrolls_sideways()
        await press(owner, "Copy")
        await shown.get_by_text("Copied").wait_for()
        await press(owner, "Write it at the bot’s machine")
        await owner.sees("v1 is in exports/goodbot-v1.tar in goodbot’s directory on its machine.")
        assert (tmp_path / "bot/exports/goodbot-v1.tar").is_file()
        await press(owner, "Export v1")
        await shown.wait_for(state="hidden")
        field = owner.page.get_by_label("A question for both")
        await field.press("Control+v")
        assert await field.input_value() == command
        assert await owner.page.get_by_role("button", name="Export").count() == 1, "the base model has none"


async def test_it_reaches_nobody_but_an_owner(tmp_path: Path, unused_tcp_port: int) -> None:
    async with goodbot(tmp_path, unused_tcp_port) as bot:
        await bot.rated(8)
        await bot.train()
        assert "adapters export 1" in (await wire(bot, unused_tcp_port, "owner"))[1]
        for user in ("rater", "talker"):
            status, found = await wire(bot, unused_tcp_port, user)
            assert (status, "export" in found, str(tmp_path) in found) == (400, False, False)
