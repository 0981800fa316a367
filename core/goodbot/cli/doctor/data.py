# SPDX-License-Identifier: Apache-2.0
"""What is stored: the database, the audit trail, the adapters' files, and how the last run went."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.adapters.manifest import verify
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts import say
from goodbot.base import encrypted, trees
from goodbot.base.errors import (
    AdapterError,
    GoodbotError,
    MissingExtraError,
    NewerDataError,
    StoreDamagedError,
    StoreError,
)
from goodbot.cli.doctor.checks import failed, size
from goodbot.config import Config
from goodbot.config import clear as in_clear
from goodbot.config.layout import DATABASE, beside
from goodbot.config.vault import Vault
from goodbot.conversation.notifications.alarms import described
from goodbot.inference.models import resolve
from goodbot.learning.rating_quality.contradictions import alarmed
from goodbot.store import adapters, cipher, exporting, inspection, runs, settings

SCOPE = "default"
_LARGE_LOG = 256 * 1024 * 1024
_RESTORE = "goodbot restore BACKUP"
_OLDEST = (3, 37, 0)
"""STRICT tables."""


def path(config: Config) -> Path:
    """The database's file."""
    return config.home / DATABASE


async def database(examined: Examined) -> Sequence[Check]:
    """Readable, undamaged, of this schema, with an unbroken audit trail."""
    file = path(examined.config)
    if examined.daemon is not None and (store := str(examined.daemon.get("store", "ok"))) != "ok":
        return [fail("database", f"nothing is stored at present: {store}")]
    if not file.exists():
        return [ok("database", "nothing is stored yet")]
    try:
        async with inspection.look(file) as db:
            version, known = await inspection.schema(db)
            if found := await inspection.damage(db):
                return [fail("database", f"the file is damaged: {found}", _RESTORE)]
            whole = (await settings.audit(db))[1] if version else True
    except NewerDataError as error:
        return [failed("database", error, "goodbot upgrade --check")]
    except StoreError as error:
        return [failed("database", error, _RESTORE if isinstance(error, StoreDamagedError) else "")]
    behind = f"; the next start brings it to {known}" if version < known else ""
    text = f"undamaged, {size(file.stat().st_size)}, schema {version}{behind}"
    found_checks = [ok("database", text)]
    log = file.with_name(file.name + "-wal")
    if log.exists() and log.stat().st_size > _LARGE_LOG:
        text = f"the write-ahead log has grown to {size(log.stat().st_size)}"
        found_checks.append(warn("database", text, "restart goodbot; that empties it"))
    if not whole:
        text = "somebody has changed the trail of administrative acts: its hashes do not fit"
        found_checks.append(fail("audit", text, "find out who else can write to the database"))
    return found_checks


async def encryption(examined: Examined) -> Sequence[Check]:
    """Whether what people said is encrypted, whole, and its key is to be had."""
    home = examined.config.home
    found = Vault(home, examined.config.encryption)
    try:
        record, key = found.record(), cipher.key(path(examined.config))
    except MissingExtraError as error:
        return [failed("encryption", error)]
    except GoodbotError as error:
        return [failed("encryption", error, "goodbot encrypt" if found.record() is None else "")]
    if record is None or key is None:
        return []
    try:
        cipher.library()
    except MissingExtraError as error:
        return [failed("encryption", error)]
    clear = [file.name for file in exporting.files(home) if encrypted.mark(file) is None]
    clear += [str(one) for one in beside(home) if cipher.is_clear(one / DATABASE)]
    if clear:
        return [
            warn("encryption", f"on, and in clear are {', '.join(clear)}", "delete them, or move them away")
        ]
    if names := [one.name for one in _versions(home) if not _locked(one)]:
        text = f"on, and in clear are the adapters {', '.join(names)}"
        return [warn("encryption", text, "stop goodbot, then type `goodbot encrypt`")]
    text = f"on, key {record.key.id}; while goodbot runs, adapters are in clear in "
    if not in_clear.in_memory():
        text += f"{home / in_clear.FOLDER}, on the disk: this system has no /dev/shm"
        return [warn("encryption", text, "encrypt the disk, too")]
    return [ok("encryption", f"{text}memory ({in_clear.root(home)})")]


def _versions(home: Path) -> list[Path]:
    root = home / "adapters"
    found = sorted(root.iterdir()) if root.is_dir() else []
    return [one for one in found if one.is_dir() and not one.name.startswith(".")]


def _locked(version: Path) -> bool:
    """Whether each of its files is encrypted."""
    return all(encrypted.mark(file) is not None for file in trees.below(version) if file.is_file())


async def library(examined: Examined) -> Sequence[Check]:
    """The SQLite that this Python has."""
    version = sqlite3.sqlite_version_info
    if version < _OLDEST:
        text = f"SQLite {sqlite3.sqlite_version} is too old: goodbot needs 3.37"
        return [fail("sqlite", text, "use a newer Python")]
    return [ok("sqlite", sqlite3.sqlite_version)]


async def adapter_files(examined: Examined) -> Sequence[Check]:
    """Every version's files against their hashes, the active one's above all."""
    config = examined.config
    try:
        model = _model(examined)
        async with inspection.look(path(config)) as db:
            if not await inspection.current(db):
                return []
            rows = await adapters.all_of(db, SCOPE)
            active = await adapters.pointer(db, SCOPE, model)
    except GoodbotError:  # the database's line and the model's say it
        return []
    broken: dict[int, str] = {}
    for row in rows:
        if row.erased_at is not None:
            continue
        try:
            await asyncio.to_thread(verify, config.home / "adapters", row.directory, row.sha256)
        except AdapterError as error:
            broken[row.version] = str(error)
    if active in broken:
        text = f"v{active}, which should answer, cannot be used: {broken[active]}"
        return [fail("adapters", text, "goodbot rollback")]
    if broken:
        first = min(broken)
        text = f"v{first} is damaged; it is not in use: {broken[first]}"
        return [warn("adapters", text)]
    answers = f"v{active} is to answer" if active else "the base model is to answer"
    if not rows:
        return [ok("adapters", f"none yet; {answers}")]
    used = sum(f.stat().st_size for f in trees.below(config.home / "adapters") if f.is_file())
    return [ok("adapters", f"{len(rows)} of {size(used)}, every hash fits; {answers}")]


async def learning(examined: Examined) -> Sequence[Check]:
    """How the last training ended, and what waits for somebody's consent."""
    last: dict[str, str] = {}
    waiting = 0
    if examined.daemon is not None:
        last = examined.daemon.get("last_run") or {}
        waiting = int(examined.daemon.get("waiting_for_consent") or 0)
    else:
        try:
            async with inspection.look(path(examined.config)) as db:
                found = await runs.last_runs(db, SCOPE) if await inspection.current(db) else []
        except GoodbotError:
            found = []
        last = {"state": found[0].state, "reason": found[0].reason} if found else {}
    checks = [_last_run(last)] if last else []
    if waiting:
        checks.append(
            warn("consent", say("status_unshared", count=waiting), "they type `/rl share on` to the bot")
        )
    return checks


async def contradictions(examined: Examined) -> Sequence[Check]:
    """Whose ratings have begun to contradict."""
    if examined.daemon is not None:
        found = [str(alarm["text"]) for alarm in examined.daemon.get("alarms") or ()]
    else:
        try:
            async with inspection.look(path(examined.config)) as db:
                current = await inspection.current(db)
                found = [described(alarm) for alarm in (await alarmed(db, SCOPE) if current else ())]
        except GoodbotError:  # the database's line says it
            return []
    return [warn("ratings", text, "goodbot people") for text in found]


def _last_run(last: dict[str, str]) -> Check:
    why = f": {last['reason']}" if last["reason"] else ""
    text = f"the last run was {last['state']}{why}"
    if last["state"] == "running":
        return ok("training", "one is under way or interrupted; `goodbot status` says how far it is")
    if last["state"] == "failed":
        return warn("training", text, "goodbot train")
    if last["state"] == "refused":
        return warn("training", text, "keep rating, good answers too; it is tried again")
    if last["state"] == "activated":
        return ok("training", "the last training passed its safety check: see `goodbot why`")
    if last["state"] == "released":  # its reason is the gate's, of when it went live
        return ok("training", "what the last run trained is not to be used: `goodbot adapters` says why")
    return ok("training", f"the last run ended without a version{why}")


def _model(examined: Examined) -> str:
    """The name under which the pointer stands."""
    if examined.daemon is not None:
        return str(examined.daemon.get("model", ""))
    config, shipped = examined.config, examined.plugins.models()
    return resolve(config.model.path, shipped, demo=examined.demo_model).name


PROBES = (
    Probe(name="database", run=database, seconds=30.0),
    Probe(name="encryption", run=encryption, seconds=30.0),
    Probe(name="sqlite", run=library),
    Probe(name="adapters", run=adapter_files, seconds=60.0),
    Probe(name="training", run=learning),
    Probe(name="ratings", run=contradictions),
)
