# SPDX-License-Identifier: Apache-2.0
"""Putting our plugin into OpenClaw, looking at it, and taking it out again."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from goodbot.api.setup import Check, ConnectorSetup, Identity, fail, ok, warn
from goodbot.api.texts import pauses, reworded, say
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import durable
from goodbot.base.clock import Clock, SystemClock
from goodbot.base.errors import FatalConnectorError, GoodbotError
from goodbot.config.lock import HTTP_SOCKET, short_socket, socket_path

from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.settings_file import SettingsFile
from goodbot_connectors.openclaw import seen
from goodbot_connectors.openclaw.config import OpenClawSettings
from goodbot_connectors.openclaw.program import Program

PLUGIN = Path(__file__).parent / "plugin"
ID = "goodbot"
NAME = "openclaw"
CLIENT = "plugin"


class OpenClawSetup(ConnectorSetup):
    """OpenClaw on this machine, by its own command."""

    title = "OpenClaw"
    guide = say("guide_openclaw")
    settings: OpenClawSettings
    clock: Clock = SystemClock()
    remove_seconds = 300.0

    @classmethod
    def wrong_user_id(cls, value: str) -> str:
        """People are named by their channel, its account and their id there."""
        if len([part for part in value.split(":", 2) if part.strip()]) == 3:
            return ""
        return phrase("oc_user")

    @property
    def program(self) -> Program:
        """OpenClaw, as the settings say where it is."""
        return Program(self.settings)

    @property
    def token_file(self) -> Path:
        """What the plugin reads its token from (0600)."""
        return self.home / "connectors" / NAME / "plugin.token"

    @property
    def _socket(self) -> str:
        """Where goodbot listens and nobody else can; empty where it has only the port."""
        return str(socket_path(self.home, HTTP_SOCKET)) if self.socket else ""

    def _file(self) -> SettingsFile:
        return SettingsFile(self.program.file, self.home, NAME)

    async def identify(self) -> Identity:
        """Ask the program what it is."""
        said = await self.program.run("--version")
        return Identity(account="local", name=said.splitlines()[-1] if said else "OpenClaw")

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        """Link the plugin with OpenClaw's own command, and tell it where goodbot is."""
        program, file = self.program, self._file()
        if file.written and self._token_holds() and self._told(program.file):
            return ()
        lines = (
            f"openclaw plugins install --link {PLUGIN} --force --accept-capabilities",
            phrase("oc_gets", path=str(program.file), entry=f"plugins.entries.{ID}"),
            phrase("oc_holds", path=str(self.token_file)),
        )
        if dry_run:
            return lines
        if not program.path:
            await program.run("--version")  # says what is missing, before anything is changed
        if not self._token_holds():
            _store(self.token_file, clients.create(self.home, NAME, CLIENT, admin=True))
        with file.lent():
            await program.run("plugins", "install", "--link", str(PLUGIN), "--force", "--accept-capabilities")
            patch = {"plugins": {"entries": {ID: self._entry()}}}
            await program.run("config", "patch", "--stdin", given=json.dumps(patch))
        return (*lines, phrase("oc_takes_up"))

    def _entry(self) -> dict[str, Any]:
        """What stands in `plugins.entries` for us."""
        return {
            "enabled": True,
            "hooks": {"allowConversationAccess": True},
            "config": {
                "url": self.address,
                "socket": self._socket,
                "tokenFile": str(self.token_file),
                "buttons": self.settings.buttons,
                "groupButtons": self.settings.group_buttons,
                "systemPrompt": self.settings.system_prompt,
            },
        }

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Take the plugin out of OpenClaw; its settings are as before, if nobody else changed them.

        Raises FatalConnectorError when it stays in there; our token holds no longer all the same.
        """
        file, program = self._file(), self.program
        if not file.written:
            return ()
        if dry_run:
            return (f"openclaw plugins uninstall {ID}", phrase("oc_put_back", path=str(program.file)))
        lines, gone = list[str](), False
        if program.path:
            with file.lent():
                gone = await self._uninstall(program, lines)
        else:
            lines.append(phrase("oc_no_more"))
        out = gone or file.alone or str(PLUGIN) not in file.read()
        if out:
            lines.append(file.restore(lambda text: text))
        clients.remove(self.home, NAME, CLIENT)
        with contextlib.suppress(FileNotFoundError):
            self.token_file.unlink()
        if not out:
            still = phrase("oc_still", path=str(file.path))
            raise FatalConnectorError(pauses(here(), *lines, still))
        return lines

    async def _uninstall(self, program: Program, lines: list[str]) -> bool:
        """By its own commands: they find our part whatever else has changed in its settings.

        False when they failed; why is among `lines`.
        """
        try:
            await program.run("plugins", "uninstall", ID, "--force")
            await program.run("config", "unset", f"plugins.entries.{ID}")
            lines.append(phrase("oc_uninstalled", name=ID))
        except FatalConnectorError as error:
            lines.append(reworded(error, here()))
            return False
        return True

    async def examine(self) -> Sequence[Check]:
        """Whether the program is there, the plugin linked and let in, and when it was heard of last."""
        program, checks = self.program, list[Check]()
        there = bool(program.path)
        checks.append(
            _check("openclaw program", there, program.path or phrase("oc_no_path"), phrase("oc_no_path_fix"))
        )
        linked = self._told(program.file)
        text = phrase("oc_linked") if linked else phrase("oc_unlinked", path=str(program.file))
        checks.append(_check("openclaw plugin", linked, text, phrase("oc_redo")))
        holds = self._token_holds()
        text = phrase("oc_token" if holds else "oc_no_token")
        checks.append(_check("openclaw token", holds, text, phrase("oc_redo")))
        checks.append(self._heard())
        return checks

    def _heard(self) -> Check:
        """What the plugin in the gateway has sent, and when."""
        loaded, captured = seen.read(self.home / "connectors" / NAME)
        part, now = "openclaw gateway", self.clock.now()
        if not loaded:
            return warn(part, phrase("oc_never"), phrase("oc_never_fix"))
        if not captured:
            return warn(part, phrase("oc_loaded", ago=_ago(now - loaded)), phrase("oc_loaded_fix"))
        return ok(part, phrase("oc_last", ago=_ago(now - captured)))

    def _token_holds(self) -> bool:
        try:
            token = self.token_file.read_text(encoding="utf-8").strip()
            known = clients.Clients(self.home / "connectors" / NAME).who(token)
        except (OSError, ValueError, GoodbotError):
            return False
        return known is not None and known.admin

    def _told(self, file: Path) -> bool:
        """Whether its settings name our plugin, our address and our token's file; comments may be there."""
        try:
            text = file.read_text(encoding="utf-8")
            wanted = (str(PLUGIN), self.address, str(self.token_file), self._socket)
        except (OSError, ValueError, GoodbotError):
            return False
        place = self.home / HTTP_SOCKET
        stale = "" if self.socket else str(short_socket(place) or place)
        if stale and json.dumps(stale, ensure_ascii=False) in text:
            return False
        return all(json.dumps(one, ensure_ascii=False) in text for one in wanted if one)


def _check(part: str, good: bool, text: str, fix: str) -> Check:
    return ok(part, text) if good else fail(part, text, fix)


def _ago(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return phrase(f"ago_{name}", count=f"{seconds // size:.0f}")
    return phrase("ago_now")


def _store(path: Path, token: str) -> None:
    """Readable by its owner alone. Raises FatalConnectorError."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        durable.replace(path, f"{token}\n".encode())
    except OSError as error:
        raise FatalConnectorError(phrase("unwritable", path=str(path), why=error.strerror)) from error
