# SPDX-License-Identifier: Apache-2.0
"""`goodbot init`: asks, writes everything at the end in one go, and starts the bot.

Exit codes: 0 it can work, 1 it is written and something is missing, 2 usage, 130 left: nothing
is written.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from goodbot import config
from goodbot.api import control
from goodbot.api.plugins import PluginHost
from goodbot.api.texts import commas
from goodbot.api.texts.terminal import here, instead, phrase
from goodbot.base.errors import UsageError
from goodbot.base.printing import print_answer, say, say_json
from goodbot.cli.setup.asked import flag_of
from goodbot.cli.setup.dialogue import Dialogue, Left
from goodbot.cli.setup.draft import OWN, Draft, StateFound
from goodbot.cli.setup.flow import walk
from goodbot.cli.setup.manifest import discard_manifest
from goodbot.cli.setup.presets import preset_of
from goodbot.cli.setup.save import save
from goodbot.cli.setup.template import NEW
from goodbot.config.file import ConfigFile
from goodbot.config.secrets import SecretStore

_FLAGS = ("platform", "keep_token", "backend", "install", "model", "preset", "schedule", "owner", "start")
_OF_BOT = ("backend", "model", "preset", "schedule")
"""The flags that say what the bot is, wherever people talk to it."""


def main(arguments: argparse.Namespace) -> int:
    """Set goodbot up, or change how it is set up."""
    return ask(arguments, Draft())


def ask(arguments: argparse.Namespace, draft: Draft) -> int:
    """Ask what `draft` leaves open, write it, start; the exit code."""
    if arguments.browser:
        from goodbot.cli.browser import command

        return command.ask(arguments, draft)
    out = sys.stderr if arguments.json else sys.stdout
    asks = not arguments.yes
    colour = asks and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    dialogue = Dialogue(given(arguments), asks=asks, out=out, colour=colour)
    settled = settle(dialogue, arguments, draft)
    if settled is None:
        return 130
    if arguments.json:
        say_json(settled.result)
    return settled.start(dialogue)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What was set up, and written."""

    place: StateFound
    draft: Draft
    result: dict[str, Any]
    """For `--json`."""

    def start(self, dialogue: Dialogue) -> int:
        """Be the bot, if it is to start here and now; the exit code of the program."""
        from goodbot.cli.setup import ending

        return ending.start(dialogue, self.place, self.draft, self.result)


def settle(dialogue: Dialogue, arguments: argparse.Namespace, draft: Draft) -> Settled | None:
    """Ask by `dialogue` what `draft` leaves open, and write it; None where somebody has left."""
    os.umask(0o077)
    try:
        place = look(arguments)
        _begin(draft, place, arguments)
        if dialogue.asks:
            if dialogue.at_terminal:
                _need_terminal("connect" if draft.platform else "init", dialogue.out)
            dialogue.say(_about(dialogue, draft, place))
            if dialogue.at_terminal:
                dialogue.say(dialogue.phrase("init_keys"))
        try:
            walk(dialogue, place, draft)
            save(place, draft)
        except BaseException:
            discard_manifest(draft)
            raise
    except (Left, KeyboardInterrupt):
        if dialogue.at_terminal:
            dialogue.say(f"\n{dialogue.phrase('setup_left')}")
        return None
    from goodbot.cli.setup import ending  # it needs the store, the first question does not

    return Settled(place=place, draft=draft, result=ending.finish(dialogue, place, draft))


def preview(arguments: argparse.Namespace, draft: Draft) -> int:
    """Say what connecting would change; nothing is asked and nothing changed."""
    from goodbot.cli.setup import program

    place = look(arguments)
    _begin(draft, place, arguments)
    dialogue = Dialogue(given(arguments), asks=False, out=sys.stderr, colour=False)
    lines = list(program.preview(dialogue, place, draft))
    would = [phrase("init_would"), *(f"  {line}" for line in lines)]
    text = "\n".join(would if lines else [phrase("init_same")])
    data = {"dry_run": True, "platform": draft.platform, "would_change": lines}
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0


def _begin(draft: Draft, place: StateFound, arguments: argparse.Namespace) -> None:
    """What the config answers where only a platform is to be set up. Raises UsageError."""
    if not draft.platform:
        return
    loaded = place.plugins.connectors()
    can = loaded.only(lambda spec: bool(spec.setup))
    if draft.platform not in can:
        if spec := loaded.get(draft.platform):
            said = {"title": spec.title, "name": spec.name}
            if not spec.secrets:
                raise UsageError(phrase("init_by_hand", **said))
            tokens = commas(here(), *spec.secrets)
            raise UsageError(phrase("init_by_hand_tokens", **said, tokens=tokens))
        name, known = repr(draft.platform[:40]), instead(draft.platform, can)
        raise UsageError(phrase("init_no_platform", name=name, instead=known))
    now = place.config
    if now.model.path:
        draft.alone, draft.model = True, now.model.path
        draft.backend, draft.schedule = now.training.backend, now.training.schedule
        draft.preset = preset_of(now.training.settings) or OWN
        if given := [f"--{name}" for name in _OF_BOT if getattr(arguments, name) is not None]:
            raise UsageError(phrase("init_already", flags=commas(here(), *given), first=given[0]))


def _need_terminal(word: str, out: TextIO) -> None:
    if not (sys.stdin.isatty() and out.isatty()):
        raise UsageError(phrase("init_no_terminal", word=word))


def _about(dialogue: Dialogue, draft: Draft, place: StateFound) -> str:
    if draft.alone:
        return dialogue.phrase("setup_connects", title=place.connector(draft.platform).title)
    return dialogue.phrase("setup_again" if place.file.exists else "setup_first")


def look(arguments: argparse.Namespace) -> StateFound:
    """The state directory as it is; nothing is made. Raises ConfigError."""
    settings = config.load(arguments.home, arguments.config if _exists(arguments.config) else None)
    plugins = PluginHost()
    plugins.load_entry_points(settings.plugins.enable)
    answer = control.call(arguments.home, "status", [])
    return StateFound(
        config=settings,
        file=ConfigFile(arguments.home, arguments.config, template=NEW),
        plugins=plugins,
        secrets=SecretStore(arguments.home),
        daemon=int(answer["data"]["pid"]) if answer else 0,
    )


def _exists(path: Path | None) -> bool:
    return path is not None and path.exists()


def given(arguments: argparse.Namespace) -> dict[str, str]:
    """The answers that came as flags, by the flag's name."""
    found = {
        f"--{name.replace('_', '-')}": str(value)
        for name in _FLAGS
        if (value := getattr(arguments, name, None)) is not None
    }
    tokens = [arguments.token] if arguments.token else []
    if arguments.token_stdin or arguments.token == "-":  # noqa: S105
        tokens = [line.strip() for line in sys.stdin if line.strip()]
        if not tokens:
            raise UsageError(phrase("init_no_token"))
    elif tokens:
        say(f"goodbot: {phrase('init_token_seen')}", file=sys.stderr)
    found |= {f"--token{n if n > 1 else ''}": token for n, token in enumerate(tokens, 1)}
    for word in arguments.set or ():
        key, equals, value = word.partition("=")
        if not equals:
            raise UsageError(phrase("init_set", word=repr(word[:40])))
        found[flag_of(key)] = value
    return found
