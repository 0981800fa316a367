# SPDX-License-Identifier: Apache-2.0
"""What differs between SQLite's SQL and PostgreSQL's, as rules on the tree that sqlglot reads.

Most of it is truth: in SQLite a comparison is 1 or 0, in PostgreSQL it is no number. So a number where
something is to hold is compared with 0, and a comparison where a value is wanted becomes a number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.store.postgres.parts import load

MARK = "goodbot_p"
"""How the names begin that stand in the places of values."""
OURS = "lite_"
"""How our functions begin that do what SQLite's of the same name do (`functions.sql`)."""
HOST = frozenset(("refusal_mac", "teaches", "total_changes"))
"""Functions that only this process can compute: of values alone, before the statement is sent."""
_RENAMED = {"char": "chr", "instr": "strpos", "quote": "quote_literal"}
_LITE = frozenset(
    (
        *("folded", "holds_word", "json_array", "json_array_length", "json_each", "json_extract"),
        *("json_object", "json_quote", "json_remove", "json_set", "json_valid"),
    )
)
_SHIFTED = 64
_LISTS = ("expressions", "query", "field", "unnest")


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """What a rule must know of a table."""

    columns: Sequence[str]
    keys: Sequence[Sequence[str]]
    """What is unique in it; a number that the table gives itself is the last."""
    numbered: str = ""
    """The column of that number."""


Tables = Mapping[str, Table]


@dataclass(frozen=True, slots=True)
class Computed:
    """A value that one of `HOST` gives, of these values."""

    function: str
    values: tuple[int, ...]


def conflict(how: str, table: Table) -> str:
    """What stands behind an `INSERT OR IGNORE` or an `INSERT OR REPLACE` without the OR."""
    if how == "IGNORE":
        return " ON CONFLICT DO NOTHING"
    changed = ", ".join(f"{name} = excluded.{name}" for name in table.columns)
    return f" ON CONFLICT ({', '.join(table.keys[0])}) DO UPDATE SET {changed}"


def written(marked: str, count: int) -> tuple[str, list[Computed]]:
    """A statement, whose values are `count` marks, in PostgreSQL's words; what is to be computed for it."""
    exp = load("sqlglot.expressions")
    tree = load("sqlglot").parse_one(marked, read=_reader())
    if isinstance(tree, exp.Command):  # what it does not understand it would write down as it is
        raise ValueError(f"no such statement: {marked[:60]}")
    rewriting = _Rewriting(exp, count)
    for node in reversed(list(tree.walk(bfs=False))):
        rewriting.function(node)
    lists = {
        one.alias_or_name for one in tree.find_all(exp.Table) if rewriting.called(one.this) == "json_each"
    }
    for node in reversed(list(tree.walk(bfs=False))):
        rewriting.clause(node, lists)
    for node in reversed(list(tree.walk(bfs=False))):
        rewriting.named(node)
        rewriting.truth(node)
    return tree.sql(dialect="postgres", normalize_functions=False), rewriting.computed


@functools.cache
def _reader() -> Any:
    """SQLite's words, with no idea of its functions: those are our affair, and stay as they are written."""
    known: Any = load("sqlglot.dialects.sqlite").SQLite

    class Plain(known):
        class Parser(known.Parser):
            FUNCTIONS: Mapping[str, Any] = {}
            FUNCTION_PARSERS: Mapping[str, Any] = {"CAST": known.Parser.FUNCTION_PARSERS["CAST"]}

    return Plain


class _Rewriting:
    """Rewrites the nodes of one tree in place, each after those below it."""

    def __init__(self, exp: Any, count: int) -> None:
        self.exp = exp
        self.computed: list[Computed] = []
        self._count = count
        self._truths = (
            *(exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.And, exp.Or, exp.Not, exp.Is),
            *(exp.In, exp.Between, exp.Like, exp.Exists, exp.Boolean),
        )

    def called(self, node: Any) -> str:
        """The name of a function; empty for anything else."""
        return str(node.this).lower() if isinstance(node, self.exp.Anonymous) else ""

    def call(self, name: str, *values: Any) -> Any:
        """A call of a function."""
        return self.exp.Anonymous(this=name, expressions=list(values))

    def cast(self, node: Any, kind: str) -> Any:
        """A value as of another type."""
        return self.exp.Cast(this=node, to=self.exp.DataType.build(kind, dialect="postgres"))

    def text(self, value: str) -> Any:
        """A string."""
        return self.exp.Literal.string(value)

    def function(self, node: Any) -> None:
        """What has another name, or is another thing."""
        exp = self.exp
        if isinstance(node, exp.Glob):
            node.replace(self.call(f"{OURS}glob", node.this.copy(), node.expression.copy()))
            return
        if isinstance(node, exp.HexString):  # there those are bits
            node.replace(self.cast(self.text(f"\\x{node.this}"), "bytea"))
            return
        if isinstance(node, exp.Cast):
            self._cast(node)
            return
        if isinstance(node, exp.BitwiseLeftShift) and node.this.is_int and node.expression.is_int:
            shifted = int(node.this.this) << min(_SHIFTED, int(node.expression.this))
            node.replace(exp.Literal.number(str(shifted)))
            return
        name = self.called(node)
        values = [value.copy() for value in node.expressions] if name else []
        if name in HOST:
            self.computed.append(Computed(name, tuple(self._marked(value) for value in values)))
            node.replace(exp.column(f"{MARK}{self._count + len(self.computed) - 1}"))
        elif name in _CHANGES and (changed := _CHANGES[name](self, values)) is not None:
            node.replace(changed)

    def _cast(self, node: Any) -> None:
        """SQLite reads as much of a number as there is in a text; bytes are those of the text."""
        value, kind = node.this.copy(), node.to.sql(dialect="sqlite").upper()
        if kind == "BLOB":
            node.replace(self.call("convert_to", value, self.text("UTF8")))
        elif kind in ("INTEGER", "REAL"):
            node.replace(self.call(f"{OURS}{kind.lower()}", value))

    def _marked(self, value: Any) -> int:
        name = value.name
        if not name.startswith(MARK):
            raise ValueError(f"only of values of the statement itself: {value}")
        return int(name.removeprefix(MARK))

    def clause(self, node: Any, lists: set[str]) -> None:
        """Joins, orders and limits; `lists`: what JSON is called that is read as a table."""
        exp = self.exp
        if isinstance(node, exp.Join):
            kind, joined = str(node.args.get("kind") or ""), node.args.get("on") or node.args.get("using")
            if kind.upper() == "CROSS" and joined:
                node.set("kind", None)
            if node.args.get("side") and not joined:
                node.set("on", exp.true())
        elif isinstance(node, exp.Ordered):
            # SQLite has NULL first, and nothing here is ordered by what may be NULL: an index has its order.
            node.set("nulls_first", bool(node.args.get("desc")))
            column = node.this
            if isinstance(column, exp.Column) and column.name == "key" and column.table in lists:
                node.set("this", exp.column("place", table=column.table))
        elif isinstance(node, exp.In) and not any(node.args.get(one) for one in _LISTS):
            node.replace(exp.false())
        elif isinstance(node, exp.Limit) and not node.expression.is_int:
            least = self.call("greatest", node.expression.copy(), exp.Literal.number("-1"))
            node.set("expression", self.call("nullif", least, exp.Literal.number("-1")))

    def named(self, node: Any) -> None:
        """Functions that we bring along."""
        if (name := self.called(node)) in _LITE:
            node.set("this", f"{OURS}{name}")
        elif name in _RENAMED:
            node.set("this", _RENAMED[name])

    def truth(self, node: Any) -> None:
        """A comparison where a value is wanted becomes a number, a number that is to hold a comparison."""
        exp = self.exp
        if node.parent is None or isinstance(node, exp.Paren | exp.Where) or self._assigns(node):
            return
        holds, is_one = self._is_to_hold(node), isinstance(node, self._truths)
        if is_one and not holds:
            number = self.cast(exp.Paren(this=node.copy()), "int")
            inside = self._around(node)[0]
            node.replace(self.cast(number, "text") if isinstance(inside, exp.DPipe) else number)
        elif holds and not is_one:
            plain = node.copy()
            compared = exp.Paren(this=plain) if isinstance(plain, exp.Binary | exp.Case) else plain
            node.replace(exp.NEQ(this=compared, expression=exp.Literal.number("0")))

    def _assigns(self, node: Any) -> bool:
        exp = self.exp
        changes = isinstance(node.parent, exp.Update | exp.OnConflict)
        return isinstance(node, exp.EQ) and changes and node.arg_key == "expressions"

    def _around(self, node: Any) -> tuple[Any, str]:
        """What a node stands in, and as what, brackets aside."""
        while isinstance(node.parent, self.exp.Paren):
            node = node.parent
        return node.parent, str(node.arg_key)

    def _is_to_hold(self, node: Any) -> bool:
        exp = self.exp
        parent, place = self._around(node)
        if isinstance(parent, exp.And | exp.Or | exp.Not):
            return True
        if isinstance(parent, exp.Where | exp.Having):
            return place == "this"
        if isinstance(parent, exp.Join):
            return place == "on"
        if isinstance(parent, exp.If):
            compared = parent.parent.args.get("this") if isinstance(parent.parent, exp.Case) else None
            return place == "this" and compared is None
        return isinstance(parent, exp.OnConflict) and place in ("where", "index_predicate")


def _iif(made: _Rewriting, values: list[Any]) -> Any:
    exp = made.exp
    return exp.Case(ifs=[exp.If(this=values[0], true=values[1])], default=values[2])


def _most(name: str) -> Callable[[_Rewriting, list[Any]], Any]:
    return lambda made, values: made.call(name, *values) if len(values) > 1 else None


def _printf(made: _Rewriting, values: list[Any]) -> Any:
    if values[0].name != "%015d":
        raise ValueError(f"no such form of a number: {values[0]}")
    digits, zero = made.exp.Literal.number("15"), made.text("0")
    return made.call("lpad", made.cast(values[1], "text"), digits, zero)


def _substr(made: _Rewriting, values: list[Any]) -> Any:
    exp = made.exp
    places = [one if isinstance(one, exp.Literal) else made.cast(one, "int") for one in values[1:]]
    return made.call("substr", values[0], *places)


def _total(made: _Rewriting, values: list[Any]) -> Any:
    number = made.cast(made.call("sum", values[0]), "double precision")
    return made.call("coalesce", number, made.exp.Literal.number("0"))


def _json(made: _Rewriting, values: list[Any]) -> Any:
    return made.cast(values[0], "text")


def _in_brackets(made: _Rewriting, first: str, inner: Any, last: str) -> Any:
    exp = made.exp
    filled = made.call("coalesce", inner, made.text(""))
    begun = exp.DPipe(this=made.text(first), expression=filled)
    return exp.Paren(this=exp.DPipe(this=begun, expression=made.text(last)))


def _json_group_array(made: _Rewriting, values: list[Any]) -> Any:
    joined = made.call("string_agg", made.cast(values[0], "text"), made.text(","))
    return _in_brackets(made, "[", joined, "]")


def _json_group_object(made: _Rewriting, values: list[Any]) -> Any:
    exp = made.exp
    key, value = values
    quoted = exp.DPipe(this=made.call(f"{OURS}json_quote", key), expression=made.text(":"))
    ordered = exp.Ordered(this=key.copy(), nulls_first=False)
    comma = exp.Order(this=made.text(","), expressions=[ordered])
    joined = made.call("string_agg", exp.DPipe(this=quoted, expression=value), comma)
    return _in_brackets(made, "{", joined, "}")


_CHANGES: Mapping[str, Callable[[_Rewriting, list[Any]], Any]] = {
    "iif": _iif,
    "json": _json,
    "json_group_array": _json_group_array,
    "json_group_object": _json_group_object,
    "max": _most("greatest"),
    "min": _most("least"),
    "printf": _printf,
    "substr": _substr,
    "total": _total,
}
