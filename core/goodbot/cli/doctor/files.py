# SPDX-License-Identifier: Apache-2.0
"""The state directory: whose it is, who else can read it, what it lies on, and the space left."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import cage, spawn
from goodbot.base.full_disk import RESERVE
from goodbot.cli.doctor.checks import short, size
from goodbot.config import secrets

_NETWORK = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afpfs",
        "webdav",
        "9p",
        "ceph",
        "glusterfs",
        "lustre",
        "afs",
        "fuse.sshfs",
        "fuse.rclone",
        "fuse.s3fs",
        "fuse.glusterfs",
    )
)
_LITTLE = 2e9
_MOUNTS = Path("/proc/self/mounts")


async def permissions(examined: Examined) -> Sequence[Check]:
    """The directory and what is private in it are the owner's alone."""
    home = examined.config.home
    try:
        info = os.lstat(home)
    except FileNotFoundError:
        return [ok("permissions", phrase("doc_p_none", home=short(home)))]
    if not stat.S_ISDIR(info.st_mode):
        text = phrase("doc_p_link" if stat.S_ISLNK(info.st_mode) else "doc_p_no_directory", home=home)
        fix = phrase("doc_p_give", home=shlex.quote(str(home.resolve())))
        return [fail("permissions", text, fix)]
    if info.st_uid != os.geteuid():
        text = phrase("doc_p_other", home=home, uid=info.st_uid)
        return [fail("permissions", text, f"sudo chown -R $(id -un) {shlex.quote(str(home))}")]
    found = [_loose(home, info)] if info.st_mode & 0o077 else []
    private = [home / secrets.FILE, home / "config.toml", *home.glob("goodbot.db*")]
    found += [check for file in private if (check := _file(file)) is not None]
    if info.st_mode & 0o300 != 0o300:
        found.append(fail("permissions", phrase("doc_p_write", home=home), _chmod("700", home)))
    return found or [ok("permissions", phrase("doc_p_well", home=short(home)))]


def _loose(home: Path, info: os.stat_result) -> Check:
    text = phrase("doc_p_open", home=short(home), mode=f"{info.st_mode & 0o777:o}")
    return fail("permissions", text, _chmod("700", home))


def _file(file: Path) -> Check | None:
    try:
        info = os.lstat(file)
    except OSError:
        return None
    if stat.S_ISLNK(info.st_mode) and file.name != "config.toml":
        text = phrase("doc_p_follows", name=file.name)
        return fail("permissions", text, f"rm {shlex.quote(str(file))}")
    if file.name == "config.toml":
        loose, key = info.st_mode & 0o022, "doc_p_change"
    else:
        loose, key = info.st_mode & 0o077, "doc_p_read"
    if stat.S_ISLNK(info.st_mode) or not loose:
        return None
    text = phrase(key, name=file.name, mode=f"{info.st_mode & 0o777:o}")
    return fail("permissions", text, _chmod("600", file))


def _chmod(mode: str, path: Path) -> str:
    return f"chmod {mode} {shlex.quote(str(path))}"


async def disk(examined: Examined) -> Sequence[Check]:
    """Free space, and whether the file system bears a database."""
    home = examined.config.home
    there = next(path for path in (home, *home.parents) if path.exists())
    checks: list[Check] = []
    if kind := await asyncio.to_thread(file_system, there):
        text = phrase("doc_k_network", home=short(home), kind=kind)
        checks.append(fail("disk", text, phrase("doc_k_network_fix")))
    free = (await asyncio.to_thread(shutil.disk_usage, there)).free
    said = {"size": size(free), "home": short(home)}
    if free < RESERVE:
        checks.append(fail("disk", phrase("doc_k_none", **said), phrase("doc_k_fix")))
    elif free < _LITTLE:
        checks.append(warn("disk", phrase("doc_k_little", **said), phrase("doc_k_fix")))
    else:
        checks.append(ok("disk", phrase("doc_k_free", **said)))
    return checks


def file_system(path: Path) -> str:
    """The kind of network file system that `path` lies on, empty for a local one or if unknown."""
    if sys.platform == "darwin":
        mounts = _mounted_on_macos()
    else:
        try:
            lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        mounts = ((words[1], words[2]) for line in lines if len(words := line.split()) > 2)
    real, best, kind = path.resolve(), -1, ""
    for point, type_ in mounts:
        at = Path(point.replace("\\040", " "))
        if real.is_relative_to(at) and len(at.parts) >= best:
            best, kind = len(at.parts), type_
    return kind if kind in _NETWORK else ""


def _mounted_on_macos() -> Iterable[tuple[str, str]]:
    """`/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled)` → point and kind."""
    done = spawn.run("/sbin/mount", seconds=5)
    for line in done.stdout.splitlines():
        place, _, options = line.rpartition(" (")
        yield place.partition(" on ")[2], options.split(",")[0].rstrip(")")


async def locked_up(examined: Examined) -> Sequence[Check]:
    """Whether what reads other people's models and adapters can do nothing but that."""
    if lacking := await asyncio.to_thread(cage.missing):
        if sys.platform == "darwin":
            return [fail("cage", phrase("doc_c_mac"), phrase("doc_c_mac_fix"))]
        text = phrase("doc_c_lacks", what=commas(here(), *lacking))
        return [warn("cage", text, phrase("doc_c_lacks_fix"))]
    return [ok("cage", phrase("doc_c_well"))]


async def descriptors(examined: Examined) -> Sequence[Check]:
    """Whether the goodbot that runs can take connections and open files."""
    told = str((examined.daemon or {}).get("descriptors", ""))
    return [fail("descriptors", told, phrase("doc_files_fix"))] if told else []


PROBES = (
    Probe(name="permissions", run=permissions),
    Probe(name="disk", run=disk),
    Probe(name="cage", run=locked_up),
    Probe(name="descriptors", run=descriptors),
)
