# SPDX-License-Identifier: Apache-2.0
"""What `goodbot doctor` looks at: whether Claude Code's hooks are there, may run, and reach us."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goodbot.api.setup import Check, CheckState

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
_FORBIDS = {
    "disableAllHooks": "switches all hooks off",
    "allowManagedHooksOnly": "lets only hooks of the organization run",
}
_URLS = "allowedHttpHookUrls"


def settings(directory: Path, wanted: Mapping[str, settings_file.Handler]) -> list[Check]:
    """Whether our hooks and our command are in place."""
    path = directory / "settings.json"
    try:
        found = settings_file.ours(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        found = {}
    except (OSError, ValueError) as error:
        return [_fail(f"{path} cannot be understood: {error}", "correct it")]
    missing = [event for event in wanted if event not in found]
    checks: list[Check] = []
    if missing:
        checks.append(_fail(f"{path} has no hook of goodbot's for {', '.join(missing)}", _AGAIN))
    elif found != dict(wanted):
        checks.append(_fail(f"the hooks in {path} are not those of this goodbot", _AGAIN))
    else:
        checks.append(_ok(f"its hooks are in {path}"))
    if not (directory / "commands" / "rl.md").is_file():
        checks.append(_fail("Claude Code has no command /rl", _AGAIN))
    return checks


def restrictions(directory: Path, *, http: bool) -> list[Check]:
    """Whatever keeps the hooks from running."""
    checks: list[Check] = []
    for path in (directory / "settings.json", MANAGED, *_pieces()):
        held = _read(path)
        whose = "ask who manages this machine" if path != directory / "settings.json" else ""
        for key, what in _FORBIDS.items():
            if held.get(key) is True:
                checks.append(_fail(f"{path} {what} ({key})", whose or f"take {key} out of it"))
        allowed: Any = held.get(_URLS)
        if http and isinstance(allowed, list):
            checks.append(_warned(path, whose))
    return checks


async def daemon(address: str, token: str, socket: Path | None) -> list[Check]:
    """Whether the daemon answers a hook that has our token, by the way that the hooks take."""
    import aiohttp  # not before it is asked: `goodbot connect --help` needs none

    if not token:
        return [_fail("there is no token for the hooks", _AGAIN)]
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
        return [_warn(f"no goodbot answers at {socket or address}: hooks say so once", "goodbot run")]
    if status == 200:
        return [_ok("the daemon takes its hooks")]
    if status in (401, 403):
        return [_fail("the daemon does not know the token of the hooks", _AGAIN)]
    text = f"the daemon answers its hooks with {status}: it runs without this connector"
    return [_fail(text, "goodbot service restart, or stop `goodbot run` and start it again")]


def _warned(path: Path, whose: str) -> Check:
    return _warn(
        f"{path} names the addresses that hooks may call ({_URLS})",
        whose or f"see that goodbot's is among them: http://127.0.0.1:*{settings_file.PATH}",
    )


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


def _ok(text: str) -> Check:
    return Check(part=_PART, state=CheckState.OK, text=text)


def _warn(text: str, fix: str) -> Check:
    return Check(part=_PART, state=CheckState.WARN, text=text, fix=fix)


def _fail(text: str, fix: str) -> Check:
    return Check(part=_PART, state=CheckState.FAIL, text=text, fix=fix)
