# SPDX-License-Identifier: Apache-2.0
"""Connecting Codex: our hooks in its settings, and what its person has to press so that it runs them."""

from __future__ import annotations

import json
import os
import shutil
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from goodbot.api.setup import Check, ConnectorSetup, Identity, fail, ok, warn
from goodbot.api.texts import commas, reworded, say
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import FatalConnectorError

from goodbot_connectors.codex import config_file, hooks_file, sidecar, trust
from goodbot_connectors.codex.trust import Trust
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.settings_file import SettingsFile

ME = "me"
NAME = "codex"
_HOOKS = "codex hooks"
_TELLS = {
    Trust.NEW: ("cx_new", "cx_press"),
    Trust.MODIFIED: ("cx_modified", "cx_press"),
    Trust.DISABLED: ("cx_disabled", "cx_disabled_fix"),
    Trust.ABSENT: ("cx_absent", "cx_absent_fix"),
}
"""The texts for what is so, and for what to do."""


class CodexSetup(ConnectorSetup):
    """Codex on this machine, whoever uses it here."""

    title = "Codex"
    guide = say("guide_codex")
    pairs = False
    owner: ClassVar[str] = ME

    @property
    def codex_home(self) -> Path:
        """Where Codex keeps its settings: as it was when goodbot was connected, else as it is now."""
        known = sidecar.codex_home(self._folder)
        given = os.environ.get("CODEX_HOME", "")
        return known or (Path(given).expanduser().absolute() if given else Path.home() / ".codex")

    async def identify(self) -> Identity:
        """Whoever uses Codex here. Raises FatalConnectorError where there is no Codex."""
        if not self.codex_home.is_dir() and not _program():
            raise FatalConnectorError(phrase("cx_none"))
        return Identity(account="local", name=f"Codex ({self.codex_home})")

    async def install(self, *, dry_run: bool) -> Sequence[str]:
        """Our programs, our hooks, and ourselves in front of what is notified."""
        lines = [
            self._change(path, edit, what, dry_run=dry_run)
            for path, edit, what in self._edits(await self._in_config())
        ]
        if not dry_run:
            try:
                sidecar.remember_codex(self._folder, self.codex_home)
                sidecar.write_programs(self._folder)
                known = sidecar.token(self._folder)
                if clients.Clients(self._folder).who(known) is None:
                    known = clients.create(self.home, NAME, ME)
                sidecar.connect(self._folder, self.home, self.address, known)
            except OSError as error:
                path = str(error.filename or self._folder)
                raise FatalConnectorError(phrase("unwritable", path=path, why=error.strerror)) from error
        done = [line for line in lines if line]
        return done if dry_run else [*done, _next()]

    async def remove(self, *, dry_run: bool) -> Sequence[str]:
        """Codex' settings as they were before us, then our programs."""
        command, home = sidecar.command(self._folder), self.codex_home
        hooks, config = self._file(home / "hooks.json"), self._file(home / "config.toml")
        trusted = _places(hooks, lambda text: hooks_file.places(text, command))
        inside = _places(config, lambda text: hooks_file.places(text, command, toml=True))
        notify = str(self._folder / sidecar.NOTIFY)

        def without(text: str) -> str:
            text = hooks_file.out_of_toml(text, command)
            text = config_file.without_trust(text, hooks.path, trusted)
            text = config_file.without_trust(text, config.path, inside)
            return config_file.without_notify(text, notify)

        if dry_run:
            changed = [one.path for one in (hooks, config) if one.written]
            return [phrase("cx_lines", path=str(path)) for path in changed]
        lines: list[str] = []
        if hooks.written:
            lines.append(hooks.restore(lambda text: hooks_file.out_of_json(text, command)))
        if config.written:
            lines.append(config.restore(without))
        try:
            sidecar.remove(self._folder)
        except OSError as error:
            why = phrase("cx_unremovable", path=str(error.filename), why=error.strerror)
            raise FatalConnectorError(why) from error
        clients.remove(self.home, NAME, ME)
        return [*lines, phrase("cx_still")] if lines else []

    async def examine(self) -> Sequence[Check]:
        """Whether our lines are in Codex' settings, and whether Codex runs them."""
        command, home = sidecar.command(self._folder), self.codex_home
        again = "`goodbot connect codex`"
        if clients.Clients(self._folder).who(sidecar.token(self._folder)) is None:
            return [fail(_HOOKS, phrase("cx_no_programs"), again)]
        ours = [
            *hooks_file.places(self._file(home / "hooks.json").read(), command),
            *hooks_file.places(self._file(home / "config.toml").read(), command, toml=True),
        ]
        if len(ours) < len(hooks_file.EVENTS):
            return [fail(_HOOKS, phrase("cx_no_hooks", place=str(home)), again)]
        program = _program()
        if not program:
            return [warn(_HOOKS, phrase("cx_no_path"), phrase("cx_press"))]
        try:
            asked = await trust.ask(program, home, command)
        except FatalConnectorError as error:
            return [warn(_HOOKS, reworded(error, here()), phrase("cx_press"))]
        found = [_tell(asked)]
        if asked.warnings:
            text = phrase("cx_says", said="; ".join(asked.warnings)[:300])
            found.append(warn(_HOOKS, text, phrase("cx_look", path=str(home / "hooks.json"))))
        return found

    @property
    def _folder(self) -> Path:
        return self.home.absolute() / "connectors" / NAME

    def _file(self, path: Path) -> SettingsFile:
        check = json.loads if path.suffix == ".json" else tomllib.loads
        return SettingsFile(path, self.home.absolute(), NAME, check=check)

    async def _in_config(self) -> bool:
        """Whether our hooks go to config.toml: where there are others, and none in hooks.json."""
        there = self._file(self.codex_home / "hooks.json").read()
        return not there.strip() and hooks_file.inline(self._file(self.codex_home / "config.toml").read())

    def _edits(self, in_config: bool) -> list[tuple[Path, Callable[[str], str], str]]:
        command, notify = sidecar.command(self._folder), str(self._folder / sidecar.NOTIFY)
        hooks, config = self.codex_home / "hooks.json", self.codex_home / "config.toml"

        def configured(text: str) -> str:
            if in_config:
                text = hooks_file.in_toml(text, command)
            return config_file.with_notify(text, notify)

        told = phrase("cx_notified_too" if in_config else "cx_notified")
        edits = [(config, configured, told)]
        if not in_config:
            hooked: Callable[[str], str] = lambda text: hooks_file.in_json(text, command)  # noqa: E731
            edits.insert(0, (hooks, hooked, phrase("cx_hooks", events=commas(here(), *hooks_file.EVENTS))))
        return edits

    def _change(self, path: Path, edit: Callable[[str], str], what: str, *, dry_run: bool) -> str:
        """One line of what was changed; empty if nothing had to be."""
        file = self._file(path)
        text = file.read()
        changed = edit(text)
        if changed == text:
            return ""
        if not dry_run:
            file.write(changed)
        return f"{path}: {what}"


def _places(file: SettingsFile, find: Callable[[str], list[str]]) -> list[str]:
    return find(file.read()) if file.written else []


def _tell(asked: trust.HookTrust) -> Check:
    """The worst of what Codex says of our hooks."""
    for state, (text, fix) in _TELLS.items():
        if state in asked.hooks.values():
            return warn(_HOOKS, phrase(text), phrase(fix))
    return ok(_HOOKS, phrase("cx_trusts"))


def _next() -> str:
    """What its person does then: a sentence, and lines that are printed as they are."""
    return phrase("cx_next").replace("\n", "\n  ")


def _program() -> str:
    return shutil.which("codex") or ""
