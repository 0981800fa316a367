# SPDX-License-Identifier: Apache-2.0
"""adapters export, in a chat or on a page: a version as a file on the bot's machine, at a place of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from goodbot.api.adapters.manifest import inspect
from goodbot.api.sentences import clause_of
from goodbot.api.sentences import version as name_of
from goodbot.api.server import BASE
from goodbot.api.texts import say
from goodbot.base.errors import AdapterError
from goodbot.commands.base import Call, Result, wrong
from goodbot.commands.lineage import version_of
from goodbot.config import clear
from goodbot.learning.adapters import exporting
from goodbot.store import exporting as exports


async def exported(call: Call, words: Sequence[str]) -> Result:
    """Write one version as an archive, read it back, and say where it lies.

    In the terminal `goodbot adapters export` has the forms, and a place of one's choice.
    """
    if len(words) != 1:
        raise wrong(call.event, "wrong_one_version", command="export")
    s, version = call.services, version_of(call, words[0])
    if version == BASE or await asyncio.to_thread(clear.is_apart, s.registry.root):
        raise wrong(call.event, "wrong_adapters_export")
    async with s.eraser.copying:  # else a forgetting would miss it
        row = await s.registry.row(version)
        if row.tainted:
            why = clause_of(row.tainted, call.user.language)
            raise AdapterError(say("wrong_withdrawn", call.user.language, version=version, why=why))
        path = await s.registry.path(version)
        manifest = await asyncio.to_thread(inspect, s.registry.root, row.directory)
        out = exports.free(s.config.home, f"goodbot-v{version}", "tar")
        out.parent.mkdir(mode=0o700, exist_ok=True)
        making = exporting.export(
            "peft",
            path,
            manifest,
            out,
            home=s.config.home,
            model=s.model.path,
            now=s.clock.now(),
            progress=lambda done, of: None,
        )
        await asyncio.to_thread(asyncio.run, making)  # it reads and writes all of it
    where = f"{exports.EXPORTS}/{out.name}"
    text = say("version_exported", call.user.language, name=name_of(version, call.user.language), path=where)
    return Result(text=text, data={"version": version, "path": str(out), "bytes": out.stat().st_size})
