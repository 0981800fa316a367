"""Which words the program knows. Commands of plugins are asked for only when they are needed."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_CALL = "goodbot.cli.client:main"


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The arguments of one call. Exits with 2 and the usage for words that are off."""
    parser, commands = _parser()
    words = [word for word in argv if not word.startswith("-")]
    known = any(word in commands.choices for word in words)
    if not known or {"-h", "--help"} & set(argv):
        _add_plugin_commands(commands)
    arguments = parser.parse_args(argv)
    arguments.home = (arguments.home or _default_home()).expanduser().absolute()
    return arguments


def _default_home() -> Path:
    from goodbot.config import default_home

    return default_home()


def _parser() -> tuple[argparse.ArgumentParser, argparse._SubParsersAction[Any]]:
    from goodbot import __version__

    parser = argparse.ArgumentParser(
        prog="goodbot", description="Good bot. Bad bot. It learns.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"goodbot {__version__}")
    parser.add_argument("--home", type=Path, help="the state directory (default: $GOODBOT_HOME or ~/.goodbot)")
    parser.add_argument("--config", type=Path, help="the config file (default: config.toml in the state directory)")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")

    run = commands.add_parser("run", help="be the bot: connect, answer, learn")
    run.add_argument("--demo-model", action="store_true", help="answer with the tiny demonstration model")
    run.set_defaults(run="goodbot.cli.run:main")

    check = commands.add_parser("check", help="look whether everything is in place; starts nothing")
    check.add_argument("--demo-model", action="store_true", help=argparse.SUPPRESS)
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(run="goodbot.cli.check:main")

    _call(commands, "status", "what answers, and how far the next training is")
    for name, text in (
        ("good", "the last answer in the terminal's chat, or ANSWER, was good"),
        ("bad", "it was bad"),
        ("undo", "take your rating back"),
    ):
        _call(commands, name, text).add_argument("args", nargs="*", metavar="ANSWER", help="an id from `goodbot history`")
    _call(commands, "history", "the last answers and their ratings").add_argument("args", nargs="*", metavar="COUNT")
    train = _call(commands, "train", "train now on all ratings that are not used yet")
    train.add_argument("--no-wait", action="store_true", help="return at once; `status` shows how far it is")
    _call(commands, "pause", "stop training until `resume`")
    _call(commands, "resume", "undo `pause` and `off`")
    _call(commands, "off", "the base model answers and nothing is trained, until `resume`")
    _call(commands, "rollback", "back to the version before, to VERSION, or to `base`").add_argument(
        "args", nargs="*", metavar="VERSION"
    )
    _call(commands, "adapters", "all versions and where they come from")
    _call(commands, "plugins", "what is plugged in")
    return parser, commands


def _call(commands: argparse._SubParsersAction[Any], name: str, text: str) -> argparse.ArgumentParser:
    """A command that the daemon runs."""
    parser = commands.add_parser(name, help=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_CALL, command=name, args=[])
    return parser


def _add_plugin_commands(commands: argparse._SubParsersAction[Any]) -> None:
    from goodbot.plugins import PluginHost

    plugins = PluginHost()
    plugins.load_entry_points()
    plugins.add_commands(commands)
