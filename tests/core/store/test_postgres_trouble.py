# SPDX-License-Identifier: Apache-2.0
"""What people are told of a database server that is away, that ends, or is too old: one sentence each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.setup import CheckState
from goodbot.base.errors import StoreError
from goodbot.cli import main
from goodbot.cli.doctor import daemon, data
from goodbot.config import StoreConfig, load
from goodbot.daemon.control import ControlSocket, execute
from goodbot.daemon.http import readiness
from goodbot.store import Store, settings
from goodbot.store.commit_queue import Operation
from goodbot.store.postgres import connection, failures, opened
from goodbot.store.postgres.opened import open_postgres

from tests import postgres
from tests.core.builders import open_bot, until
from tests.core.cli.doctor.examining import examined
from tests.support import require

AWAY = "the database server cannot be reached: see whether it runs, and whether [store] url leads to it"
OLD = "the database server is PostgreSQL 18: goodbot needs 99 or newer"


def configured(home: Path, url: str) -> str:
    """A state directory that is configured so."""
    toml = f'[store]\nurl = "{url}"\n'
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(toml)
    load(home)
    return toml


@pytest.fixture
def server() -> Iterator[None]:
    """A server that runs afterwards, too."""
    postgres.server()
    with ExitStack() as after:
        after.callback(postgres.start_again_unless_it_runs)
        yield


def test_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    require("psycopg")
    toml = configured(tmp_path, f"postgresql:///x?host={tmp_path}")
    with pytest.raises(StoreError, match=AWAY.replace("[", r"\[")):
        asyncio.run(open_postgres(f"postgresql:///x?host={tmp_path}", tmp_path / "goodbot.db"))
    assert main(["--home", str(tmp_path), "status"]) == 1
    assert capsys.readouterr().err.count(AWAY) == 1
    [check] = asyncio.run(data.database(examined(tmp_path, toml)))
    assert check.state is CheckState.FAIL
    assert check.text.startswith(AWAY)
    assert not (tmp_path / "goodbot.db").exists()


async def test_a_server_that_ends_while_goodbot_runs(tmp_path: Path, server: None) -> None:
    url = postgres.url_of(tmp_path / "bot" / "goodbot.db")
    toml = configured(tmp_path / "bot", url)
    async with open_bot(tmp_path, terminal=True, sections={"store": StoreConfig(url=url)}) as bot:
        control = ControlSocket(tmp_path / "bot")
        control.app = bot.app
        control.ready()
        await control.start()

        async def is_down() -> bool:
            return (await readiness.seen(bot.app)).codes["store"] == "down"

        try:
            await bot.say("hello")
            assert (await readiness.seen(bot.app)).codes["store"] == "ok"
            postgres.kill()
            await until(is_down)
            seen = await readiness.seen(bot.app)
            assert (seen.codes["store"], seen.told["store"]) == ("down", AWAY)
            with pytest.raises(StoreError, match="cannot be reached"):
                await execute(bot.app, "status", [])
            looked = examined(tmp_path / "bot", toml)
            [runs] = await daemon.daemon(looked)
            [stored] = await data.database(looked)
            for check in (runs, stored):
                assert check.state is CheckState.FAIL
                assert check.text.startswith(AWAY)
                assert "look at its log" not in check.fix
            postgres.start_again()
            assert (await readiness.seen(bot.app)).codes["store"] == "ok"
            assert (await execute(bot.app, "status", [])).data["store"] == "ok"
        finally:
            await control.stop()


async def test_one_that_is_too_old_is_told_before_it_is_asked_for_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url_of(tmp_path / "goodbot.db")
    toml = configured(tmp_path, url)
    monkeypatch.setattr(connection, "_NEEDED", 990000)
    monkeypatch.setitem(connection._SETTINGS, "no_such_setting", "1")
    with pytest.raises(StoreError) as caught:
        await open_postgres(url, tmp_path / "goodbot.db")
    assert str(caught.value) == OLD
    [check] = await data.database(examined(tmp_path, toml))
    assert (check.state, check.text) == (CheckState.FAIL, OLD)


@pytest.mark.parametrize(
    ("setting", "needed", "said"),
    [
        ("fsync", "never", "the database server has fsync = on, and goodbot needs never: change it there"),
        ("server_encoding", "X", "the database server has server_encoding = UTF8, and goodbot needs X"),
    ],
)
async def test_one_that_keeps_no_promise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, needed: str, said: str
) -> None:
    monkeypatch.setitem(connection._MUST, setting, needed)
    with pytest.raises(StoreError, match=said):
        await open_postgres(postgres.url_of(tmp_path / "goodbot.db"), tmp_path / "goodbot.db")


async def test_a_database_that_sorts_otherwise_is_refused(tmp_path: Path) -> None:
    name = postgres.database_of(tmp_path / "goodbot.db")
    other = "LOCALE_PROVIDER libc LOCALE 'C.UTF-8'"
    postgres.ask(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' {other}")
    try:
        with pytest.raises(StoreError, match="make one with `createdb --template=template0"):
            await open_postgres(postgres.named(name), tmp_path / "goodbot.db")
    finally:
        postgres.ask(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(("provider", "sorts"), [("i", "C"), ("c", "C.UTF-8")])
async def test_a_sort_by_another_provider_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str, sorts: str
) -> None:
    found = connection._FOUND.replace("datlocprovider::text", f"'{provider}'")
    monkeypatch.setattr(connection, "_FOUND", found.replace("coalesce(datlocale, datcollate)", f"'{sorts}'"))
    with pytest.raises(StoreError, match=f"the database sorts as {sorts}: make one"):
        await open_postgres(postgres.url_of(tmp_path / "goodbot.db"), tmp_path / "goodbot.db")


async def test_a_pooler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection.ServerConnection, "pid", 1)  # a pooler tells a number of its own
    with pytest.raises(StoreError, match="a pooler stands between"):
        await open_postgres(postgres.url_of(tmp_path / "goodbot.db"), tmp_path / "goodbot.db")


async def test_what_a_role_sets_is_set_for_the_session(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    name = postgres.database_of(path)
    url = postgres.url_of(path)
    others = {
        "statement_timeout": "5s",
        "idle_session_timeout": "5s",
        "transaction_timeout": "5s",
        "default_transaction_isolation": "serializable",
        "client_encoding": "LATIN1",
        "standard_conforming_strings": "off",
        "extra_float_digits": "-1",
        "transform_null_equals": "on",
    }
    store = await open_postgres(url, path)
    try:
        for setting, value in others.items():
            postgres.ask(f"ALTER DATABASE {name} SET {setting} = '{value}'")
        db = await connection.connect(url, path)
        try:
            found = {setting: (await db.plain(f"SHOW {setting}"))[0][0] for setting in others}
            assert found == {setting: connection._SETTINGS[setting] for setting in others}
        finally:
            await db.close()
    finally:
        for setting in others:
            postgres.ask(f"ALTER DATABASE {name} RESET {setting}")
        await store.close()


@pytest.mark.parametrize("code", ["57P05", "25P03", "25P04", "25006"])
def test_these_ask_for_another_connection(code: str) -> None:
    assert failures.lost(require("psycopg").errors.lookup(code)())


STANDBY = "the database server can only be read: let"


async def test_a_server_that_only_reads_is_told_until_it_writes_again(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    url, name = postgres.url_of(path), postgres.database_of(path)
    store = await open_postgres(url, path)
    setting = "default_transaction_read_only"
    try:
        postgres.ask(f"ALTER DATABASE {name} SET {setting} = on")
        with pytest.raises(StoreError, match=STANDBY):
            await store.write(read_only)
        assert store.trouble.startswith(STANDBY)
        with pytest.raises(StoreError, match=STANDBY):
            await store.write(put("a"))
        postgres.ask(f"ALTER DATABASE {name} RESET {setting}")
        await store.write(put("b"))
        assert (store.trouble, postgres.names(store) >= {"b"}) == ("", True)
    finally:
        await store.close()


async def read_only(db: Any) -> None:
    """Write as on a server that has become a standby."""
    await db.plain("SET LOCAL transaction_read_only = on")
    await settings.set_switch(db, "a", "1")


async def test_one_that_only_reads_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    url = postgres.url_of(path)
    with pytest.raises(StoreError, match=STANDBY):
        await open_postgres(f"{url}&options=-cdefault_transaction_read_only%3Don", path)


def put(name: str) -> Operation[None]:
    return lambda db: settings.set_switch(db, name, "1")


def writer(store: Store) -> int:
    """The server's number for the connection that writes."""
    [(pid,)] = postgres.ask(
        "SELECT l.pid FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE locktype = 'advisory' AND datname = current_database()",
        postgres.database_of(store.path),
    )
    return int(pid)


async def lose(store: Store) -> None:
    """Let a store lose the connection that writes."""
    postgres.ask(f"SELECT pg_terminate_backend({writer(store)}, 5000)")
    with pytest.raises(StoreError, match="cannot be reached"):
        await store.write(put("lost"))


@pytest.mark.parametrize(
    "meanwhile", ["UPDATE goodbot_schema SET schema = schema + 1", "DROP TABLE goodbot_schema CASCADE", ""]
)
async def test_data_that_another_one_had_meanwhile_are_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    monkeypatch.setitem(connection._SETTINGS, "lock_timeout", "100ms")
    path = tmp_path / "goodbot.db"
    url = postgres.url_of(path)
    store = await open_postgres(url, path)
    try:
        await store.write(put("before"))
        await lose(store)
        if meanwhile:
            postgres.ask(meanwhile, postgres.database_of(path))
        else:
            other = await open_postgres(url, path)
            with pytest.raises(StoreError, match="another goodbot uses the data"):
                await store.write(put("after"))
            await other.close()
        for _ in range(2):
            with pytest.raises(StoreError, match=r"start goodbot again|holds something else"):
                await store.write(put("after"))
        assert store.trouble
        assert "after" not in postgres.names(store)
    finally:
        await store.close()


async def test_our_own_connection_is_not_called_another_goodbot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection._SETTINGS, "lock_timeout", "100ms")
    path = tmp_path / "goodbot.db"
    store = await open_postgres(postgres.url_of(path), path)
    try:
        with pytest.raises(StoreError, match="still holds the connection that was lost: it is tried again"):
            await store._reopen()
    finally:
        await store.close()


READS = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class",  # as pg_dump does
    "BEGIN; SELECT pg_current_xact_id()",  # as what is prepared does
)


@pytest.mark.parametrize("reads", READS)
async def test_nothing_is_called_gone_while_others_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: str
) -> None:
    monkeypatch.setattr(opened, "_PATIENCE", 0.0)
    path = tmp_path / "goodbot.db"
    store = await open_postgres(postgres.url_of(path), path)
    try:
        await store.write(put("said"))
        with require("psycopg").connect(postgres.url_of(path), autocommit=True) as other:
            for one in reads.split(";"):
                other.execute(one)
            await store.write(lambda db: db.execute("DELETE FROM switches WHERE name = 'said'"))
            with pytest.raises(StoreError, match="still being read: it is tried again soon"):
                await store.compact()
        monkeypatch.undo()
        await store.compact()
        assert dead(path, "switches", "said") == 0
    finally:
        await store.close()


async def test_the_planner_quotes_nobody_who_was_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    store = await open_postgres(postgres.url_of(path), path)
    name = postgres.database_of(path)
    try:
        for number in range(3):
            await store.write(put(f"unheard-of-{number}"))
        postgres.ask("ANALYZE switches", name)
        assert dead(path, "pg_statistic", "unheard-of") > 0
        await store.write(lambda db: db.execute("DELETE FROM switches"))
        await store.compact()
        assert dead(path, "pg_statistic", "unheard-of") == 0
        assert dead(path, "switches", "unheard-of") == 0
    finally:
        await store.close()


def dead(path: Path, table: str, word: str) -> int:
    """How often a table's file has a word, whoever may see it."""
    name = postgres.database_of(path)
    postgres.ask("CHECKPOINT", name)
    [(file,)] = postgres.ask(f"SELECT pg_relation_filepath('{table}')", name)
    return (postgres.server() / "data" / file).read_bytes().count(word.encode())


def test_doctor_looks_at_a_server_too(tmp_path: Path) -> None:
    toml = configured(tmp_path, postgres.url_of(tmp_path / "goodbot.db"))
    [check] = asyncio.run(data.database(examined(tmp_path, toml)))
    assert (check.state, "undamaged" in check.text) == (CheckState.OK, True)
    assert not (tmp_path / "goodbot.db").exists()


def test_an_empty_database_is_no_fault(tmp_path: Path) -> None:
    toml = configured(tmp_path, postgres.url_of(tmp_path / "goodbot.db", empty=True))
    [check] = asyncio.run(data.database(examined(tmp_path, toml)))
    assert (check.state, check.text) == (CheckState.OK, "nothing is stored yet")


async def test_the_other_one_of_two_servers_is_found(tmp_path: Path) -> None:
    url = postgres.url_of(tmp_path / "goodbot.db").replace("host=", f"host={tmp_path},")
    store = await open_postgres(f"{url}&target_session_attrs=read-write", tmp_path / "goodbot.db")
    await store.close()
