# SPDX-License-Identifier: Apache-2.0
"""Our hooks in Codex' settings, as text: in `hooks.json`, or in `config.toml` of whoever has theirs there.

Ours come last: Codex knows a hook that was trusted by its place, and all others keep theirs.
"""

from __future__ import annotations

import json
import tomllib
from typing import Any, cast

import tomlkit
from goodbot.base.errors import FatalConnectorError
from goodbot.base.worded import Worded

from goodbot_connectors.kit.fields import sub

EVENTS = ("UserPromptSubmit", "Stop")
SECONDS = 30
"""Codex' own limit for one call. It is part of what a person trusts: never change it."""
_BEGIN = "# goodbot: what Codex tells it; `goodbot disconnect codex` takes these lines away\n"
_STATE = "state"
"""The key of `[hooks]` in config.toml where Codex keeps what was trusted: no event."""


def inline(config: str) -> bool:
    """Whether hooks are written in this `config.toml`: Codex wants them in one place."""
    hooks = tomllib.loads(config).get("hooks")
    return isinstance(hooks, dict) and any(name != _STATE for name in cast("dict[str, Any]", hooks))


def in_json(text: str, command: str) -> str:
    """`hooks.json` with our hooks; the same text if they are in it. Raises FatalConnectorError."""
    data = _loaded(text)
    hooks = data.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        wrong = Worded("hooks.json: `hooks` must be an object; correct it, then try again")
        raise FatalConnectorError(wrong)
    events = cast("dict[str, Any]", hooks)
    changed = False
    for event in EVENTS:
        groups = events.setdefault(event, [])
        if not isinstance(groups, list):
            wrong = "hooks.json: {event} must be a list; correct it, then try again"
            raise FatalConnectorError(Worded(wrong, event=event))
        known = cast("list[Any]", groups)
        if not any(_ours(one, command) for group in known for one in _handlers(group)):
            known.append({"hooks": [_handler(command)]})
            changed = True
    return _dumped(data, text) if changed else text


def out_of_json(text: str, command: str) -> str:
    """`hooks.json` without our hooks; what nobody else has put anything into goes with them."""
    data = _loaded(text)
    hooks = data.get("hooks")
    if not isinstance(hooks, dict):
        return text
    if not _take_out(cast("dict[str, Any]", hooks), command):
        return text
    if not hooks:
        del data["hooks"]
    return _dumped(data, text) if data else ""


def in_toml(text: str, command: str) -> str:
    """`config.toml` with our hooks at its end; the same text if they are in it."""
    found = sub(tomllib.loads(text), "hooks")
    if all(
        any(_ours(one, command) for group in _list(found.get(event)) for one in _handlers(group))
        for event in EVENTS
    ):
        return text
    changed = text + ("" if text.endswith("\n") or not text else "\n") + _block(command)
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError as error:
        wrong = (
            "config.toml: its hooks are written as one value, to which none can be added. Make tables "
            "([[hooks.Stop]]) of them, or move them to hooks.json, then try again"
        )
        raise FatalConnectorError(Worded(wrong)) from error
    return changed


def out_of_toml(text: str, command: str) -> str:
    """`config.toml` without our hooks."""
    block = _block(command)
    if block in text:
        return text.replace(block, "", 1)
    document: Any = tomlkit.parse(text)
    hooks = document.get("hooks")
    if not isinstance(hooks, dict) or not _take_out(cast("dict[str, Any]", hooks), command):
        return text
    if not hooks:
        del document["hooks"]
    return str(tomlkit.dumps(document))  # pyright: ignore[reportUnknownMemberType]


def places(text: str, command: str, *, toml: bool = False) -> list[str]:
    """Where our hooks stand, as Codex calls that: `stop:0:0`."""
    hooks = sub(tomllib.loads(text) if toml else _loaded(text), "hooks")
    names = {"UserPromptSubmit": "user_prompt_submit", "Stop": "stop"}
    return [
        f"{name}:{number}:{index}"
        for event, name in names.items()
        for number, group in enumerate(_list(hooks.get(event)))
        for index, one in enumerate(_handlers(group))
        if _ours(one, command)
    ]


def _handler(command: str) -> dict[str, Any]:
    return {"type": "command", "command": command, "timeout": SECONDS}


def _block(command: str) -> str:
    quoted = json.dumps(command, ensure_ascii=False)  # a TOML basic string, too
    return (
        "\n"
        + _BEGIN
        + "".join(
            f"[[hooks.{event}]]\n[[hooks.{event}.hooks]]\n"
            f'type = "command"\ncommand = {quoted}\ntimeout = {SECONDS}\n'
            for event in EVENTS
        )
    )


def _take_out(hooks: dict[str, Any], command: str) -> bool:
    """Remove our handlers, and the groups and events that are empty then."""
    found = False
    for event in EVENTS:
        groups = hooks.get(event)
        for group in [*_list(groups)]:
            handlers = _handlers(group)
            mine = [one for one in handlers if _ours(one, command)]
            for one in mine:
                group["hooks"].remove(one)
                found = True
            if mine and not group["hooks"]:
                cast("list[Any]", groups).remove(group)
        if found and event in hooks and not hooks[event]:
            del hooks[event]
    return found


def _ours(handler: Any, command: str) -> bool:
    return isinstance(handler, dict) and cast("dict[str, Any]", handler).get("command") == command


def _handlers(group: Any) -> list[Any]:
    return _list(cast("dict[str, Any]", group).get("hooks")) if isinstance(group, dict) else []


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _loaded(text: str) -> dict[str, Any]:
    data: Any = json.loads(text) if text.strip() else {}
    if not isinstance(data, dict):
        raise FatalConnectorError(Worded("hooks.json must be one object; correct it, then try again"))
    return cast("dict[str, Any]", data)


def _dumped(data: dict[str, Any], before: str) -> str:
    """As its person has written it: their indentation, their end."""
    lines = before.splitlines()
    margin = next((line[: len(line) - len(line.lstrip())] for line in lines[1:] if line[:1].isspace()), "")
    indent: str | int | None = margin or (2 if len(lines) != 1 else None)
    return json.dumps(data, indent=indent, ensure_ascii=False) + ("\n" if before[-1:] in ("", "\n") else "")
