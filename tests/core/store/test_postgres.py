# SPDX-License-Identifier: Apache-2.0
"""The store on PostgreSQL: statements in its words, the schema, and what becomes of a server that ends."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import ConfigError, NewerDataError, StoreError
from goodbot.base.topics import holds
from goodbot.cli import main
from goodbot.config import parse
from goodbot.store import settings, trail
from goodbot.store.commit_queue import Operation
from goodbot.store.migrate import migrations
from goodbot.store.postgres import connection, ddl, dialect
from goodbot.store.postgres.opened import open_postgres

from tests import postgres
from tests.core.builders import add_turn, rows, until
from tests.reliability.kills import KILLS
from tests.support import require


def written(sql: str, *values: Any) -> str:
    """A statement as PostgreSQL gets it with these values."""
    require("sqlglot")
    translated = dialect.translate(sql, ddl.shape().tables)
    return dialect.bound(translated, tuple(dialect.kind(dialect.plain(one)) for one in values))


@pytest.mark.parametrize(
    ("sql", "values", "found"),
    [
        (
            "SELECT a > 1, sum(b = ?) FROM t WHERE c AND NOT d",
            (1,),
            "SELECT CAST((a > 1) AS INT), sum(CAST((b = $1::bigint) AS INT)) FROM t WHERE c <> 0"
            " AND NOT d <> 0",
        ),
        ("SELECT iif(a, ?, 'x?:y')", ("z",), "SELECT CASE WHEN a <> 0 THEN $1::text ELSE 'x?:y' END"),
        ("SELECT max(a, b), max(c) FROM t", (), "SELECT greatest(a, b), max(c) FROM t"),
        (
            "UPDATE notes SET used = used OR ?",
            (True,),
            "UPDATE notes SET used = CAST((used <> 0 OR $1::bigint <> 0) AS INT)",
        ),
        (
            "SELECT 1 FROM t WHERE a = :x OR :x IS NULL",
            (None,),
            "SELECT 1 FROM t WHERE a = NULL OR NULL IS NULL",
        ),
        (
            "INSERT OR IGNORE INTO told VALUES (?)",
            ("a",),
            "INSERT INTO told VALUES ($1::text) ON CONFLICT DO NOTHING",
        ),
        (
            "INSERT OR REPLACE INTO switches VALUES (?, ?)",
            ("a", "b"),
            "INSERT INTO switches VALUES ($1::text, $2::text) ON CONFLICT (name) DO UPDATE SET"
            " name = excluded.name, value = excluded.value",
        ),
        ("SELECT a FROM t ORDER BY a DESC LIMIT -1", (), None),
    ],
)
def test_a_statement_says_the_same_in_other_words(
    sql: str, values: tuple[Any, ...], found: str | None
) -> None:
    if found is None:
        assert "LIMIT" in written(sql, *values)
    else:
        assert written(sql, *values) == found


SAME: tuple[tuple[str, tuple[Any, ...], Any], ...] = (
    ("json_extract(?, '$.a[#-1].b')", ('{"a":[{"b":"x"},{"b":"y"}]}',), "y"),
    ("json_extract(?, '$[#-' || (1 + 2 * ?) || '].c')", ('[{"c":"1"},{"c":"2"},{"c":"3"}]', 1), "1"),
    ("json_extract(?, '$.none')", ('{"a":1}',), None),
    ("json_extract(?, '$.a')", ('{"a":null}',), None),
    ("CAST(json_extract(?, '$.a') AS INTEGER)", ('{"a":true}',), 1),
    ("CAST(json_extract(?, '$.a') AS REAL)", ('{"a":1.5e1}',), 15.0),
    ("json_array_length(?)", ("[1,2,3]",), 3),
    ("json_valid(?)", ("{",), 0),
    ("json_quote(?)", ('a"\\\n\u2028',), '"a\\"\\\\\\n\u2028"'),
    ("(SELECT json_group_array(CAST(value AS INTEGER)) FROM json_each(?))", ("[3,1,2]",), "[3,1,2]"),
    ("(SELECT value FROM json_each(?) e ORDER BY e.key DESC LIMIT 1)", ("[0,1,2,3,4,5,6,7,8,9,10]",), 10),
    ("(SELECT max(key) FROM json_each(?))", ('{"b":1,"a":2}',), "b"),
    ("CAST(? AS INTEGER)", ("12 x",), 12),
    ("CAST(? AS INTEGER)", ("x",), 0),
    ("length(CAST(? AS BLOB))", ("ä\\",), 3),
    ("substr(?, instr(?, ':') + 1)", ("a:bc", "a:bc"), "bc"),
    ("printf('%015d', ?)", (42,), "000000000000042"),
    ("? GLOB 'a_%*'", ("a_%b",), 1),
    ("? GLOB 'a_%*'", ("abcd",), 0),
    ("iif(? > 1, max(?, 2), min(1, 2))", (2, 3), 3),
    ("(? > 1) + (? <> '')", (2, ""), 1),
    ("total(?)", (2,), 2.0),
    ("sign(?)", (-0.5,), -1),
    ("folded(?)", ("Straße ΣΑΣ İ",), "strasse σασ i̇"),
    ("?", ("a\u2400b",), "a\u2400b"),
    ("? = x'' OR ? = x'6C6f'", (b"", b"no"), 1),
    ("? = x'6C6f'", (b"ol",), 0),
)


@pytest.mark.parametrize("kind", postgres.STORES)
async def test_functions_say_the_same_on_both(tmp_path: Path, kind: str) -> None:
    store = await postgres.opened(kind, tmp_path / "goodbot.db")
    try:
        for sql, values, expected in SAME:
            [(found,)] = await rows(store, f"SELECT {sql}", values)
            assert type(expected)(found) == expected if expected is not None else found is None, sql
    finally:
        await store.close()


TEXTS = (
    "How do I bake sourdough bread?",
    "breadcrumbs, and no BREAD-knife",
    "Wie backe ich Brot — Sauerteigbrot?",
    "面包怎么做？我想做面包",
    "パンの作り方を教えて。サワードウ",
    "Как испечь хлеб? Хлебница",
    "bread2 2bread bread_bread",
)


WORDS = ("bread", "brot", "面包", "パン", "サワードウ", "хлеб", "ба", "knife")


async def test_a_topic_is_found_alike(tmp_path: Path) -> None:
    store = await postgres.opened("postgres", tmp_path / "goodbot.db")
    try:
        for word in WORDS:
            for text in TEXTS:
                found = await rows(store, "SELECT holds_word(?, ?)", (text, word))
                assert found == [(holds(text, word),)], (word, text)
    finally:
        await store.close()


def test_what_people_say_is_no_part_of_a_statement() -> None:
    for said in ("'; DROP TABLE turns --", "goodbot_p0", "?", ":a"):
        assert said not in written("SELECT 1 FROM told WHERE person = ?", said)


def test_a_url_holds_no_password() -> None:
    said = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
    for url in (
        "postgresql://a:b@c/d",
        "postgresql:///d?a=b#&password=b",
        *(f"postgresql://c/d?{name}=b" for name in said),
    ):
        with pytest.raises(Exception, match="holds a password"):
            parse(f'[store]\nurl = "{url}"', home=Path("/x"))
    with pytest.raises(Exception, match="must be like"):
        parse('[store]\nurl = "mysql://c/d"', home=Path("/x"))
    with pytest.raises(Exception, match="must be like"):
        parse('[store]\nurl = "postgresql://[c/d"', home=Path("/x"))


@pytest.mark.parametrize(
    ("place", "here"),
    [
        ("a@c/d", False),
        ("a@c/d?sslmode=verify-full", True),
        ("/d?host=c", False),
        ("/d?hostaddr=192.0.2.1", False),
        ("/d?service=c", False),
        ("localhost:5432,c:5432/d", False),
        ("[2001:db8::1]:5432/d", False),
        ("/d", True),
        ("/d?host=/run/postgresql", True),
        ("a@%2Frun%2Fpostgresql/d", True),
        ("a@localhost:5432,127.0.0.1/d", True),
        ("[::1]:5432/d", True),
    ],
)
def test_another_host_needs_word_of_tls(monkeypatch: pytest.MonkeyPatch, place: str, here: bool) -> None:
    for name in ("PGSSLMODE", "PGSERVICE", "PGHOST", "PGHOSTADDR"):
        monkeypatch.delenv(name, raising=False)
    toml = f'[store]\nurl = "postgresql://{place}"'
    if here:
        assert parse(toml, home=Path("/x")).store.url == f"postgresql://{place}"
    else:
        with pytest.raises(ConfigError, match=r"add `\?sslmode=verify-full` to it"):
            parse(toml, home=Path("/x"))
        monkeypatch.setenv("PGSSLMODE", "verify-full")
        assert parse(toml, home=Path("/x")).store.url


def test_a_host_of_the_environment_needs_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGSSLMODE", raising=False)
    monkeypatch.setenv("PGHOST", "c")
    with pytest.raises(ConfigError, match="says nothing of TLS"):
        parse('[store]\nurl = "postgresql:///d"', home=Path("/x"))


def test_a_backup_of_a_file_is_none_of_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.toml").write_text('[store]\nurl = "postgresql://a@localhost/d"\n')
    (tmp_path / "a.tar").touch()
    for command in (["backup"], ["restore", str(tmp_path / "a.tar")], ["upgrade", "--back"]):
        assert main(["--home", str(tmp_path), *command]) == 2
        assert "on a PostgreSQL server: use `pg_dump` and `pg_restore`" in capsys.readouterr().err, command


def test_nobody_is_told_that_a_server_is_encrypted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text('[store]\nurl = "postgresql://a@localhost/d"\n')
    assert main(["--home", str(tmp_path), "encrypt"]) == 2
    assert "encrypts nothing on a database server: encrypt that server's disk" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="take this out, and type `goodbot decrypt`"):
        parse('[store]\nurl = "postgresql://a@localhost/d"\n[encryption]\nenabled = true', home=tmp_path)


async def test_every_table_index_and_trigger_of_sqlite_is_there(tmp_path: Path) -> None:
    store = await open_postgres(postgres.url_of(tmp_path / "goodbot.db", empty=True), tmp_path / "goodbot.db")
    await store.close()
    name = postgres.database_of(tmp_path / "goodbot.db")
    there = {row[0] for row in postgres.ask("SELECT relname FROM pg_class WHERE relkind = 'r'", name)}
    assert {*ddl.shape().tables, "sqlite_sequence", "goodbot_schema"} <= there
    triggers = {row[0] for row in postgres.ask("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal", name)}
    assert {"turn_answered", "turn_claimed", "run_let_go", "trace_answered", "note_rating_gone"} <= triggers
    indexes = {row[0] for row in postgres.ask("SELECT indexname FROM pg_indexes", name)}
    assert {"turns_claimable", "events_placed", "events_said", "runs_single_flight"} <= indexes


async def test_data_of_a_newer_goodbot_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    url = postgres.url_of(path)
    postgres.ask(f"UPDATE goodbot_schema SET schema = {len(migrations()) + 1}", postgres.database_of(path))
    with pytest.raises(NewerDataError):
        await open_postgres(url, path)


_MADE = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns"
    " WHERE table_schema = current_schema() ORDER BY 1, ordinal_position",
    "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1",
    "SELECT tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1",
    "SELECT conrelid::regclass::text, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1, 2",
    "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace ORDER BY 1, 2",
    "SELECT * FROM sqlite_sequence ORDER BY 1",
)
"""What a database looks like."""


async def test_migrations_run_there_and_lead_to_what_is_derived(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    url = postgres.url_of(path, empty=True)
    functions = files("goodbot.store.postgres").joinpath("functions.sql").read_text(encoding="utf-8")
    older = (
        functions.replace("lite_glob", "lite_other"),
        *ddl.shape(20).statements,
        "CREATE TABLE goodbot_schema (schema BIGINT NOT NULL, functions TEXT NOT NULL)",
        "INSERT INTO goodbot_schema VALUES (20, 'others')",
        "DROP FUNCTION lite_other",
    )
    with require("psycopg").connect(url, autocommit=True) as db:
        for one in older:
            db.execute(one)
    await (await open_postgres(url, path)).close()
    for query in _MADE:
        found, expected = (
            postgres.ask(query, postgres.database_of(path)),
            postgres.ask(query, postgres.template()),
        )
        assert found == expected, query


async def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    url = postgres.url_of(path, empty=True)
    postgres.ask("CREATE TABLE accounts (a int)", postgres.database_of(path))
    with pytest.raises(StoreError, match="holds something else"):
        await open_postgres(url, path)


async def test_a_second_goodbot_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection._SETTINGS, "lock_timeout", "100ms")
    path = tmp_path / "goodbot.db"
    store = await postgres.opened("postgres", path)
    try:
        with pytest.raises(StoreError, match="another goodbot uses"):
            await postgres.opened("postgres", path)
    finally:
        await store.close()


def put(name: str) -> Operation[None]:
    return lambda db: settings.set_switch(db, name, "1")


async def test_a_connection_that_is_lost_comes_back_and_nothing_acknowledged_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "goodbot.db"
    store = await postgres.opened("postgres", path)
    try:
        await store.write(put("before"))
        others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        postgres.ask(f"{others} AND pid <> pg_backend_pid()", postgres.database_of(path))
        with pytest.raises(StoreError, match="cannot be reached"):
            await store.write(put("lost"))
        assert store.trouble
        assert await store.read(lambda db: settings.switch(db, "before")) == "1", "it asks once more"
        await store.write(put("after"))
        assert store.trouble == ""
        assert await store.read(lambda db: settings.switch(db, "before")) == "1"
        assert postgres.names(store) >= {"before", "after"}
        assert "lost" not in postgres.names(store)
    finally:
        await store.close()


async def test_what_was_acknowledged_is_there_after_the_server_was_killed(tmp_path: Path) -> None:
    store = await postgres.opened("postgres", tmp_path / "goodbot.db")
    stored: set[str] = set()
    refused: set[str] = set()

    async def one(name: str) -> None:
        try:
            await store.write(put(name))
        except StoreError:
            refused.add(name)
        else:
            stored.add(name)

    try:
        for kills in range(KILLS or 2):
            before = len(stored)
            tasks = [asyncio.create_task(one(f"k{kills} {number}")) for number in range(1000)]
            await until(lambda before=before: len(stored) > before)
            postgres.kill()
            await asyncio.gather(*tasks)
            postgres.start_again()
            assert store.trouble
            await store.write(put(f"after {kills}"))
            assert store.trouble == ""
        assert refused
        there = {name for name in postgres.names(store) if name[0] == "k"}
        assert stored <= there, "what was under way may be there, too; what was told is"
        # Whoever got no answer says it again.
        await asyncio.gather(*(store.write(put(name)) for name in refused))
        assert {name for name in postgres.names(store) if name[0] == "k"} == stored | refused
    finally:
        await store.close()


async def test_a_dump_brings_all_of_it_back(tmp_path: Path) -> None:
    path, other, file = tmp_path / "goodbot.db", tmp_path / "again" / "goodbot.db", tmp_path / "goodbot.dump"
    store = await postgres.opened("postgres", path)
    await add_turn(store, "t1")
    await store.write(lambda db: settings.record(db, "a", "one", {}, 1.0))
    await store.close()
    postgres.run("pg_dump", "--format=custom", f"--file={file}", postgres.url_of(path))
    again = postgres.url_of(other, empty=True)
    postgres.run("pg_restore", "--exit-on-error", f"--dbname={again}", str(file))
    store = await open_postgres(again, other)
    try:
        assert await rows(store, "SELECT id, rated FROM turns") == [("t1", 0)]
        await store.write(lambda db: settings.record(db, "a", "two", {}, 2.0))
        entries, whole = await store.read(settings.audit)
        assert [(one.seq, one.action) for one in entries] == [(1, "one"), (2, "two")]
        assert whole
    finally:
        await store.close()


async def test_numbers_of_the_trail_have_no_gap(tmp_path: Path) -> None:
    store = await postgres.opened("postgres", tmp_path / "goodbot.db")
    try:

        async def fails(db: Any) -> None:
            await settings.record(db, "a", "lost", {}, 1.0)
            raise LookupError

        await store.write(lambda db: settings.record(db, "a", "one", {}, 1.0))
        with pytest.raises(LookupError):
            await store.write(fails)
        await asyncio.gather(
            store.write(fails),
            store.write(lambda db: settings.record(db, "a", "two", {}, 2.0)),
            return_exceptions=True,
        )
        entries, whole = await store.read(settings.audit)
        assert [(one.seq, one.action) for one in entries] == [(1, "one"), (2, "two")]
        assert whole
        assert await store.read(trail.newest) == 2
        assert await rows(store, "SELECT count(*) FROM audit") == [(2,)]
    finally:
        await store.close()
