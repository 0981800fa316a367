# SPDX-License-Identifier: Apache-2.0
"""What comes after the answers are written: the owner's code, and the start."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import io
import shlex
from pathlib import Path
from typing import Any

from goodbot.access.login import OWNER
from goodbot.access.pairing import open_code
from goodbot.api import control
from goodbot.base.clock import SystemClock
from goodbot.base.errors import GoodbotError
from goodbot.base.printing import say
from goodbot.base.suggest import TERMINAL
from goodbot.cli import service
from goodbot.cli.doctor.checks import short
from goodbot.cli.setup.asked import known_owner, needs_token, setup_of
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.cli.setup.program import install
from goodbot.config import default_home
from goodbot.config.layout import DATABASE
from goodbot.config.lock import HomeLock
from goodbot.store import Store

_BORDER = 2
"""Modules of light around a QR code: phones read it with fewer than the four that the norm asks for."""
MATTERS = 'Rate good answers too: a bot that hears only "bad" cannot learn.'


def finish(dialogue: Dialogue, place: StateFound, draft: Draft) -> dict[str, Any]:
    """Change the program that is to call us, open the pairing code, install the service, and say what
    comes next."""
    dialogue.say(f"\nWritten to {short(place.file.path)}.")
    changed = install(place, draft)
    owner = known_owner(place, draft)
    if changed:
        dialogue.say("Done there:")
    for line in changed:
        line, _, as_it_is = line.partition("\n")
        dialogue.say(f"  {line}" if line[-1:] in ".!?:" else f"  {line}.")
        if as_it_is:  # a line to copy is not wrapped
            say(as_it_is, file=dialogue.out)
    code = _code(place, draft) if draft.pair else ""
    result: dict[str, Any] = {
        "ok": not draft.missing,
        "config": str(place.file.path),
        "platform": draft.platform,
        "bot": draft.identity.name if draft.identity else "",
        "link": draft.identity.link if draft.identity else "",
        "token": draft.keep if needs_token(place, draft) else "",
        "backend": draft.backend,
        "model": draft.model,
        "preset": draft.preset,
        "schedule": draft.schedule,
        "owners": [owner] if owner not in ("", OWNER) else list(draft.owners),
        "pairing_code": code,
        "pairing_link": _pairing_link(place, draft, code),
        "start": draft.start,
        "changed": list(changed),
        "missing": list(draft.missing.values()),
    }
    if draft.start == "service":
        _install(dialogue, place, draft, result)
    if code:
        _say_code(dialogue, place, draft, code)
    if owner == OWNER:
        command = shlex.join(["goodbot", *_globals(place), "web"])
        dialogue.say(f"\nOnce it runs, `{command}` gives you a link that logs you in.\n")
    dialogue.say(MATTERS)
    for sentence in draft.missing.values():
        dialogue.say(f"Missing: {sentence}.")
    result["next"] = _next(place, draft)
    if draft.start != "now":
        dialogue.say(f"Next: {result['next']}")
    return result


def start(dialogue: Dialogue, place: StateFound, draft: Draft, result: dict[str, Any]) -> int:
    """Be the bot, if it is to start here and now; the exit code of the program."""
    if draft.start != "now":
        return 0 if result["ok"] else 1
    from goodbot.cli import main

    dialogue.say("Starting ...")
    return main([*_globals(place), "chat" if draft.platform == TERMINAL else "run"])


def _code(place: StateFound, draft: Draft) -> str:
    if place.daemon:
        answer = control.call(place.config.home, "pair", [draft.platform], lambda progress: None)
        if answer:
            return str(answer["data"]["code"])
    return asyncio.run(_open(place.config.home, draft.platform))


async def _open(home: Path, connector: str) -> str:
    lock = HomeLock(home)
    lock.acquire()
    try:
        store = await Store.open(home / DATABASE)
        try:
            return await open_code(store, connector, SystemClock().now())
        finally:
            await store.close()
    finally:
        lock.release()


def _say_code(dialogue: Dialogue, place: StateFound, draft: Draft, code: str) -> None:
    bot, link = "your bot", ""
    if draft.identity:
        bot = draft.identity.name
        link = f" ({draft.identity.link})" if draft.identity.link else ""
    send = "Restart goodbot, then send" if place.daemon else "Send"
    dialogue.say(f"\n{send} {code} to {bot}{link}.")
    if opens := _pairing_link(place, draft, code):
        dialogue.say("Or open this, or point a phone's camera at it, and press Start:\n")
        say("\n".join([opens, *(qr_lines(opens) if dialogue.asks else ())]), file=dialogue.out)
        dialogue.say()
    dialogue.say("The code is good for an hour; whoever sends it owns the bot.\n")


def _pairing_link(place: StateFound, draft: Draft, code: str) -> str:
    setup = setup_of(place, draft)
    return setup.pairing_link(draft.identity, code) if setup and draft.identity and code else ""


def _install(dialogue: Dialogue, place: StateFound, draft: Draft, result: dict[str, Any]) -> None:
    try:
        installed = service.install(place.config.home, place.other_config)
    except GoodbotError as error:
        draft.missing["service"] = f"it does not run in the background: {error}"
        result |= {"ok": False, "missing": list(draft.missing.values())}
        return
    dialogue.say(f"It runs in the background as {installed.status.name}.")
    for note in installed.notes:
        dialogue.say(note)


def _next(place: StateFound, draft: Draft) -> str:
    """The command that goes on."""
    command = shlex.join(["goodbot", *_globals(place)])
    if set(draft.missing) - {"token", "account", "service", "program"}:
        return f"{command} init"
    if draft.missing:
        return f"{command} doctor"
    if place.daemon:
        return f"restart the goodbot that runs as process {place.daemon}"
    if draft.start == "service":
        return f"{command} status"
    return f"{command} {'chat' if draft.platform == TERMINAL else 'run'}"


def _globals(place: StateFound) -> list[str]:
    home = place.config.home
    words = [] if home == default_home() else ["--home", str(home)]
    other = place.other_config
    return [*words, "--config", str(other)] if other else words


def qr_lines(text: str) -> list[str]:
    """The rows of its QR code in half blocks; none where `segno` is not installed, as without any extra."""
    if importlib.util.find_spec("segno") is None:
        return []
    drawn = io.StringIO()
    importlib.import_module("segno").make(text, micro=False).terminal(drawn, border=_BORDER, compact=True)
    return drawn.getvalue().splitlines()
