# SPDX-License-Identifier: Apache-2.0
"""export: the rated answers as a file on the bot's own machine. Nothing of it goes into a chat."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from goodbot.base.errors import GoodbotError
from goodbot.commands.base import Call, Result
from goodbot.store import exporting


async def export(call: Call) -> Result:
    """One JSON object a line, oldest answer first; see `goodbot.store.exporting`."""
    s = call.services
    stem = datetime.fromtimestamp(s.clock.now(), UTC).strftime("%Y%m%d-%H%M%S")
    async with s.eraser.copying:
        path = exporting.free(s.config.home, stem)
        rated = await s.store.read(exporting.rated)
        try:
            await asyncio.to_thread(exporting.write, path, rated)
        except OSError as error:
            raise GoodbotError(f"nothing was exported: {error.strerror or error}") from error
    count = f"{len(rated)} rated answer{'' if len(rated) == 1 else 's'}"
    return Result(
        text=f"{count}: {exporting.EXPORTS}/{path.name} in goodbot's directory on its machine.",
        data={"answers": len(rated), "path": str(path)},
    )
