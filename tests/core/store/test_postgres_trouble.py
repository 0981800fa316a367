# SPDX-License-Identifier: Apache-2.0
"""What people are told of a database server that is away, that ends, or is too old: one sentence each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from goodbot.api.setup import CheckState
from goodbot.base.errors import StoreError
from goodbot.cli import main
from goodbot.cli.doctor import daemon, data
from goodbot.config import StoreConfig, load
from goodbot.daemon.control import ControlSocket, execute
from goodbot.daemon.http import readiness
from goodbot.store.postgres import connection
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
