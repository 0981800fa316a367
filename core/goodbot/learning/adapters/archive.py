# SPDX-License-Identifier: Apache-2.0
"""One version as one file, to carry to another machine: a tar of its two files and a manifest.

The manifest tells the base, its tokenizer and its chat template, so that it is not brought in on
another base; it tells no rating and no run.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from dataclasses import asdict, replace
from pathlib import Path

from goodbot.api.adapters.files import MAX_TEXT, MAX_WEIGHTS, plain
from goodbot.api.adapters.manifest import CONFIG, MANIFEST, WEIGHTS, AdapterManifest, contents, parse
from goodbot.base.errors import AdapterError
from goodbot.base.safe_tar import ArchiveError, add, copy, next_member
from goodbot.base.worded import Worded, said_by

_NONE = "{path} is no adapter that goodbot has exported: {why}"
_LIMITS = {MANIFEST: MAX_TEXT, CONFIG: MAX_TEXT, WEIGHTS: MAX_WEIGHTS}


def write(path: Path, directory: Path, manifest: AdapterManifest, *, now: float) -> None:
    """Make the archive at `path`, which must not exist. Raises AdapterError, OSError."""
    config, weights = contents(directory)
    bare = replace(manifest, parent=0, run=None, ratings={}, metrics={}, fingerprint="", source="goodbot")
    text = json.dumps(asdict(bare), indent=1, sort_keys=True).encode() + b"\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with (
        os.fdopen(descriptor, "wb") as out,
        tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name, content in ((MANIFEST, text), (CONFIG, config), (WEIGHTS, weights)):
            add(tar, name, len(content), now, io.BytesIO(content))


def unpack(path: Path, into: Path) -> AdapterManifest:
    """Its two files to an empty directory; returns its manifest. Raises AdapterError, OSError.

    Nothing is written but members of these names, each once, each within its limit, and they must be
    what the manifest says.
    """
    found: dict[str, str] = {}
    manifest: AdapterManifest | None = None
    try:
        with plain(path, limit=MAX_WEIGHTS + 4 * MAX_TEXT) as file:
            while (member := next_member(file)) is not None:
                name, size = member
                if name not in _LIMITS or name in found:
                    odd = "{path} holds {name}, which has no place in it"
                    raise AdapterError(Worded(odd, path=path.name, name=repr(name[:80])))
                if size > _LIMITS[name]:
                    large = "{path}: {name} is over the limit of {limit}"
                    raise AdapterError(Worded(large, path=path.name, name=name, limit=_LIMITS[name]))
                if name == MANIFEST:
                    text = io.BytesIO()
                    found[name] = copy(file, size, text)
                    manifest = parse(text.getvalue(), path.name)
                    continue
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
                with os.fdopen(os.open(into / name, flags, 0o600), "wb") as target:
                    found[name] = copy(file, size, target)
    except ArchiveError as error:
        raise AdapterError(Worded(_NONE, path=path.name, why=said_by(error))) from error
    if manifest is None or set(found) != set(_LIMITS):
        missing = ", ".join(sorted(set(_LIMITS) - set(found)))
        raise AdapterError(Worded(_NONE, path=path.name, why=Worded("{name} is missing", name=missing)))
    for name, digest in manifest.files.items():
        if found[name] != digest:
            damaged = "{path} is damaged: {name} is not what its manifest says"
            raise AdapterError(Worded(damaged, path=path.name, name=name))
    return manifest
