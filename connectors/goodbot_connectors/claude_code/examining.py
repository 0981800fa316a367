# SPDX-License-Identifier: Apache-2.0
"""What `goodbot doctor` looks at: whether Claude Code's hooks are there, may run, and reach us."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodbot.api.setup import Check, fail, ok, warn
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, phrase

from goodbot_connectors.claude_code import settings_file
from goodbot_connectors.kit.fields import as_json

_PART = "claude_code"
_AGAIN = "goodbot connect claude_code"
_SECONDS = 5.0
MANAGED = (
    Path("/Library/Application Support/ClaudeCode/managed-settings.json")
    if sys.platform == "darwin"
    else Path("/etc/claude-code/managed-settings.json")
)
"""Where an organization writes what nobody may change."""
_FORBIDS = {"disableAllHooks": "cc_all_off", "allowManagedHooksOnly": "cc_managed"}
"""With the texts that say so."""
_URLS = "allowedHttpHookUrls"


def settings(directory: Path, wanted: Mapping[str, settings_file.Handler]) -> list[Check]:
    """Whether our hooks and our command are in place."""
    path = directory / "settings.json"
    try:
        found = settings_file.ours(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        found = {}
    except (OSError, ValueError) as error:
        return [fail(_PART, phrase("cc_odd", path=str(path), why=error), phrase("cc_odd_fix"))]
    missing = [event for event in wanted if event not in found]
    checks: list[Check] = []
    if missing:
        text = phrase("cc_missing", path=str(path), events=commas(here(), *missing))
        checks.append(fail(_PART, text, _AGAIN))
    elif found != dict(wanted):
        checks.append(fail(_PART, phrase("cc_others", path=str(path)), _AGAIN))
    else:
        checks.append(ok(_PART, phrase("cc_there", path=str(path))))
    if not (directory / "commands" / "rl.md").is_file():
        checks.append(fail(_PART, phrase("cc_no_command"), _AGAIN))
    return checks


def restrictions(directory: Path, *, http: bool) -> list[Check]:
    """Whatever keeps the hooks from running."""
    checks: list[Check] = []
    for path in (directory / "settings.json", MANAGED, *_pieces()):
        held = _read(path)
        whose = phrase("cc_ask") if path != directory / "settings.json" else ""
        for key, told in _FORBIDS.items():
            if held.get(key) is True:
                text = phrase(told, path=str(path), key=key)
                checks.append(fail(_PART, text, whose or phrase("cc_take_out", key=key)))
        allowed: Any = held.get(_URLS)
        if http and isinstance(allowed, list):
            checks.append(_warned(path, whose))
    return checks


async def daemon(address: str, token: str, socket: Path | None) -> list[Check]:
    """Whether the daemon answers a hook that has our token, by the way that the hooks take."""
    import aiohttp  # not before it is asked: `goodbot connect --help` needs none

    if not token:
        return [fail(_PART, phrase("cc_no_token"), _AGAIN)]
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    headers = {"Authorization": f"Bearer {token}"}
    way = aiohttp.UnixConnector(str(socket)) if socket is not None else None
    place = address if socket is None else "http://127.0.0.1"
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, connector=way) as session,
            session.post(place + settings_file.PATH, json={}, headers=headers) as response,
        ):
            status = response.status
    except (aiohttp.ClientError, TimeoutError, OSError):
        return [warn(_PART, phrase("cc_silent", place=str(socket or address)), "goodbot run")]
    if status == 200:
        return [ok(_PART, phrase("cc_takes"))]
    if status in (401, 403):
        return [fail(_PART, phrase("cc_unknown"), _AGAIN)]
    return [fail(_PART, phrase("cc_without", status=status), phrase("restart_fix"))]


def _warned(path: Path, whose: str) -> Check:
    address = f"http://127.0.0.1:*{settings_file.PATH}"
    fix = whose or phrase("cc_urls_fix", address=address)
    return warn(_PART, phrase("cc_urls", path=str(path), key=_URLS), fix)


def _pieces() -> list[Path]:
    folder = MANAGED.with_name("managed-settings.d")
    try:
        return sorted(folder.glob("*.json"))
    except OSError:
        return []


def _read(path: Path) -> Mapping[str, Any]:
    try:
        return as_json(json.loads(path.read_text(encoding="utf-8-sig")))
    except (OSError, ValueError):
        return {}
