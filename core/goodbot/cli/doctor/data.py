# SPDX-License-Identifier: Apache-2.0
"""What is stored: the database, the audit trail, the adapters' files, and how the last run went."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from goodbot.api.adapters.manifest import verify
from goodbot.api.sentences import version as named
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts import commas, explained, reworded
from goodbot.api.texts.terminal import here, phrase
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
from goodbot.store.pools import SHARED
from goodbot.store.postgres.looking import NothingStoredError

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
        return [fail("database", phrase("doc_d_now", why=store))]
    if not file.exists() and not examined.config.store.url:
        return [ok("database", phrase("doc_d_none"))]
    try:
        async with inspection.look(file) as db:
            version, known = await inspection.schema(db)
            if found := await inspection.damage(db):
                return [fail("database", phrase("doc_d_damaged", why=found), _RESTORE)]
            whole = (await settings.audit(db))[1] if version else True
            whole_size = await inspection.size(db, file)
    except NothingStoredError:
        return [ok("database", phrase("doc_d_none"))]
    except NewerDataError as error:
        return [failed("database", error, "goodbot upgrade --check")]
    except (StoreError, MissingExtraError) as error:
        return [failed("database", error, _RESTORE if isinstance(error, StoreDamagedError) else "")]
    facts = {"size": size(whole_size), "version": version}
    behind = version < known
    text = phrase("doc_d_behind", **facts, known=known) if behind else phrase("doc_d_well", **facts)
    found_checks = [ok("database", text)]
    log = file.with_name(file.name + "-wal")
    if log.exists() and log.stat().st_size > _LARGE_LOG:
        text = phrase("doc_d_log", size=size(log.stat().st_size))
        found_checks.append(warn("database", text, phrase("doc_d_log_fix")))
    if not whole:
        found_checks.append(fail("audit", phrase("doc_d_audit"), phrase("doc_d_audit_fix")))
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
        text = phrase("doc_e_clear", files=commas(here(), *clear))
        return [warn("encryption", text, phrase("doc_e_clear_fix"))]
    if names := [one.name for one in _versions(home) if not _locked(one)]:
        text = phrase("doc_e_adapters", names=commas(here(), *names))
        return [warn("encryption", text, phrase("doc_e_adapters_fix"))]
    if not in_clear.in_memory():
        text = phrase("doc_e_disk", id=record.key.id, place=home / in_clear.FOLDER)
        return [warn("encryption", text, phrase("doc_e_disk_fix"))]
    return [ok("encryption", phrase("doc_e_on", id=record.key.id, place=in_clear.root(home)))]


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
        text = phrase("doc_sqlite", version=sqlite3.sqlite_version)
        return [fail("sqlite", text, phrase("doc_sqlite_fix"))]
    return [ok("sqlite", sqlite3.sqlite_version)]


async def adapter_files(examined: Examined) -> Sequence[Check]:
    """Every version's files against their hashes, the active one's above all."""
    config = examined.config
    try:
        model = _model(examined)
        async with inspection.look(path(config)) as db:
            if not await inspection.current(db):
                return []
            rows = await adapters.all_of(db, SHARED)
            active = await adapters.pointer(db, SHARED, model)
    except GoodbotError:  # the database's line and the model's say it
        return []
    broken: dict[int, str] = {}
    for row in rows:
        if row.erased_at is not None:
            continue
        try:
            await asyncio.to_thread(verify, config.home / "adapters", row.directory, row.sha256)
        except AdapterError as error:
            broken[row.version] = reworded(error, here())
    if active in broken:
        text = phrase("doc_a_broken", version=active, why=broken[active])
        return [fail("adapters", text, "goodbot rollback")]
    if broken:
        first = min(broken)
        text = phrase("doc_a_damaged", version=first, why=broken[first])
        return [warn("adapters", text)]
    answers = phrase("doc_a_answers", name=named(active or 0, here()))
    if not rows:
        return [ok("adapters", phrase("doc_a_none", answers=answers))]
    used = sum(f.stat().st_size for f in trees.below(config.home / "adapters") if f.is_file())
    return [ok("adapters", phrase("doc_a_well", count=len(rows), size=size(used), answers=answers))]


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
                found = await runs.last_runs(db, SHARED) if await inspection.current(db) else []
        except GoodbotError:
            found = []
        last = {"state": found[0].state, "reason": found[0].reason} if found else {}
    checks = [_last_run(last)] if last else []
    if waiting:
        checks.append(warn("consent", phrase("status_unshared", count=waiting), phrase("doc_shared_fix")))
    return checks


async def contradictions(examined: Examined) -> Sequence[Check]:
    """Whose ratings have begun to contradict."""
    if examined.daemon is not None:
        found = [str(alarm["text"]) for alarm in examined.daemon.get("alarms") or ()]
    else:
        try:
            async with inspection.look(path(examined.config)) as db:
                current = await inspection.current(db)
                found = [described(alarm, here()) for alarm in (await alarmed(db, SHARED) if current else ())]
        except GoodbotError:  # the database's line says it
            return []
    return [warn("ratings", text, "goodbot people") for text in found]


def _last_run(last: dict[str, str]) -> Check:
    if last["state"] == "running":
        return ok("training", phrase("doc_l_running"))
    if last["state"] == "failed":
        return warn("training", _because("doc_l_failed", last), "goodbot train")
    if last["state"] == "refused":
        return warn("training", _because("doc_l_refused", last), phrase("doc_l_refused_fix"))
    if last["state"] == "activated":
        return ok("training", phrase("doc_l_passed"))
    if last["state"] == "released":  # its reason is the gate's, of when it went live
        return ok("training", phrase("doc_l_released"))
    return ok("training", _because("doc_l_ended", last))


def _because(key: str, last: dict[str, str]) -> str:
    """A text, with the reason of the last run if it has one."""
    return explained(phrase(key), last["reason"], here()) if last["reason"] else phrase(key)


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
