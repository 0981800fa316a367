# SPDX-License-Identifier: Apache-2.0
"""Reads the command line. Commands of plugins are asked for only when they are needed."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

from goodbot.api.texts.terminal import phrase, rephrased
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.printing import say
from goodbot.cli import help, words
from goodbot.cli.words import Commands

_MOTTO = "Good bot. Bad bot. It learns."
_ALONE = "goodbot.cli.alone:main"
"""What is done where no command is named."""
_GLOBAL_VALUES = ("--home", "--config")
_BROWSER = "--browser"
"""The option of `goodbot` without a command, and of those that ask."""
_ASKING = ("init", "connect")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence; `main` prints it like every other error."""

    _mixing = False

    def format_help(self) -> str:
        """What it means, in the language of whoever asks."""
        help.put_in_words(self)  # not before: argparse itself cuts "usage: " off what `format_usage` gives
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """By the printer: plugins describe commands, too."""
        say(self.format_help(), file=file, end="")

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Options may stand anywhere: between the words of a command, too (`use --yes DIR`)."""
        has_more = any(isinstance(action, Commands) for action in self._actions)
        odd = any(action.nargs in (argparse.REMAINDER, argparse.PARSER) for action in self._actions)
        if self._mixing or has_more or odd or args is None or "--" in args:
            return super().parse_known_args(args, namespace)
        self._mixing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._mixing = False

    def error(self, message: str) -> NoReturn:
        raise UsageError(phrase("help_more_of", what=message, command=self.prog))


class _Program(_Parser):
    """`goodbot` itself, whose help lists its commands by what they are for."""

    commands: Commands[_Parser]

    def format_help(self) -> str:
        """What a newcomer needs first, then the rest."""
        [options] = [one for one in self._action_groups if one.title == "options"]
        help.put_in_words(self)
        formatter = self._get_formatter()
        formatter.start_section(options.title)
        formatter.add_arguments(options._group_actions)  # noqa: SLF001  it has no public name
        formatter.end_section()
        parts = (
            self.format_usage(),
            f"{rephrased(_MOTTO)}\n",
            f"{help.overview(self.commands)}\n",
            formatter.format_help(),
        )
        return "\n".join(parts)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of one call. Raises UsageError for words that are off.

    Exits with 0 after `--help` and `--version`, as argparse does.
    """
    word = _command(argv)
    if word == "help":
        argv = list(argv)
        argv.remove("help")
        word = _command(argv)
        if word in help.TOPICS:
            _explain(word, argv)
        argv.append("--help")
    parser, commands = _parser(word)
    if (word is None and "--version" not in argv) or (word and word not in commands.choices):
        _add_plugin_commands(commands, argv)
    if word and word not in commands.choices:
        raise UsageError(_unknown(word, list(commands.choices)))
    commands.required = word is not None
    parser.set_defaults(run=_ALONE)
    _take_globals_anywhere(commands)
    arguments, extra = parser.parse_known_args(argv)
    if extra:
        raise UsageError(_too_many(word, extra))
    arguments.browser = _in_browser(word, arguments, argv)
    arguments.home = _home(arguments.home)
    return arguments


def _in_browser(word: str | None, arguments: argparse.Namespace, argv: Sequence[str]) -> bool:
    """Whether the setup is to be a page; wherever the option stands. Raises UsageError."""
    asks = word is None or word in _ASKING
    if arguments.browser and not asks:
        raise UsageError(phrase("parse_browser", first=_ASKING[0], other=_ASKING[1]))
    return arguments.browser or (asks and _BROWSER in argv)


def _explain(topic: str, argv: Sequence[str]) -> NoReturn:
    _, commands = _parser()
    _add_plugin_commands(commands, argv)
    say(help.explained(topic, commands))
    raise SystemExit(0)


def whole(home: Path, config: Path | None) -> argparse.ArgumentParser:
    """The parser with every command that is there for this state directory, for completion."""
    parser, commands = _parser()
    where = ["--home", str(home), *(("--config", str(config)) if config else ())]
    _add_plugin_commands(commands, where)
    return parser


def _command(argv: Sequence[str]) -> str | None:
    """The word that names the command: the first that is no option and no option's value."""
    words = iter(argv)
    for word in words:
        if word in _GLOBAL_VALUES:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return None


def _unknown(word: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, [*known, "--version", "--help"], n=1, cutoff=0.6)
    if near:
        return phrase("parse_near", word=repr(word[:40]), near=near[0])
    return phrase("parse_unknown", word=repr(word[:40]))


def _too_many(word: str | None, extra: Sequence[str]) -> str:
    """What to say of words that the command does not take."""
    platform = extra[0][:40]
    if word == "init" and not platform.startswith("-"):
        return phrase("parse_platform", platform=platform)
    command = f"goodbot {word}" if word else "goodbot"
    return phrase("parse_too_many", words=" ".join(extra), command=command)


def _home(wanted: Path | None) -> Path:
    """The state directory, which need not exist yet. Raises UsageError."""
    if wanted == Path():  # of `--home ""`, an unset variable in somebody's script
        raise UsageError(phrase("home_empty"))
    try:
        chosen = wanted or Path(os.environ.get("GOODBOT_HOME") or Path.home() / ".goodbot")
        home = chosen.expanduser().absolute()
    except RuntimeError as error:  # no such user, or no HOME
        if wanted or os.environ.get("GOODBOT_HOME"):
            raise UsageError(str(error)) from error
        raise UsageError(phrase("home_none")) from error
    from goodbot.config.lock import finish_restore

    finish_restore(home)
    if home.exists() and not home.is_dir():
        raise UsageError(phrase("home_no_directory", home=home))
    return home


def _parser(word: str | None = None) -> tuple[_Parser, Commands[_Parser]]:
    """With only one command where `word` is the table's: each costs a while."""
    from goodbot import __version__

    parser = _Program(prog="goodbot", description=_MOTTO, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"goodbot {__version__}")
    _add_globals(parser)
    parser.add_argument(_BROWSER, action="store_true", help="set goodbot up in a browser, or open its pages")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands", parser_class=_Parser)
    words.add(commands, word)
    parser.commands = commands
    return parser, commands


def _add_globals(parser: argparse.ArgumentParser, default: Any = None, *, hide: bool = False) -> None:
    texts = {
        "--home": "the state directory (default: $GOODBOT_HOME or ~/.goodbot)",
        "--config": "the config file (default: config.toml in the state directory)",
    }
    for name, text in texts.items():
        parser.add_argument(name, type=Path, default=default, help=argparse.SUPPRESS if hide else text)


def _take_globals_anywhere(commands: Commands[_Parser]) -> None:
    """`goodbot status --home X` means the same as `goodbot --home X status`."""
    for parser in set(commands.choices.values()):
        for action in parser._actions:  # noqa: SLF001  it has no public name
            if isinstance(action, Commands):
                _take_globals_anywhere(cast("Commands[_Parser]", action))
        try:
            _add_globals(parser, argparse.SUPPRESS, hide=True)
        except argparse.ArgumentError:
            continue  # a plugin's command has an option of that name itself


def _add_plugin_commands(commands: Commands[_Parser], argv: Sequence[str]) -> None:
    """Ask the plugins that this state directory's config enables."""
    from goodbot import config
    from goodbot.api.plugins import PluginHost

    where = _Parser(add_help=False, allow_abbrev=False)
    _add_globals(where)
    plugins = PluginHost()
    # A broken config must not take `--help` away; the command that needs it says what is wrong.
    with contextlib.suppress(GoodbotError):
        known, _ = where.parse_known_args(argv)
        plugins.load_entry_points(config.load(_home(known.home), known.config).plugins.enable)
    if not plugins.infos():
        plugins.load_entry_points()
    plugins.add_commands(commands)
