# SPDX-License-Identifier: Apache-2.0
"""Our part of Codex' `config.toml`, as text: the program that it notifies, and what it has trusted of ours.

Codex itself writes this file while it runs, so ours is taken out of it as it was put in: character by
character.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import tomlkit

from goodbot_connectors.kit.fields import sub

_MARK = "  # goodbot, which starts what stands behind it"


def notified(text: str) -> list[str] | None:
    """The program that is notified, with its arguments; empty for none, None for what is no list."""
    value = tomllib.loads(text).get("notify", [])
    if isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value)):
        return cast("list[str]", value)
    return None


def with_notify(text: str, program: str) -> str:
    """With our program in front of whatever was notified: it is ours that starts that, then."""
    known = notified(text)
    if known is None or program in known:
        return text
    if "notify" not in tomllib.loads(text):
        return f"notify = [{_quoted(program)}]{_MARK}\n{text}"
    document: Any = tomlkit.parse(text)
    value = str(document["notify"].as_string())
    at = text.find(value, _key(text))
    changed = f"{text[: at + 1]}{_quoted(program)}, {text[at + 1 :]}"
    if at < 0 or notified(changed) != [program, *known]:
        document["notify"].insert(0, program)
        return _text(document)
    return changed


def without_notify(text: str, program: str) -> str:
    """As it was before `with_notify`; what else has changed since stays."""
    if program not in (notified(text) or []):
        return text
    rest = [one for one in notified(text) or [] if one != program]
    line = f"notify = [{_quoted(program)}]{_MARK}\n"
    for ours in (line, f"{_quoted(program)}, "):
        changed = text.replace(ours, "", 1)
        if changed != text and (notified(changed) or []) == rest:
            return changed
    document: Any = tomlkit.parse(text)
    if rest:
        document["notify"].remove(program)
    else:
        del document["notify"]
    return _text(document)


def without_trust(text: str, file: Path, places: Collection[str]) -> str:
    """Without what Codex has noted of the hooks at these places of `file` (`stop:0:0`)."""
    known = sub(tomllib.loads(text), "hooks", "state")
    gone = [key for key in known if _is_at(key, file, places)]
    if not gone:
        return text
    headers = {f"[hooks.state.{_quoted(key)}]" for key in gone}
    if len(gone) == len(known):
        headers.add("[hooks.state]")
    return _without_tables(text, headers)


def _is_at(key: str, file: Path, places: Collection[str]) -> bool:
    path, *place = key.rsplit(":", 3)
    return ":".join(place) in places and os.path.realpath(path) == os.path.realpath(file)


def _without_tables(text: str, headers: Collection[str]) -> str:
    """Without these tables, each with the empty line before it; as it was if that is no TOML."""
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("["):
            inside = line.strip() in headers
            if inside and kept and not kept[-1].strip():
                kept.pop()
        if not inside or not line.strip():
            kept.append(line)
    changed = "".join(kept)
    try:
        tomllib.loads(changed)
    except tomllib.TOMLDecodeError:
        return text
    return changed


def _key(text: str) -> int:
    """Where the top level's `notify` begins, about: the first line that begins so."""
    at = 0
    for line in text.splitlines(keepends=True):
        if line.lstrip().startswith("notify"):
            return at
        at += len(line)
    return 0


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a TOML basic string, too


def _text(document: Any) -> str:
    return str(tomlkit.dumps(document))  # pyright: ignore[reportUnknownMemberType]
