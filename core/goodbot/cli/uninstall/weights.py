# SPDX-License-Identifier: Apache-2.0
"""Base models in the hub's cache: only what goodbot itself has downloaded, and nobody else uses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.texts import reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import ConfigError
from goodbot.cli.uninstall.trace import Leaving, Trace, size_of, staying
from goodbot.inference.models import fetched
from goodbot.inference.models.directory import hub_cache


async def weights(leaving: Leaving) -> Sequence[Trace]:
    """One trace a downloaded commit."""
    try:
        known = fetched.entries(leaving.home)
    except ConfigError as error:
        return [staying("weights", phrase("uninstall_models"), reworded(error, here()))]
    return [_trace(leaving.home, entry) for entry in known]


def _trace(home: Path, entry: fetched.Fetched) -> Trace:
    what = phrase("uninstall_model", name=entry.repo, path=entry.path)
    if not _in_cache(entry):
        return staying("weights", what, phrase("uninstall_elsewhere"))

    async def remove() -> None:
        await asyncio.to_thread(fetched.remove, home, entry)

    size = sum(size_of(path) for path in fetched.removable(entry))
    return Trace(kind="weights", what=what, size=size, remove=remove)


def _in_cache(entry: fetched.Fetched) -> bool:
    """Whether it is where a download goes, by directories alone: a link could lead anywhere."""
    folder = hub_cache() / f"models--{entry.repo.replace('/', '--')}"
    commit = len(entry.commit) == 40 and set(entry.commit) <= set("0123456789abcdef")
    # The repository's name comes from a file: it must name one directory.
    single = entry.repo.count("/") <= 1 and not {".", ".."} & set(entry.repo.split("/"))
    inside = Path(entry.path) == folder / "snapshots" / entry.commit
    parts = (folder, folder / "snapshots", folder / "blobs", folder / "refs", Path(entry.path))
    return commit and single and inside and not any(path.is_symlink() for path in parts)
