# SPDX-License-Identifier: Apache-2.0
"""Bringing a model's weights to this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded
from goodbot.config.secrets import SecretStore
from goodbot.inference.models import fetched
from goodbot.inference.models.directory import (
    cache_folder,
    cached,
    check,
    hub_name,
    refuse_odd_marks,
    resolve,
)

Progress = Callable[[Mapping[str, Any]], None]
TOKEN = "HF_TOKEN"  # noqa: S105  the name of the variable


@dataclass(frozen=True, kw_only=True, slots=True)
class Obtained:
    """Weights that are complete on this disk."""

    name: str
    """The model's identity, as `ResolvedModel.name`."""
    reference: str
    """What `[model] path` is set to: a directory, or `owner/name@commit`."""
    path: Path
    fetched: int = 0
    """Bytes that were downloaded now."""


def obtain(source: str, home: Path, *, progress: Progress | None = None) -> Obtained:
    """The weights of `source`: a directory, `owner/name` or `owner/name@commit` in the hub.

    What is complete on this disk is taken as it is; else it is downloaded, resumed where an earlier
    attempt stopped, and each file's hash checked. Blocks; Ctrl-C leaves a part to resume from.
    Raises GoodbotError with a sentence for every way in which it can fail.
    """
    if Path(source).expanduser().is_dir():
        found = resolve(source, {}, demo=False)
        return Obtained(name=found.name, reference=str(found.path), path=found.path)
    hub = hub_name(source)
    if hub is None:
        neither = "{name} is neither a directory nor a name in the hub"
        raise ConfigError(Worded(neither, name=repr(source)))
    repo, commit = hub
    if (here := complete(repo, commit)) is not None:
        refuse_odd_marks(here)
        return Obtained(name=repo, reference=f"{repo}@{here.name}", path=here)
    return _download(repo, commit, home, progress)


def complete(repo: str, commit: str = "") -> Path | None:
    """A hub model's snapshot on this disk if all of it is there."""
    path = cached(repo, commit)
    if path is not None:
        try:
            check(path)
        except ConfigError:
            return None
    return path


def token(home: Path) -> str | None:
    """The stored token for the hub; with None its library takes the one of its own login."""
    return SecretStore(home).environment([TOKEN]).get(TOKEN) or None


def _download(repo: str, commit: str, home: Path, progress: Progress | None) -> Obtained:
    from goodbot.inference.models import hub, transfer

    secret = token(home)
    model = hub.describe(repo, commit, secret)
    folder = cache_folder(repo)
    ours = tuple(file.digest for file in model.files if not (folder / "blobs" / file.digest).exists())
    fetched.record(
        home,
        fetched.Fetched(
            repo=repo, commit=model.commit, path=str(folder / "snapshots" / model.commit), blobs=ours
        ),
    )
    total = sum(file.size for file in model.files if file.digest in ours)
    meter = _Meter(total, progress)
    path = transfer.download(model, folder, secret, meter)
    check(path)
    refuse_odd_marks(path)
    return Obtained(name=repo, reference=f"{repo}@{model.commit}", path=path, fetched=meter.network)


class _Meter:
    """Bytes → what `goodbot.api.progress.progress_line` shows, in MB, ten times a second."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self._total, self._progress = total, progress
        self._done = self.network = 0
        self._began = self._shown = time.monotonic()

    def kept(self, count: int) -> None:
        self._done += count

    def lost(self, count: int) -> None:
        self._done -= count

    def arrived(self, count: int) -> None:
        self._done += count
        self.network += count
        now = time.monotonic()
        if self._progress is None or (now - self._shown < 0.1 and self._done < self._total):
            return
        self._shown = now
        rate = self.network / max(now - self._began, 0.1)
        self._progress(
            {
                "phase": "downloading (MB)",
                "step": self._done // 1_000_000,
                "steps": max(1, self._total // 1_000_000),
                "eta": (self._total - self._done) / rate,
            }
        )
