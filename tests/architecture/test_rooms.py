# SPDX-License-Identifier: Apache-2.0
"""Each room imports only what is below it, plugins only the public API, and all SQL is in the store.

The SQL that is elsewhere today is listed by name. The list only gets shorter: what is new fails, and what
is gone is to be taken off.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.rooms import FLOORS, NOT_YET, PACKAGES, TRAINING, allowed, place, places
from tests.architecture.source import ROOT, Module, modules


def made(text: str, name: str = "goodbot_training.made") -> Module:
    return Module(name=name, path=f"{name}.py", text=text, tree=ast.parse(text))


def offences(module: Module, *, for_types: bool) -> set[str]:
    return {
        name for name, types in module.imported() if types is for_types and not allowed(module.name, name)
    }


@pytest.mark.parametrize("for_types", [False, True])
def test_imports_point_down(for_types: bool) -> None:
    """Also those for type checkers only: nothing is loaded, but the one knows the other."""
    found = {f"{m.name} → {name}" for m in modules() for name in offences(m, for_types=for_types)}
    assert found == set(), "a room may not import from that one: see tests/architecture/rooms.py"


def folders(package: str) -> set[tuple[str, str]]:
    """Which folder of a package imports from which other."""
    found: set[tuple[str, str]] = set()
    names = {m.name: m for m in modules()}
    for module in modules():
        for name, _ in module.imported() if module.package == package else ():
            while name not in names and "." in name:
                name = name.rpartition(".")[0]
            here, there = (f"{one}.".split(".")[1] for one in (module.name, name))
            if name.partition(".")[0] == package and here and there and here != there:
                found.add((here, there))
    return found


def test_folders_of_training_point_down() -> None:
    # `api` names what authors import: it is on top of all, and nobody of ours asks it
    arrows = {(a, b) for a, b in folders("goodbot_training") if a != "api"}
    assert {folder for arrow in arrows for folder in arrow} <= set(TRAINING)
    assert {(a, b) for a, b in arrows if TRAINING.index(b) > TRAINING.index(a)} == set()


@pytest.mark.parametrize("package", ["goodbot_connectors", "goodbot_fakes"])
def test_two_folders_of_connectors_never_know_each_other(package: str) -> None:
    arrows = folders(package)
    assert arrows & {(b, a) for a, b in arrows} == set()


PICTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("\n## Rooms\n")[2]
PICTURE = PICTURE.partition("\n## ")[0]


def inside(path: str) -> set[str]:
    """The folders with files of ours in a folder."""
    folders = (one for one in (ROOT / path).iterdir() if one.is_dir() and one.name[0] not in "._")
    return {f"`{one.name}/`" for one in folders if any(path.is_file() for path in one.glob("[!.]*"))}


@pytest.mark.parametrize("room", sorted(set(FLOORS) - set(PACKAGES)))
def test_the_page_draws_a_room_with_its_floor_and_folders(room: str) -> None:
    [(floor, told)] = re.findall(rf"^\| (\d+) \| `{room}/` \| (.+) \|$", PICTURE, flags=re.M)
    assert int(floor) == FLOORS[room]
    assert {folder for folder in inside(f"core/goodbot/{room}") if folder not in told} == set()


def test_the_page_names_the_folders_of_training() -> None:
    assert inside("training/goodbot_training") == {f"`{folder}/`" for folder in TRAINING}
    assert {f"`{folder}/`" for folder in TRAINING if f"`{folder}/`" not in PICTURE} == set()


def back_doors(module: Module) -> set[str]:
    """What it imports of ours that is private to another module."""
    ours = {name for name, _ in module.imported() if name.startswith("goodbot")}
    return {name for name in ours if any(re.match(r"_[^_]", part) for part in name.split("."))}


def test_no_module_imports_what_is_private_to_another() -> None:
    assert {f"{m.name} → {name}" for m in modules() for name in back_doors(m)} == set()
    assert back_doors(made("from goodbot.api.marks import _known"))
    assert not back_doors(made("from goodbot import __version__"))


def test_every_module_has_a_room() -> None:
    assert [m.name for m in modules() if m.name != "goodbot" and place(m.name) == "goodbot"] == []
    assert set(NOT_YET) <= set(FLOORS)


def test_no_row_is_left_of_what_has_moved() -> None:
    there = {m.name for m in modules()}
    for m in modules():
        there |= {f"{m.name}.{n.name}" for n in m.tree.body if isinstance(n, ast.ClassDef)}
        there |= {
            name.name if name.name.count(".") else f"{m.name}.{name.name}"
            for n in m.tree.body
            if isinstance(n, ast.ImportFrom)
            for name in n.names
        }
    rows = [f"goodbot.{name}" for names in NOT_YET.values() for name in names.split()]
    assert [row for row in rows if row not in there] == []
    assert sorted(rows) == sorted(set(rows)), "one module is in two rooms"


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("goodbot.store.made", "import goodbot.daemon.app"),
        ("goodbot.store.made", "from goodbot.daemon import app"),
        ("goodbot.access.made", "from goodbot.inference.servers.choice import server"),
        ("goodbot.daemon.app", "from goodbot_connectors.web import plugin"),
        ("goodbot.daemon.app", "import goodbot_training.process.worker"),
        ("goodbot.daemon.app", "from goodbot.features.reports import Report"),
        ("goodbot_connectors.made", "from goodbot.features.reports import Report"),
        ("goodbot_connectors.made", "import goodbot_training.round.run"),
        ("goodbot_training.made", "from goodbot_connectors.web import plugin"),
        ("goodbot_training.made", "from goodbot.store import Store"),
        ("goodbot_training.made", "from goodbot.config import Config"),
        ("goodbot.features.made", "from goodbot.store import Store"),
    ],
)
def test_an_offence_is_seen(module: str, line: str) -> None:
    assert offences(made(line, module), for_types=False) != set()
    late = f"def late():\n    try:\n        {line}\n    except ImportError:\n        pass"
    assert offences(made(late, module), for_types=False) != set()
    guarded = made(f"if TYPE_CHECKING:\n    {line}\nelse:\n    import goodbot", module)
    assert offences(guarded, for_types=True) != set()
    assert offences(guarded, for_types=False) == set()


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("goodbot.daemon.app", "from goodbot.store import Store"),
        ("goodbot.store.made", "from goodbot.api.model import ModelSpec"),
        ("goodbot_training.made", "from goodbot import RewardPolicy"),
        ("goodbot_training.made", "from goodbot.config.secrets import Secret"),
        ("goodbot_connectors.made", "from goodbot.base.text import clean"),
        ("goodbot_connectors.web.made", "from goodbot_connectors.kit.fields import text"),
    ],
)
def test_what_is_allowed_is_no_offence(module: str, line: str) -> None:
    assert offences(made(line, module), for_types=False) == set()


STATEMENT = re.compile(
    r"\s*(?:SELECT\s|INSERT\s+(?:OR\s+\w+\s+)?INTO\s|REPLACE\s+INTO\s|UPDATE\s+\S+\s+SET\s|DELETE\s+FROM\s"
    r"|WITH\s+(?:RECURSIVE\s+)?\w+\s*(?:\(|AS\b)|(?:CREATE|DROP|ALTER)\s+(?:TEMP\s+)?(?:TABLE|INDEX|TRIGGER|VIEW)\s"
    r"|PRAGMA\s|SAVEPOINT\s|RELEASE\s|BEGIN(?:\s+(?:IMMEDIATE|EXCLUSIVE|DEFERRED))?$|(?:COMMIT|ROLLBACK|VACUUM)$)"
)
PART = re.compile(r"\b(?:SELECT\b[^;]*\bFROM\b|INSERT INTO\b|DELETE FROM\b|WHERE [\w(]|(?:ORDER|GROUP) BY\b)")
RUNNERS = {"execute_fetchall", "execute_insert", "executemany", "executescript"}

MAYBE = re.compile(
    r"SELECT|INSERT|REPLACE|UPDATE|DELETE|WITH|CREATE|DROP|ALTER|PRAGMA|SAVEPOINT|RELEASE|BEGIN|COMMIT"
    r"|ROLLBACK|VACUUM|WHERE|BY\b|execute|goodbot\.store"
)
"""What no module without SQL needs to be read for."""


def sql(module: Module) -> Iterator[str]:
    """Statements and parts of them, and the use of what runs them."""
    if not MAYBE.search(module.text):
        return
    for node in ast.walk(module.tree):
        match node:
            case ast.Constant(value=str(text)) if STATEMENT.match(text) or PART.search(text):
                yield text
            case ast.Attribute(attr=name) if name in RUNNERS:
                yield name
            case _:
                pass
    yield from (name for name, _ in module.imported() if name.startswith("goodbot.store.query"))


def test_all_sql_is_in_the_store() -> None:
    found = {m.name: len([*sql(m)]) for m in modules() if places()[place(m.name) or ""] != "store"}
    assert {name: count for name, count in found.items() if count} == {}, "SQL is in goodbot.store"


@pytest.mark.parametrize(
    "line",
    [
        "await db.execute('SELECT 1')",
        "await db.execute(f'DELETE FROM {table}')",
        "where = 'WHERE rater = ?'",
        "text = '''\n    INSERT OR IGNORE INTO turns VALUES (?)'''",
        "await db.execute_fetchall(text)",
        "from goodbot.store.query import fetch",
        "db.execute('PRAGMA user_version')",
    ],
)
def test_sql_is_seen(line: str) -> None:
    text = f"async def f(db, text, table):\n    {line}" if "await" in line else line
    assert [*sql(made(text))]


def test_words_are_no_sql() -> None:
    assert [*sql(made('say("Select a model, then BEGIN again where you left.")'))] == []
