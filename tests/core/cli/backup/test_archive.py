# SPDX-License-Identifier: Apache-2.0
"""The archive is somebody else's file until every byte of it is checked."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.texts import terminal
from goodbot.base.errors import StoreFullError
from goodbot.cli.backup import archive
from goodbot.cli.backup.archive import ArchiveError, BackupManifest

ABOUT = BackupManifest(goodbot="0.1.0", schema=2, created_at=1.7e9, turns=3, ratings=2, adapters=1)
FILES = {
    "goodbot.db": b"SQLite format 3\0" + bytes(5000),
    "config.toml": b"[model]\n",
    "adapters/v000001-0123456789abcdef/manifest.json": b"{}",
    "connectors/telegram/sub/state": b"",
}


def build(path: Path, files: dict[str, bytes] | None = None) -> Path:
    files = FILES if files is None else files
    sources = path.parent / "sources"
    sources.mkdir(exist_ok=True)
    named: dict[str, Path] = {}
    for number, (name, content) in enumerate(files.items()):
        named[name] = sources / str(number)
        named[name].write_bytes(content)
    archive.write(path, ABOUT, named)
    return path


Edit = Callable[[dict[str, Any]], object]


def forged(
    path: Path,
    *,
    edit: Edit | None = None,
    members: list[tarfile.TarInfo] | None = None,
    listed: dict[str, bytes] | None = None,
    kind: int = tarfile.USTAR_FORMAT,
) -> Path:
    """An archive as an enemy makes one: any list, any members."""
    files = FILES if listed is None else listed
    manifest: dict[str, Any] = {
        "format": 1,
        "about": {
            "goodbot": "0.1.0",
            "schema": 2,
            "created_at": 1.7e9,
            "turns": 3,
            "ratings": 2,
            "adapters": 1,
            "left_out": [],
        },
        "files": {
            name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        },
    }
    if edit:
        edit(manifest)
    text = json.dumps(manifest).encode()
    with tarfile.open(path, "w", format=kind) as tar:
        info = tarfile.TarInfo("manifest.json")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
        for info in members or []:
            tar.addfile(info, io.BytesIO(bytes(info.size)))
    return path


def unpack(path: Path) -> dict[str, bytes]:
    into = path.parent / f"into-{random.randrange(10**9)}"
    into.mkdir()
    archive.read(path, into)
    return {p.relative_to(into).as_posix(): p.read_bytes() for p in into.rglob("*") if p.is_file()}


def test_there_and_back(tmp_path: Path) -> None:
    path = build(tmp_path / "b.tar")
    assert archive.read(path) == ABOUT
    assert unpack(path) == FILES
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as tar:  # any tar can open it
        assert [m.name for m in tar.getmembers()] == ["manifest.json", *FILES]
    into = tmp_path / "private"
    into.mkdir(mode=0o700)
    archive.read(path, into)
    modes = {p.stat().st_mode & 0o777 for p in into.rglob("*") if p.is_dir()}
    assert modes == {0o700}
    assert unpack(forged(tmp_path / "same.tar")) == FILES, "the forger can make a good one"


@pytest.mark.parametrize(
    "name",
    [
        "../goodbot.db",
        "/etc/passwd",
        "adapters/../../x",
        "adapters/v1/../manifest.json",
        "x",
        "adapters/v1/evil.pkl",
        "adapters/v1/sub/manifest.json",
        "connectors/x",
        "secrets.env",
        "lock",
        "connectors/../secrets.env",
        "connectors/t/.hidden",
        "connectors/t/a\\b",
        "connectors/t/a\nb",
        "adapters//manifest.json",
        "connectors/t/" + "x" * 300,
        "",
        "goodbot.db/x",
        "config.toml/",
        "adapters/.x/manifest.json",
    ],
)
def test_no_name_leads_elsewhere(tmp_path: Path, name: str) -> None:
    assert not archive.allowed(name)
    path = forged(
        tmp_path / "b.tar",
        edit=lambda m: m["files"].update({name: {"size": 0, "sha256": hashlib.sha256().hexdigest()}}),
    )
    with pytest.raises(ArchiveError, match="no place in a backup"):
        unpack(path)


def member(name: str, kind: bytes, **fields: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info


@pytest.mark.parametrize(
    "odd",
    [
        member("fetched.json", tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("fetched.json", tarfile.LNKTYPE, linkname="goodbot.db"),
        member("fetched.json", tarfile.CHRTYPE),
        member("fetched.json", tarfile.FIFOTYPE),
        member("connectors", tarfile.DIRTYPE),
        member("fetched.json", tarfile.REGTYPE, size=5),
        member("config.toml", tarfile.REGTYPE, size=8),
    ],
    ids=["symlink", "hard link", "device", "pipe", "directory", "not listed", "twice"],
)
def test_only_listed_plain_files_each_once(tmp_path: Path, odd: tarfile.TarInfo) -> None:
    path = forged(tmp_path / "b.tar", members=[odd])
    with pytest.raises(ArchiveError, match=r"plain file|does not list"):
        unpack(path)


def test_extended_headers_mean_nothing(tmp_path: Path) -> None:
    """A pax header can rename, resize and make sparse what follows it."""
    evil = tarfile.TarInfo("fetched.json")
    evil.pax_headers = {"path": "../../evil", "GNU.sparse.size": "99999999999"}
    path = forged(tmp_path / "b.tar", members=[evil], kind=tarfile.PAX_FORMAT)
    with pytest.raises(ArchiveError, match="plain file"):
        unpack(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda m: m.update(format=2),
        lambda m: m.update(files=[]),
        lambda m: m.pop("about"),
        lambda m: m["files"].pop("goodbot.db"),
        lambda m: m["about"].update(created_at="x"),
        lambda m: m["about"].update(created_at=float("nan")),
        lambda m: m["files"]["goodbot.db"].update(size=-1),
        lambda m: m["files"]["goodbot.db"].update(size="5"),
        lambda m: m["files"]["goodbot.db"].update(size=10**15),
        lambda m: m["files"]["goodbot.db"].update(size=17),
        lambda m: m["files"]["goodbot.db"].update(sha256="0" * 64),
        lambda m: m["files"].update({f"connectors/t/{i}": {"size": 0, "sha256": ""} for i in range(10001)}),
        lambda m: m["files"].update({"fetched.json": {"size": 0, "sha256": ""}}),
    ],
)
def test_a_list_that_lies_is_refused(tmp_path: Path, edit: Edit) -> None:
    with pytest.raises(ArchiveError):
        unpack(forged(tmp_path / "b.tar", edit=edit))


def test_more_than_the_disk_holds_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path / "b.tar")
    usage = type(__import__("shutil").disk_usage(tmp_path))
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(1, 1, 4000))
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(StoreFullError):
        archive.read(path, into)
    assert list(into.iterdir()) == []


def test_any_damage_is_noticed_and_nothing_else_is_raised(tmp_path: Path) -> None:
    """Every flipped byte that means something, every cut: an ArchiveError, never a crash."""
    good = build(tmp_path / "good.tar").read_bytes()
    chance = random.Random(3)
    path = tmp_path / "bad.tar"
    noticed = 0
    for trial in range(300):
        content = bytearray(good)
        if trial % 3 == 0:
            del content[chance.randrange(len(good)) :]
        else:
            for _ in range(chance.choice([1, 1, 5, 200])):
                content[chance.randrange(len(good))] = chance.randrange(256)
        path.write_bytes(content)
        try:
            found = unpack(path)
        except (ArchiveError, StoreFullError):
            noticed += 1
        else:
            assert found == FILES, "what passes is what was saved"
    assert noticed > 150


@pytest.mark.parametrize("content", [b"", b"x", bytes(512), bytes(4096), os.urandom(2048)])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b.tar"
    path.write_bytes(content)
    with pytest.raises(ArchiveError):
        unpack(path)


def test_what_is_wrong_with_it_is_told_in_the_readers_language(tmp_path: Path) -> None:
    path = tmp_path / "b.tar"
    path.write_bytes(bytes(4096))
    with terminal.speaking("de"), pytest.raises(ArchiveError, match="die Datei ist leer"):
        archive.read(path)


def test_what_it_holds_is_counted_as_people_count() -> None:
    assert ABOUT.holds == "3 answers, 2 ratings, 1 adapter"
    assert replace(ABOUT, turns=1, ratings=1, adapters=0).holds == "1 answer, 1 rating, 0 adapters"
