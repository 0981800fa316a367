# SPDX-License-Identifier: Apache-2.0
"""What comes after the answers are written: the owner's code, and the start."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

from goodbot.access.login import OWNER
from goodbot.access.pairing import open_code
from goodbot.api import control
from goodbot.api.sentences import ended
from goodbot.api.texts.terminal import phrase
from goodbot.base.clock import SystemClock
from goodbot.base.errors import GoodbotError
from goodbot.base.suggest import TERMINAL
from goodbot.cli import service
from goodbot.cli.doctor.checks import short
from goodbot.cli.setup.asked import known_owner, needs_token, setup_of
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.cli.setup.program import install
from goodbot.config import Config, default_home
from goodbot.config.layout import DATABASE
from goodbot.config.lock import HomeLock
from goodbot.store.opening import open_store


def finish(dialogue: Dialogue, place: StateFound, draft: Draft) -> dict[str, Any]:
    """Change the program that is to call us, open the pairing code, install the service, and say what
    comes next."""
    dialogue.say(f"\n{dialogue.phrase('setup_written', file=short(place.file.path))}")
    changed = install(place, draft)
    owner = known_owner(place, draft)
    if changed:
        dialogue.say(dialogue.phrase("setup_done_there"))
    for line in changed:
        line, _, as_it_is = line.partition("\n")
        dialogue.say(f"  {_told(line, dialogue.language)}")
        if as_it_is:  # a line to copy is not wrapped
            dialogue.verbatim(as_it_is)
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
        dialogue.say(f"\n{dialogue.phrase('setup_log_in', command=command)}\n")
    dialogue.say(dialogue.phrase("setup_matters"))
    for missing in draft.missing.values():
        dialogue.say(dialogue.phrase("setup_missing", what=missing))
    result["next"] = _next(place, draft)
    if draft.start != "now":
        dialogue.say(dialogue.phrase("setup_next", what=result["next"]))
    return result


def _told(line: str, language: str) -> str:
    """What was changed as a sentence; after a colon it goes on below."""
    return line if line.endswith((":", "：")) else ended(line, language)


def start(dialogue: Dialogue, place: StateFound, draft: Draft, result: dict[str, Any]) -> int:
    """Be the bot, if it is to start here and now; the exit code of the program."""
    if draft.start != "now":
        return 0 if result["ok"] else 1
    from goodbot.cli import main

    dialogue.say(dialogue.phrase("setup_starting"))
    return main([*_globals(place), "chat" if draft.platform == TERMINAL else "run"])


def _code(place: StateFound, draft: Draft) -> str:
    if place.daemon:
        answer = control.call(place.config.home, "pair", [draft.platform])
        if answer:
            return str(answer["data"]["code"])
    return asyncio.run(_open(place.config, draft.platform))


async def _open(config: Config, connector: str) -> str:
    lock = HomeLock(config.home)
    lock.acquire()
    try:
        store = await open_store(config.home / DATABASE, config.store)
        try:
            return await open_code(store, connector, SystemClock().now())
        finally:
            await store.close()
    finally:
        lock.release()


def _say_code(dialogue: Dialogue, place: StateFound, draft: Draft, code: str) -> None:
    bot = dialogue.phrase("setup_your_bot")
    if draft.identity:
        bot = draft.identity.name + (f" ({draft.identity.link})" if draft.identity.link else "")
    send = "setup_send_restart" if place.daemon else "setup_send"
    dialogue.say(f"\n{dialogue.phrase(send, code=code, bot=bot)}")
    if opens := _pairing_link(place, draft, code):
        dialogue.link(dialogue.phrase("setup_open_link"), opens, picture=True)
    dialogue.say(f"{dialogue.phrase('setup_code_hour')}\n")


def _pairing_link(place: StateFound, draft: Draft, code: str) -> str:
    setup = setup_of(place, draft)
    return setup.pairing_link(draft.identity, code) if setup and draft.identity and code else ""


def _install(dialogue: Dialogue, place: StateFound, draft: Draft, result: dict[str, Any]) -> None:
    try:
        installed = service.install(place.config.home, place.other_config)
    except GoodbotError as error:
        draft.missing["service"] = dialogue.phrase("setup_no_background", why=error)
        result |= {"ok": False, "missing": list(draft.missing.values())}
        return
    dialogue.say(dialogue.phrase("setup_background", name=installed.status.name))
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
        return phrase("setup_restart", pid=place.daemon)
    if draft.start == "service":
        return f"{command} status"
    return f"{command} {'chat' if draft.platform == TERMINAL else 'run'}"


def _globals(place: StateFound) -> list[str]:
    home = place.config.home
    words = [] if home == default_home() else ["--home", str(home)]
    other = place.other_config
    return [*words, "--config", str(other)] if other else words
