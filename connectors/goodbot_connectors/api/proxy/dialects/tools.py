# SPDX-License-Identifier: Apache-2.0
"""Calls of tools that come in pieces: which piece belongs to which call.

Servers number them by `index`, and some give every call the same one, or none. What contradicts the number
is believed more: another id, another name, or a name after arguments that are whole, is another call.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from goodbot_connectors.api.proxy.dialects.shapes import ToolCall, objects
from goodbot_connectors.kit.fields import Json, string, sub


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A piece of the call of a tool; the first one at a place has its id and name."""

    place: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(slots=True)
class _Open:
    id: str
    given: str
    """The id that the server gave it, if it gave one."""
    name: str
    pieces: list[str]
    """Of its arguments: servers send a long text in very many."""
    again: bool = False
    """Its id and name came once more, behind whole arguments: what comes next may be another call's."""

    @property
    def arguments(self) -> str:
        self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0]

    @property
    def whole(self) -> bool:
        last = next((one for one in reversed(self.pieces) if one.strip()), "")
        if not last.rstrip().endswith(("}", "]")):
            return False
        text = self.arguments
        try:
            return isinstance(json.loads(text), dict | list)
        except (ValueError, RecursionError):
            return False


@dataclass(slots=True)
class Calls:
    """The calls of one answer, in the order in which they began."""

    _open: list[_Open] = field(default_factory=list[_Open])
    _last: dict[int, int] = field(default_factory=dict[int, int])
    """By the server's number, the place of the call that it meant last."""

    def add(self, number: int, id_: str = "", name: str = "", arguments: str = "") -> Part:
        """More of the call that the server gives this number; `place` of what comes back is ours."""
        place = self._last.get(number)
        if place is None and id_ and not name:  # a new number for each piece, some servers have
            place = next((at for at, one in enumerate(self._open) if one.given == id_), None)
        if place is None or self._is_another(self._open[place], id_, name, arguments):
            return self.begin(number, id_, name, arguments)
        self._last[number] = place
        call = self._open[place]
        if call.again and arguments.strip():
            return self.begin(number, id_, name or call.name, arguments)
        call.again |= bool(name and call.name and call.whole)
        named = name if not call.name else ""
        call.name = call.name or name
        call.pieces.append(arguments)
        return Part(place=place, id=call.id if named else "", name=named, arguments=arguments)

    def begin(self, number: int, id_: str = "", name: str = "", arguments: str = "") -> Part:
        """A call that is none of those before, whatever its number. Its id is its own."""
        taken = not id_ or any(one.id == id_ for one in self._open)
        own = f"call_{uuid.uuid4().hex[:24]}" if taken else id_
        self._open.append(_Open(own, id_, name, [arguments]))
        place = self._last[number] = len(self._open) - 1
        return Part(place=place, id=own, name=name, arguments=arguments)

    def whole(self, place: int) -> bool:
        """Whether the call at a place has all its arguments."""
        return self._open[place].whole

    def all(self) -> tuple[ToolCall, ...]:
        """Those that have a name, in their order."""
        return tuple(
            ToolCall(id=one.id, name=one.name, arguments=one.arguments) for one in self._open if one.name
        )

    @staticmethod
    def _is_another(call: _Open, id_: str, name: str, arguments: str) -> bool:
        if id_ and call.given and id_ != call.given:
            # Some servers make up a new id for each piece of one call: those have no name.
            return bool(name) or call.whole
        if name and call.name and name != call.name:
            return True
        if not (name and call.name and call.whole):
            return False
        return not id_ or bool(arguments)


def streamed(calls: Calls, delta: Json) -> list[Part]:
    """What a chunk of a stream of chat completions says of calls, each piece at its place."""
    found: list[Part] = []
    for position, one in enumerate(objects(delta.get("tool_calls"))):
        number, what = one.get("index"), sub(one, "function")
        found.append(
            calls.add(
                number if isinstance(number, int) else position,
                string(one, "id"),
                string(what, "name"),
                arguments(what),
            )
        )
    if old := sub(delta, "function_call"):
        found.append(calls.add(0, "", string(old, "name"), arguments(old)))
    return found


def told(calls: Calls, message: Json) -> list[Part]:
    """The calls of a whole message: each is one, whatever its number."""
    found = [
        calls.begin(at, string(one, "id"), string(what, "name"), arguments(what))
        for at, one in enumerate(objects(message.get("tool_calls")))
        for what in (sub(one, "function"),)
    ]
    if old := sub(message, "function_call"):
        found.append(calls.begin(0, "", string(old, "name"), arguments(old)))
    return found


def arguments(what: Json, name: str = "arguments") -> str:
    """The arguments of a call as JSON text; some servers and programs give the value itself."""
    given = what.get(name)
    if isinstance(given, dict | list):
        return json.dumps(cast("Any", given), ensure_ascii=False)
    return string(what, name)


class InTurn:
    """Hands calls on one after the other, as the other APIs have them, whatever the order of their pieces."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._now = 0
        self._held: dict[int, list[Part]] = {}

    def feed(self, parts: Collection[Part]) -> Iterator[Part]:
        """More pieces; those whose turn it is."""
        for part in parts:
            self._held.setdefault(part.place, []).append(part)
        yield from self._due(last=False)

    def end(self) -> Iterator[Part]:
        """The rest."""
        yield from self._due(last=True)

    def _due(self, *, last: bool) -> Iterator[Part]:
        while self._now in self._held or self._now + 1 in self._held:
            held = self._held.get(self._now, [])
            if any(part.name for part in held):  # its beginning: the name may come after the id
                yield _joined(held)
                self._held[self._now] = []
                self._begun = True
            elif self._begun:
                yield from held
                self._held[self._now] = []
            later = self._now + 1 in self._held
            if not later or not (last or self._calls.whole(self._now)):
                return
            self._held.pop(self._now, None)
            self._now, self._begun = self._now + 1, False

    _begun = False


def _joined(parts: list[Part]) -> Part:
    """Pieces of one call as one that begins it."""
    return Part(
        place=parts[0].place,
        id=next((part.id for part in parts if part.id), ""),
        name=next(part.name for part in parts if part.name),
        arguments="".join(part.arguments for part in parts),
    )
