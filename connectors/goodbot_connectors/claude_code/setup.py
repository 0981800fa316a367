# SPDX-License-Identifier: Apache-2.0
"""Setting Claude Code up: its `settings.json`, its `/rl`, our token; and taking all that away again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from goodbot.api.setup import Check, ConnectorSetup, Identity, Manifest
from goodbot.api.texts import commas, say
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import durable, sealed
from goodbot.base.errors import FatalConnectorError

from goodbot_connectors.claude_code import examining, plugin_files, script, settings_file, sidecar
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.settings_file import SettingsFile

CONNECTOR = "claude_code"
OWNER = "me"
_SEALED = "claude_code directory"
_NOTE = "directory"
"""Which directory of Claude Code's we have changed: the environment may name another one later."""


class ClaudeCodeSetup(ConnectorSetup):
    """Claude Code on this machine."""

    title = "Claude Code"
    guide = say("guide_claude_code")
    pairs = False
    owner: ClassVar[str] = OWNER
    settings: ClaudeCodeSettings

    @property
    def _here(self) -> Path:
        return self.home / "connectors" / CONNECTOR

    @property
    def directory(self) -> Path:
        """Claude Code's own directory, as the settings or the environment name it."""
        named = self.settings.config_dir or os.environ.get("CLAUDE_CONFIG_DIR", "")
        return Path(named).expanduser() if named else Path.home() / ".claude"

    def files(self, directory: Path) -> tuple[SettingsFile, SettingsFile]:
        """Settings and command there."""
        home = self.home
        return (
            SettingsFile(directory / "settings.json", home, CONNECTOR, check=settings_file.ours),
            SettingsFile(directory / "commands" / "rl.md", home, CONNECTOR),
        )

    async def identify(self) -> Identity:
        """Whoever uses this machine."""
        if not self.directory.exists() and shutil.which("claude") is None:
            raise FatalConnectorError(phrase("cc_none", directory=str(self.directory)))
        return Identity(account="local", name=f"Claude Code ({self.directory})")

    def manifest(self) -> Manifest | None:
        """The same as a plugin, for who wants to hand it on."""
        return plugin_files.manifest(self.address)

    async def examine(self) -> Sequence[Check]:
        """Whether the hooks are there, may run, and reach a daemon that knows their token."""
        directory = self._changed() or self.directory
        return [
            *examining.settings(directory, self._handlers()),
            *examining.restrictions(directory, http=self._by_http),
            *await examining.daemon(
                self.address, self._token(), None if self._by_http else sidecar.socket(self._here)
            ),
        ]

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        """Token, script, hooks and command; a second time changes nothing."""
        settings, command = self.files(self.directory)
        text = settings.read()
        lines: list[str] = []
        if settings_file.ours(text) != self._handlers():
            events = commas(here(), *settings_file.EVENTS)
            lines.append(phrase("cc_hooks", path=str(settings.path), events=events))
        if command.read() != plugin_files.COMMAND:
            lines.append(phrase("cc_command", path=str(command.path)))
        if dry_run:
            return lines
        if (old := self._changed()) and old != self.directory:
            lines += self._restored(old)
        self._prepare()
        settings.write(settings_file.with_ours(text, self._handlers()))
        command.write(plugin_files.COMMAND)
        if self._by_http and os.path.realpath(settings.path) != str(settings.path.absolute()):
            lines.append(phrase("cc_leads", path=str(settings.path)))
        return lines

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Leave Claude Code as it was."""
        directory = self._changed() or self.directory
        settings, command = self.files(directory)
        text = settings.read()
        there = [settings.path] if settings.written or settings_file.ours(text) else []
        if command.written:
            there.append(command.path)
        token = any(one.name == OWNER for one in clients.listed(self.home, CONNECTOR))
        if dry_run:
            return [phrase("cc_part", path=str(path)) for path in there] + [phrase("own_token")] * token
        lines = self._restored(directory) if there else []
        for name in (script.NAME, script.HEADER, script.QUIET, _NOTE):
            (self._here / name).unlink(missing_ok=True)
        sidecar.forgive_all(self._here)
        if clients.remove(self.home, CONNECTOR, OWNER):
            lines.append(phrase("own_token"))
        return lines

    def _restored(self, directory: Path) -> list[str]:
        settings, command = self.files(directory)
        # Last what came first: the directories that were made for it go with it.
        lines = [command.restore(lambda text: text)] if command.written else []
        return [*lines, settings.restore(settings_file.without_ours)]

    @property
    def _by_http(self) -> bool:
        return self.settings.hooks == "http" or not script.possible()

    def _handlers(self) -> dict[str, settings_file.Handler]:
        if self._by_http:
            url = self.address + settings_file.PATH
            return {
                event: settings_file.http_hook(url, self._token(), event) for event in settings_file.EVENTS
            }
        run = script.command(self._here)
        return {event: settings_file.script_hook(run, event) for event in settings_file.EVENTS}

    def _prepare(self) -> None:
        """What is ours: the token, the script, and where they are used. Raises FatalConnectorError."""
        try:
            self._here.mkdir(mode=0o700, parents=True, exist_ok=True)
            known = clients.Clients(self._here).who(self._token())
            if known is None or known.name != OWNER:
                token = clients.create(self.home, CONNECTOR, OWNER)
                durable.replace(self._here / script.HEADER, f"Authorization: Bearer {token}\n".encode())
            sidecar.write(self._here, self.address, sidecar.socket(self._here))
            where = sealed.note(self.home, _SEALED, str(self.directory))
            durable.replace(self._here / _NOTE, where.encode())
        except OSError as error:
            why = phrase("unwritable", path=str(self._here), why=str(error))
            raise FatalConnectorError(why) from error

    def _token(self) -> str:
        """Ours; empty before the first install."""
        try:
            return (self._here / script.HEADER).read_text().rpartition(" ")[2].strip()
        except OSError:
            return ""

    def _changed(self) -> Path | None:
        """The directory that an earlier install has changed."""
        try:
            found = sealed.told(self.home, _SEALED, (self._here / _NOTE).read_text())
        except (OSError, ValueError):
            return None
        return Path(found) if found else None
