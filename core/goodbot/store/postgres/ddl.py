# SPDX-License-Identifier: Apache-2.0
"""The tables, indexes and triggers of SQLite's schema in PostgreSQL's words, derived and not written twice.

A table that numbers its rows itself does so by `sqlite_sequence`, as SQLite does: that of a transaction
undone leaves no gap (the audit trail tells by it that nothing was cut off), and none is given twice.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goodbot.store.migrate import migrations
from goodbot.store.postgres.dialect import translate
from goodbot.store.postgres.rules import Table, Tables

_WORDS = re.compile(r"'(?:[^']|'')*'|--[^\n]*|\b[A-Za-z_]+\b")
_TYPES = {"INTEGER": "BIGINT", "REAL": "DOUBLE PRECISION", "BLOB": "BYTEA", "AUTOINCREMENT": ""}
_REFERS = re.compile(r"\bREFERENCES ([a-z_]+)")
_NAMED = re.compile(r'CREATE (?:UNIQUE )?[A-Z]+ (?:IF NOT EXISTS )?"?([a-z_]+)"?')
_INDEX = re.compile(r"(CREATE (?:UNIQUE )?INDEX [a-z_]+ ON [a-z_]+)\s*\(")
_ADDED = re.compile(r'ALTER TABLE "?([a-z_]+)"? ADD COLUMN\b')
_TRIGGER = re.compile(
    r"CREATE TRIGGER ([a-z_]+) (AFTER [A-Z]+(?: OF [a-z_]+)?) ON ([a-z_]+)\s+"
    r"(?:WHEN\s+([^;]*?)\s+)?BEGIN\s([^$]*)END\b"
)
_OURS = "FROM sqlite_schema WHERE sql <> '' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
NUMBERS = "CREATE TABLE sqlite_sequence (name TEXT NOT NULL PRIMARY KEY, seq BIGINT NOT NULL)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """What the migrations leave, of an empty store."""

    schema: int
    tables: Tables
    statements: Sequence[str]
    """What makes it: tables, those first that others refer to; indexes; triggers."""


@functools.cache
def shape(schema: int = 0) -> Shape:
    """Of the schema of that number; 0: the newest."""
    steps = migrations()[: schema or None]
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for _, sql in steps:
            db.executescript(sql)
        known = db.execute(f"SELECT type, name, sql {_OURS} ORDER BY name").fetchall()
        made = {name: str(sql) for kind, name, sql in known if kind == "table"}
        tables = _tables(db)
    statements = [part for name in _in_order(made) for part in table(made[name], tables)]
    statements += [index(sql) for kind, _, sql in known if kind == "index"]
    statements += [part for kind, _, sql in known if kind == "trigger" for part in trigger(sql, tables)]
    return Shape(schema=len(steps), tables=tables, statements=(NUMBERS, *statements))


def _tables(db: sqlite3.Connection) -> Tables:
    """Those that are there."""
    names = db.execute(f"SELECT name {_OURS} AND type = 'table'").fetchall()
    return {name: _table(db, name) for (name,) in names}


def _table(db: sqlite3.Connection, name: str) -> Table:
    columns = db.execute("SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid", (name,)).fetchall()
    first = [column for column, _, place in sorted(columns, key=lambda one: one[2]) if place]
    others = [
        [column for (column,) in db.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,))]
        for (index,) in db.execute(
            "SELECT name FROM pragma_index_list(?) WHERE origin = 'u'", (name,)
        ).fetchall()
    ]
    numbers = len(first) == 1 and ("INTEGER", 1) in [(kind, place) for _, kind, place in columns]
    keys = [*others, first] if numbers else [first, *others]
    return Table(
        columns=[column for column, _, _ in columns], keys=keys, numbered=first[0] if numbers else ""
    )


def _in_order(made: Mapping[str, str]) -> list[str]:
    """Each table behind those that it refers to."""
    found: list[str] = []

    def add(name: str) -> None:
        if name not in found:
            for other in _REFERS.findall(made[name]):
                if other != name:
                    add(other)
            found.append(name)

    for name in made:
        add(name)
    return found


def _typed(sql: str) -> str:
    """With PostgreSQL's types, and without remarks."""

    def word(found: re.Match[str]) -> str:
        said = found[0]
        return "" if said.startswith("--") else _TYPES.get(said, said)

    return _WORDS.sub(word, sql).replace("x''", r"'\x'")


def table(sql: str, tables: Tables) -> list[str]:
    """A `CREATE TABLE`, and what numbers its rows, if it does so itself."""
    written = _typed(sql)
    name = _name(written)
    written = written[: written.rindex(")") + 1]
    column = tables[name].numbered
    if not column:
        return [written]
    function = f"number_{name}"
    return [
        written,
        f"INSERT INTO sqlite_sequence VALUES ('{name}', 0)",  # noqa: S608
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$\n"  # noqa: S608
        f"BEGIN\n  IF NEW.{column} IS NULL THEN\n"
        f"    UPDATE sqlite_sequence SET seq = seq + 1 WHERE name = '{name}' RETURNING seq INTO"
        f" NEW.{column};\n"
        f"  ELSE\n    UPDATE sqlite_sequence SET seq = NEW.{column} WHERE name = '{name}'"
        f" AND seq < NEW.{column};\n  END IF;\n  RETURN NEW;\nEND\n$$",
        f"CREATE TRIGGER {function} BEFORE INSERT ON {name} FOR EACH ROW EXECUTE FUNCTION {function}()",
    ]


def _name(sql: str) -> str:
    found = _NAMED.match(sql)
    if found is None:
        raise ValueError(f"no such statement: {sql[:60]}")
    return found[1]


def index(sql: str) -> str:
    """A `CREATE INDEX`: what is no column stands in brackets."""
    found = _INDEX.match(plain := _typed(sql))
    if found is None:
        raise ValueError(f"no such index: {sql[:60]}")
    parts, end = _parts(plain, found.end())
    columns = ", ".join(part if part.isidentifier() else f"({value(part)})" for part in parts)
    _, _, where = plain[end:].partition("WHERE")
    return f"{found[1]} ({columns}){f' WHERE {condition(where)}' if where else ''}"


def _parts(sql: str, start: int) -> tuple[list[str], int]:
    """What stands between commas from a bracket's inside on to its end, and where that is."""
    depth, parts, begun = 1, list[str](), start
    for at in range(start, len(sql)):
        sign = sql[at]
        depth += (sign == "(") - (sign == ")")
        if depth == 0 or (depth == 1 and sign == ","):
            parts.append(sql[begun:at].strip())
            begun = at + 1
        if depth == 0:
            return parts, at + 1
    raise ValueError(f"no end: {sql[start:][:60]}")


def value(sql: str) -> str:
    """An expression, of what is stored alone."""
    return translate(f"SELECT {sql.strip()}", {}).sql.removeprefix("SELECT ")


def condition(sql: str) -> str:
    """The same where it is to hold."""
    return translate(f"SELECT 1 WHERE {sql.strip()}", {}).sql.removeprefix("SELECT 1 WHERE ")


def trigger(sql: str, tables: Tables) -> list[str]:
    """A `CREATE TRIGGER`, and the function that it calls there."""
    found = _TRIGGER.match(_typed(sql))
    if found is None:
        raise ValueError(f"no such trigger: {sql[:60]}")
    name, when, on, where, body = found.groups()
    said = "\n".join(
        f"  {translate(' '.join(one.split()), tables).sql};" for one in body.split(";") if one.strip()
    )
    held = f"  IF {condition(' '.join(where.split()))} THEN\n{said}\n  END IF;" if where else said
    return [
        f"CREATE FUNCTION on_{name}() RETURNS trigger LANGUAGE plpgsql AS $$\nBEGIN\n{held}\n"
        "  RETURN NULL;\nEND\n$$",
        f"CREATE TRIGGER {name} {when} ON {on} FOR EACH ROW EXECUTE FUNCTION on_{name}()",
    ]


def script(number: int) -> list[str]:
    """The migration of that number, one statement after the other, each for the tables that it finds."""
    found: list[str] = []
    begun = ""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for _, sql in migrations()[: number - 1]:
            db.executescript(sql)
        for line in migrations()[number - 1][1].splitlines(keepends=True):
            begun += line
            if sqlite3.complete_statement(begun):
                db.execute(begun)
                found += _statement(_bare(begun), _tables(db))
                begun = ""
    return found


def _bare(sql: str) -> str:
    """Without remarks, and without the semicolon."""
    return _WORDS.sub(lambda one: "" if one[0].startswith("--") else one[0], sql).strip().removesuffix(";")


def _statement(sql: str, tables: Tables) -> list[str]:
    match sql.split()[:3]:
        case ["CREATE", "TABLE", _]:
            return table(sql, tables)
        case ["CREATE", "INDEX" | "UNIQUE", _]:
            return [index(sql)]
        case ["CREATE", "TRIGGER", _]:
            return trigger(sql, tables)
        case ["DROP", "TRIGGER", name]:
            return [f"DROP FUNCTION on_{name}() CASCADE"]
        case ["ALTER", *_] if _ADDED.match(sql):
            return [_typed(sql)]
        case ["ALTER" | "DROP", *_]:
            return [sql]
        case []:
            return []
        case _:
            return [translate(" ".join(sql.split()), tables).sql]
