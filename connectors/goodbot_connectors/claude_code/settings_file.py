# SPDX-License-Identifier: Apache-2.0
"""Our part of Claude Code's `settings.json`. Pure: text in, text out; ValueError with what is wrong.

The order of keys stays, and so does the indentation; what JSON does not keep (spaces within a line) is
the reason that `SettingsFile` remembers the file's bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from goodbot.base.worded import Worded

from goodbot_connectors.claude_code.payloads import COMMAND, EXPANDED, STOPPED, SUBMITTED

EVENTS = (SUBMITTED, STOPPED, EXPANDED)
SCRIPT = "/connectors/claude_code/hook.sh"
"""How the path of our script ends, in whatever directory goodbot lives."""
PATH = "/v1/claude-code/hook"
_SECONDS = {SUBMITTED: 5, STOPPED: 5, EXPANDED: 35}
"""A command may take 30 s; for all else Claude would wait."""

Handler = Mapping[str, Any]


def script_hook(script: str, event: str) -> Handler:
    """A hook that runs our script; `script` is quoted for the shell that Claude Code runs it in."""
    return {"type": "command", "command": f"{script} {event}", "timeout": _SECONDS[event]}


def http_hook(url: str, token: str, event: str) -> Handler:
    """A hook that Claude Code calls itself."""
    headers = {"Authorization": f"Bearer {token}"}
    return {"type": "http", "url": url, "headers": headers, "timeout": _SECONDS[event]}


def with_ours(text: str, handlers: Mapping[str, Handler]) -> str:
    """The settings with these handlers (by event) and no older ones of ours."""
    settings = _parsed(text)
    if ours(text) == dict(handlers):
        return text
    _take_out(settings)
    hooks = settings.setdefault("hooks", {})
    for event, handler in handlers.items():
        entry: dict[str, Any] = {"hooks": [dict(handler)]}
        if event == EXPANDED:
            entry = {"matcher": COMMAND, **entry}
        hooks[event] = [*_list(hooks.get(event, []), f"hooks.{event}"), entry]
    return _written(settings, text)


def without_ours(text: str) -> str:
    """The settings without any hook of ours; what only held those goes, too."""
    settings = _parsed(text)
    if not _take_out(settings):
        return text
    return _written(settings, text) if settings else ""


def ours(text: str) -> dict[str, Handler]:
    """Our handlers by event."""
    found: dict[str, Handler] = {}
    for event, entries in _hooks(_parsed(text)).items():
        for entry in _list(entries, f"hooks.{event}"):
            for handler in _handlers(entry):
                if _is_ours(handler):
                    found[event] = handler
    return found


def _take_out(settings: dict[str, Any]) -> bool:
    """Whether there was anything of ours."""
    hooks = _hooks(settings)
    changed = False
    for event, entries in list(hooks.items()):
        kept: list[Any] = []
        for entry in _list(entries, f"hooks.{event}"):
            mine = [one for one in _handlers(entry) if _is_ours(one)]
            left = [one for one in _handlers(entry) if not _is_ours(one)]
            changed = changed or bool(mine)
            if not mine:
                kept.append(entry)
            elif left:
                kept.append({**entry, "hooks": left})
        if len(kept) < len(entries) and not kept:
            del hooks[event]
        else:
            hooks[event] = kept
    if changed and not hooks:
        del settings["hooks"]
    return changed


def _parsed(text: str) -> dict[str, Any]:
    try:
        settings: object = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise ValueError(Worded("it is no JSON: {why}", why=str(error))) from error
    if not isinstance(settings, dict):
        raise ValueError(Worded("it is no JSON object"))
    return cast("dict[str, Any]", settings)


def _hooks(settings: dict[str, Any]) -> dict[str, Any]:
    hooks: object = settings.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ValueError(Worded("its `hooks` is no object"))
    return cast("dict[str, Any]", hooks)


def _list(value: object, name: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ValueError(Worded("its `{name}` is no list", name=name))
    return cast("list[Any]", value)


def _handlers(entry: object) -> list[Any]:
    handlers: object = cast("dict[str, Any]", entry).get("hooks") if isinstance(entry, dict) else []
    return cast("list[Any]", handlers) if isinstance(handlers, list) else []


def _is_ours(handler: object) -> bool:
    if not isinstance(handler, dict):
        return False
    one = cast("dict[str, Any]", handler)
    return SCRIPT in str(one.get("command", "")) or str(one.get("url", "")).endswith(PATH)


def _written(settings: Mapping[str, Any], like: str) -> str:
    """As JSON, indented and ended as the text was."""
    inner = next((line for line in like.splitlines()[1:] if line.strip()), "")
    indent = inner[: len(inner) - len(inner.lstrip())] or ("  " if "\n" in like.strip() else None)
    if not like.strip():
        indent = "  "
    separators = None if indent or ": " in like or ", " in like else (",", ":")
    text = json.dumps(settings, indent=indent, ensure_ascii=False, separators=separators)
    end = like[len(like.rstrip()) :] if like.strip() else "\n"
    return (text.replace("\n", "\r\n") if "\r\n" in like else text) + end
