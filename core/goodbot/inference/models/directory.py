# SPDX-License-Identifier: Apache-2.0
"""Which directory holds the model's weights, and what they are called. Nothing is downloaded here."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from goodbot.api.model import DEMO_LABEL, ModelSpec, ResolvedModel, identity
from goodbot.base.cage.places import blobs
from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded

DEMO = "demo"
"""As `[model] path`: the tiny model, labelled, as with `--demo-model`."""
_HUB_NAME = re.compile(r"([\w.-]{1,96}/[\w.-]{1,96})(?:@([0-9a-f]{40}))?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TEXTS = (".json", ".jinja", ".txt", ".model")
_LONGEST_TEXT = 256 << 20
"""Bytes. The longest tokenizer.json have some 30 MB."""

_NO_TYPE = "{path}/config.json is no model's: it names no model_type"


def resolve(wanted: str, shipped: Mapping[str, ModelSpec], *, demo: bool) -> ResolvedModel:
    """The directory of the configured model. Raises ConfigError with what to do.

    `wanted` is a directory, or a name in the hub's local cache, `owner/name` or
    `owner/name@commit`; `DEMO`, or nothing and `demo`, is the model that a plugin ships for
    demonstrations.
    """
    if wanted in ("", DEMO):
        demos = [spec for spec in shipped.values() if spec.demo]
        if (demo or wanted) and demos:
            return ResolvedModel(name=demos[0].name, path=demos[0].path, label=DEMO_LABEL)
        none = (
            "no model is configured: `goodbot model use auto` proposes one for this machine, or try goodbot "
            "with --demo-model"
        )
        raise ConfigError(Worded(none))
    path = Path(wanted).expanduser()
    if path.is_dir():
        path = path.resolve()
        check(path)
        refuse_odd_marks(path)
        return ResolvedModel(name=identity(path), path=path)
    hub = hub_name(wanted)
    if hub is None:
        raise ConfigError(Worded("the model directory {path} does not exist", path=wanted))
    repo, commit = hub
    found = cached(repo, commit)
    if found is None:
        absent = "the model {name} is not on this machine: `goodbot model use {repo}` downloads it"
        raise ConfigError(Worded(absent, name=wanted, repo=repo))
    check(found)
    refuse_odd_marks(found)
    return ResolvedModel(name=repo, path=found)


def check(path: Path) -> None:
    """Refuse a directory that is no complete model of safetensors. Raises ConfigError."""
    config = read_config(path)
    if "model_type" not in config:
        raise ConfigError(Worded(_NO_TYPE, path=path))
    if not any(path.glob("*.safetensors")):
        other = "{path} holds no *.safetensors; goodbot loads no other format of weights"
        raise ConfigError(Worded(other, path=path))
    if missing := missing_weights(path):
        part = "{path} is not complete: {names} is missing"
        raise ConfigError(Worded(part, path=path, names=", ".join(missing[:3])))


def read_config(path: Path) -> dict[str, Any]:
    """A model directory's `config.json`. Raises ConfigError, also for what nobody should open there."""
    refuse_odd_files(path)
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        none = Worded("{path} is no model directory: it has no config.json", path=path)
        raise ConfigError(none) from None
    except (OSError, ValueError, RecursionError) as error:
        wrong = Worded("{path} cannot be read: {why}", path=f"{path}/config.json", why=str(error))
        raise ConfigError(wrong) from error
    if not isinstance(config, dict):
        raise ConfigError(Worded(_NO_TYPE, path=path))
    return cast("dict[str, Any]", config)


def refuse_odd_files(path: Path) -> None:
    """Refuse a model directory with a pipe, a device, a text without end or a link out of it in it.

    Whoever opens a pipe waits until somebody writes, and many libraries open these files. A link of
    somebody else's could name any file of ours. Raises ConfigError.
    """
    try:
        found = [Path(entry) for entry in os.scandir(path)]
    except OSError:
        return  # whoever reads a file there says it
    own = [Path(place).resolve() for place in (path, *blobs(path))]
    for file in found:
        try:
            about = file.stat()
            real = file.resolve() if file.is_symlink() else None
        except OSError:
            continue
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
            odd = "{path} is no plain file: take it out of the model's directory"
            raise ConfigError(Worded(odd, path=file))
        if real is not None and not any(map(real.is_relative_to, own)):
            link = "{path} is a link out of the model's directory: put the file itself there"
            raise ConfigError(Worded(link, path=file))
        if file.suffix in _TEXTS and about.st_size > _LONGEST_TEXT:
            long = "{path} has {megabytes} MB: no model's file is so long"
            raise ConfigError(Worded(long, path=file, megabytes=about.st_size >> 20))


def refuse_odd_marks(path: Path) -> None:
    """Refuse a model whose marks cannot all be told from people's words. Raises ConfigError."""
    from goodbot.api import marks  # many who ask for a directory look at none

    marks.added(path)


def missing_weights(path: Path) -> list[str]:
    """The weight files that the index names and that are not there."""
    try:
        index = json.loads((path / "model.safetensors.index.json").read_text(encoding="utf-8"))
        names = {str(name) for name in index["weight_map"].values()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []
    return sorted(name for name in names if not (path / name).is_file())


def hub_name(wanted: str) -> tuple[str, str] | None:
    """`owner/name[@commit]` as (owner/name, commit or ""); None for what is no hub name."""
    found = _HUB_NAME.fullmatch(wanted)
    if found is None or any(part in (".", "..") for part in found[1].split("/")):
        return None
    return found[1], found[2] or ""


def hub_cache() -> Path:
    """The directory that all programs on this machine share for the hub's files."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(os.environ.get("HF_HOME") or cache / "huggingface").expanduser()
    return Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser()


def cache_folder(repo: str) -> Path:
    """Where the hub's cache keeps `owner/name`."""
    return hub_cache() / f"models--{repo.replace('/', '--')}"


def cached(repo: str, commit: str = "") -> Path | None:
    """The snapshot of a hub model on this disk: the commit's, else that of `main`, else the only."""
    folder = cache_folder(repo)
    snapshots = folder / "snapshots"
    if not commit:
        try:
            commit = (folder / "refs" / "main").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            only = [entry.name for entry in snapshots.iterdir()] if snapshots.is_dir() else []
            commit = only[0] if len(only) == 1 else ""
    snapshot = snapshots / commit
    return snapshot if _COMMIT.fullmatch(commit) and snapshot.is_dir() else None
