# SPDX-License-Identifier: Apache-2.0
"""Files of one adapter version: checked, hashed, synced and renamed into place; checked again at use.

A directory under its final name is complete: the files and the directory are synced before
the rename, and the parent directory after it. The name ends in the manifest's hash, the manifest
holds the files' hashes and the database holds the name: so no byte can change unnoticed. What is
loaded is hashed once more by who loads it, from the very bytes that it parses
(`goodbot_training.backends.adapters.read_adapter`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from goodbot.api.adapters.base import Base
from goodbot.api.adapters.files import MAX_TEXT, MAX_WEIGHTS, folder, read, sha256, sized
from goodbot.api.adapters.weights import MALFORMED, MOST, check_weights, header, pairs
from goodbot.base import encrypted, trees
from goodbot.base.durable import sync
from goodbot.base.errors import AdapterError
from goodbot.base.worded import Worded

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
FINGERPRINT = "fingerprint.json"
MANIFEST = "manifest.json"
FORMAT = 2
"""Format 1 had no number, and told nothing of the base but its name."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_PART = 1 << 20
_HASH = 16
"""Hexadecimal digits of the manifest's hash in a directory's name."""
_OTHER_MANIFEST = "the manifest of {name} is not the one that was written"
_OTHER_FILE = "{name} is not the file that was trained"
_OTHER_TOKENIZER = (
    "the tokenizer of {model} has changed since {name} was trained, and it would read other prompts than it "
    "learnt from. Put the old tokenizer back into the model's directory, then `goodbot rollback {version}`"
)
_OTHER_TEMPLATE = (
    "the chat template of {model} has changed since {name} was trained, and it would read other prompts than "
    "it learnt from. Put the old chat template back into the model's directory, then `goodbot rollback "
    "{version}`"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AdapterManifest:
    """What an adapter is: its files' hashes, its base, its parent, and what trained it. No texts."""

    version: int
    parent: int
    run: int | None
    """None for one that was imported."""
    model: str
    files: Mapping[str, str]
    """Of weights and config: name → sha256."""
    fingerprint: str = ""
    """The third file's sha256; empty without one. Apart, so that the release before reads the rest."""
    metrics: Mapping[str, Any] = field(default_factory=dict[str, Any])
    revision: str = ""
    """Of the base, its tokenizer and its chat template: see `Base`. Empty in format 1."""
    tokenizer: str = ""
    chat_template: str = ""
    ratings: Mapping[str, Sequence[int]] = field(default_factory=dict[str, Sequence[int]])
    """Turn → the ledger's events whose labels trained it."""
    source: str = ""
    """Of one that was imported: what from."""
    format: int = FORMAT

    def on(self, base: Base) -> AdapterManifest:
        """The same, of an adapter of this base."""
        return replace(
            self,
            model=base.model,
            revision=base.revision,
            tokenizer=base.tokenizer,
            chat_template=base.chat_template,
        )


def publish(staging: Path, root: Path, manifest: AdapterManifest) -> tuple[Path, AdapterManifest]:
    """Move a finished adapter into `root`, under a name that is made here; encrypted where that is on.

    Args:
        staging: The directory that the trainer has written. It is gone afterwards.
        root: The directory of all versions; it is made where it is missing.
        manifest: What the version is, without hashes.

    Returns:
        Its new directory (`v000007-1a2b3c4d5e6f7a8b`), and the manifest with the hashes.

    Raises:
        AdapterError: There is anything but an adapter's two or three plain files.
        OSError: The disk is full, or not to be written.
    """
    names = sorted(entry.name for entry in staging.iterdir())
    if not {CONFIG, WEIGHTS} <= set(names) <= {CONFIG, WEIGHTS, FINGERPRINT}:
        left = ", ".join(names) or Worded("nothing")
        raise AdapterError(Worded("the trainer left {names} instead of an adapter", names=left))
    shapes = check_weights(staging / WEIGHTS)
    pairs(shapes, _object(read(staging / CONFIG), f"{staging.name}/{CONFIG}"))
    hashes = {name: sha256(staging / name) for name in names}
    if FINGERPRINT in names:
        _object(read(staging / FINGERPRINT), f"{staging.name}/{FINGERPRINT}")
    fingerprint = hashes.pop(FINGERPRINT, "")
    complete = replace(manifest, files=hashes, fingerprint=fingerprint)
    text = json.dumps(asdict(complete), indent=1, sort_keys=True) + "\n"
    with (staging / MANIFEST).open("x", encoding="utf-8") as file:  # never through a link
        file.write(text)
    for entry in staging.iterdir():
        entry.chmod(0o400)
        sync(entry)
    sync(staging)
    if not root.is_dir():  # somebody has removed it while it was trained
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync(root.parent)
    final = root / f"v{manifest.version:06d}-{sha256(staging / MANIFEST)[:_HASH]}"
    from goodbot.config import private  # children, which read adapters only, need none of it

    if private.is_on(root):
        _move_encrypted(staging, final, private.keep)
    else:
        staging.rename(final)
    sync(root)
    return final, complete


def _move_encrypted(staging: Path, final: Path, keep: Callable[[Path, Path], None]) -> None:
    """What was prepared in clear, elsewhere than on this disk, appears encrypted by one rename."""
    part = final.with_name(f".{final.name}.part")
    trees.remove(part, ignore_errors=True)
    part.mkdir(mode=0o700)
    for entry in staging.iterdir():
        keep(entry, part)
    sync(part)
    part.rename(final)
    trees.remove(staging, ignore_errors=True)  # the version is there; who made the directory sweeps it


def verify(root: Path, directory: str, expected_sha256: str, base: Base | None = None) -> Path:
    """Check every file of a version against its manifest.

    Args:
        root: The directory of all versions.
        directory: The name of the version's directory in it.
        expected_sha256: The weights' hash as the database knows it, in hexadecimal. So a manifest
            that was replaced together with the weights is noticed, too.
        base: The base model that is here; None checks the files alone.

    Returns:
        The path of the version.

    Raises:
        AdapterError: A file, the manifest or the base model is another one.
    """
    manifest = inspect(root, directory)
    if manifest.files[WEIGHTS] != expected_sha256:
        other = Worded("{name} is not the adapter that the database knows", name=directory)
        raise AdapterError(other)
    if base is not None and (change := changed(manifest, base)):
        raise AdapterError(change)
    return root / directory


def inspect(root: Path, directory: str) -> AdapterManifest:
    """The manifest of a directory, all of whose files are what it says. Raises AdapterError."""
    if not _NAME.fullmatch(directory):
        raise AdapterError(Worded("{name} is no name of an adapter directory", name=repr(directory[:80])))
    path = root / directory
    try:
        with folder(path) as here:
            text = read(path / MANIFEST, within=here)
            if hashlib.sha256(text).hexdigest()[:_HASH] != directory.rpartition("-")[2]:
                raise AdapterError(Worded(_OTHER_MANIFEST, name=directory))
            manifest = parse(text, directory)
            for name, digest in _named(manifest):
                limit = MAX_WEIGHTS if name == WEIGHTS else MAX_TEXT
                with sized(path / name, limit=limit, within=here) as (file, size):
                    begin = file.read(MOST)
                    hashed = hashlib.sha256(begin)
                    while part := file.read(_PART):
                        hashed.update(part)
                    if hashed.hexdigest() != digest:
                        raise AdapterError(Worded(_OTHER_FILE, name=f"{directory}/{name}"))
                    if name == WEIGHTS:
                        header(io.BytesIO(begin), name, size)
    except MALFORMED as error:
        wrong = Worded("the adapter {name} cannot be read ({why})", name=directory, why=str(error))
        raise AdapterError(wrong) from error
    return manifest


def contents(path: Path) -> tuple[bytes, bytes]:
    """`(config, weights)` of a directory, each read once; for who parses them. Raises AdapterError.

    Where a manifest lies beside them, these very bytes are what it says, and it is the one that the
    directory is named after: nothing can be exchanged between the check and the use.
    """
    with folder(path) as here:
        config = read(path / CONFIG, within=here)
        weights = read(path / WEIGHTS, limit=MAX_WEIGHTS, within=here)
        if not {MANIFEST, MANIFEST + encrypted.ENDING} & {*os.listdir(here)}:
            return config, weights
        text = read(path / MANIFEST, within=here)
    if hashlib.sha256(text).hexdigest()[:_HASH] != path.name.rpartition("-")[2]:
        raise AdapterError(Worded(_OTHER_MANIFEST, name=path.name))
    files = parse(text, path.name).files
    for name, content in ((CONFIG, config), (WEIGHTS, weights)):
        if hashlib.sha256(content).hexdigest() != files[name]:
            raise AdapterError(Worded(_OTHER_FILE, name=f"{path.name}/{name}"))
    return config, weights


def parse(text: bytes, directory: str) -> AdapterManifest:
    """A manifest's text, of this format or an earlier one. Raises AdapterError."""
    found = _object(text, f"{directory}/{MANIFEST}")
    try:
        if (format_ := int(found.get("format", 1))) > FORMAT:
            newer = "{name} was made by a newer goodbot (format {format}): `goodbot upgrade --check`"
            raise AdapterError(Worded(newer, name=directory, format=format_))
        files = {str(name): str(digest) for name, digest in found["files"].items()}
        if set(files) != {CONFIG, WEIGHTS}:
            raise AdapterError(Worded("{name} has a manifest that names other files", name=directory))
        run = found["run"]
        return AdapterManifest(
            version=int(found["version"]),
            parent=int(found["parent"]),
            run=None if run is None else int(run),
            model=str(found["model"]),
            files=files,
            fingerprint=str(found.get("fingerprint", "")),
            metrics=dict(found.get("metrics", {})),
            revision=str(found.get("revision", "")),
            tokenizer=str(found.get("tokenizer", "")),
            chat_template=str(found.get("chat_template", "")),
            ratings=dict(found.get("ratings", {})),
            source=str(found.get("source", "")),
            format=format_,
        )
    except MALFORMED as error:
        wrong = Worded("the manifest of {name} cannot be read ({why})", name=directory, why=str(error))
        raise AdapterError(wrong) from error


def changed(manifest: AdapterManifest, base: Base) -> str:
    """What of the base is not as it was when this was trained, with what to do; empty: nothing."""
    name = f"v{manifest.version}"
    if not manifest.revision:
        return ""
    if manifest.revision != base.revision:
        back = Worded("put the weights that it was trained on back")
        if ":" not in manifest.revision:
            source = f"{manifest.model}@{manifest.revision}"
            back = Worded("`goodbot model use {name}` brings that back", name=source)
        other = "{name} was trained on other weights of {model} ({then}) than lie here now ({now}): {back}"
        then, now = _short(manifest.revision), _short(base.revision)
        return Worded(other, name=name, model=manifest.model, then=then, now=now, back=back)
    facts = {"model": manifest.model, "name": name, "version": manifest.version}
    if manifest.tokenizer != base.tokenizer:
        return Worded(_OTHER_TOKENIZER, **facts)
    if manifest.chat_template != base.chat_template:
        return Worded(_OTHER_TEMPLATE, **facts)
    return ""


def _named(manifest: AdapterManifest) -> list[tuple[str, str]]:
    more = [(FINGERPRINT, manifest.fingerprint)] if manifest.fingerprint else []
    return [*manifest.files.items(), *more]


def _object(text: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        wrong = Worded("{name} cannot be read ({why})", name=where, why=str(error))
        raise AdapterError(wrong) from error
    if not isinstance(found, dict):
        raise AdapterError(Worded("{name} is no JSON object", name=where))
    return cast("dict[str, Any]", found)


def _short(revision: str) -> str:
    return revision.removeprefix("sha256:")[:12] or "unknown"
