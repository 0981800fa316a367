"""The words of the `goodbot` program, and which module does what each says.

`_call` adds a command that the daemon runs (or this process, while none runs): its words go to
the table in `goodbot.commands` as they stand. `_own` adds one that a module of this package runs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

Commands = argparse._SubParsersAction  # noqa: SLF001  it has no public name
Parser = argparse.ArgumentParser

_CALL = "goodbot.cli.client:main"
_PACKAGES = ("backup", "doctor", "plugin", "service", "uninstall")
"""Commands that are more than a module."""
_FORMATS = ("peft", "mlx", "gguf", "gguf-model", "fused")


def add(commands: Commands[Any]) -> None:
    """All commands, in the order in which `--help` shows them."""
    _setting_up(commands)
    _rating(commands)
    _learning(commands)
    _people(commands)
    _keeping(commands)


def _setting_up(commands: Commands[Any]) -> None:
    init = _own(commands, "init", "set goodbot up, or change how it is set up")
    init.add_argument(
        "--platform", metavar="NAME", help="where people talk to it: telegram, slack, … or terminal"
    )
    connect = _own(commands, "connect", "set up one platform: telegram, discord, slack, teams, web, …")
    connect.add_argument("name", metavar="NAME", help="one of these, or a plugin's name for its own")
    connect.add_argument(
        "--dry-run", action="store_true", help="say what it would change, and change nothing"
    )
    connect.set_defaults(platform=None)
    for parser in (init, connect):
        _answers(parser)
    manifest = _own(commands, "manifest", "the file from which a platform makes the bot's account")
    manifest.add_argument("name", metavar="NAME", help="which platform: slack, discord, teams, …")
    manifest.add_argument("--out", type=Path, metavar="FILE", help="write it there; Teams takes a zip file")
    disconnect = _own(commands, "disconnect", "leave a platform; what was learnt there stays")
    disconnect.add_argument("name", metavar="NAME", help="which")
    disconnect.add_argument("--yes", action="store_true", help="do not ask")

    model = _own(commands, "model", "what answers: list what is here, choose, or switch")
    model.add_argument("action", nargs="?", choices=("list", "use", "switch"), default="list")
    model.add_argument("name", nargs="?", help="`auto`, a name in the hub, a directory, a server")
    model.add_argument("--yes", action="store_true", help="download and change without asking")
    model.add_argument(
        "--anyway", action="store_true", help="switch also if it cannot be taught your ratings"
    )

    run = _own(commands, "run", "be the bot: connect, answer, learn", json=False)
    run.add_argument("--demo-model", action="store_true", help="answer with the tiny demonstration model")
    run.add_argument(
        "--insecure-local",
        action="store_true",
        help="believe whoever calls as Teams from this machine: for Microsoft's playground",
    )

    doctor = _own(commands, "doctor", "look at every part, and say what to do; changes nothing")
    doctor.add_argument("topic", nargs="?", choices=("serving",), help="only this part, in detail")
    doctor.add_argument("--security", action="store_true", help="who may talk, rate, administer")
    doctor.add_argument("--demo-model", action="store_true", help=argparse.SUPPRESS)

    _call(commands, "status", "what answers, and how far the next training is")


def _answers(parser: Parser) -> None:
    """Each question of the set-up as a flag."""
    for flag, value, text in (
        ("--token", "TOKEN", "the platform's one token, `-`: from standard input; others can see a flag"),
        ("--keep-token", "WHERE", "keyring, file (readable by you alone) or environment (nowhere)"),
        ("--backend", "NAME", "what computes: auto, mlx or torch"),
        ("--install", "YES", "yes or no: packages that are missing, also those above 500 MB"),
        ("--model", "MODEL", "what answers: auto, a name in the hub, a directory, a server, demo"),
        ("--preset", "NAME", "how boldly it learns: careful, balanced or aggressive"),
        ("--schedule", "WHEN", "when it learns: auto, a time such as 03:30, or manual"),
        ("--owner", "ID", "the owner's user id on the platform, instead of pairing with a code"),
        ("--start", "HOW", "now (here), service (in the background) or no"),
    ):
        parser.add_argument(flag, metavar=value, help=text)
    parser.add_argument(
        "--set",
        action="append",
        metavar="KEY=VALUE",
        help="a setting that the platform asks for: Teams has app_id and tenant",
    )
    parser.add_argument(
        "--token-stdin", action="store_true", help="tokens come on standard input, a line each; Slack has two"
    )
    parser.add_argument("--yes", action="store_true", help="ask nothing; take the flags and defaults")


def _rating(commands: Commands[Any]) -> None:
    for name, text in (
        ("good", "the last answer in the terminal's chat, or ANSWER, was good"),
        ("bad", "it was bad"),
        ("undo", "take your rating back"),
    ):
        _call(commands, name, text, "ANSWER", "an id from `goodbot history`")
    stars = _call(commands, "stars", "how good it was, 1 to 5, beside good or bad")
    stars.add_argument("words", nargs="+", metavar="COUNT [ANSWER]", help="0 takes the stars back")
    stars.usage = "%(prog)s [-h] [--json] COUNT [ANSWER]"
    for name, text in (
        ("reason", "what was wrong with the last answer in the terminal's chat, or with ANSWER"),
        ("better", "what it should have been"),
    ):
        said = _call(commands, name, text)
        said.add_argument("words", nargs="+", metavar="[ANSWER] TEXT", help="as in `history`")
        said.usage = "%(prog)s [-h] [--json] [ANSWER] TEXT"
    _call(commands, "history", "the last answers and their ratings", "COUNT", "how many (10)")
    _call(commands, "why", "what the version that answers was trained on, and what it changed")
    compare = _own(commands, "compare", "which of two versions is better: asked blind, or side by side")
    compare.add_argument(
        "words",
        nargs="*",
        metavar="a | b | same | skip | VERSION VERSION PROMPT",
        help="nothing: the open question; v6 v7 (or base) and a prompt: both answers",
    )


def _learning(commands: Commands[Any]) -> None:
    train = _call(commands, "train", "train now on all ratings that are not used yet")
    train.add_argument("--no-wait", action="store_true", help="return at once; `status` shows how far it is")
    train.add_argument(
        "--dry-run", action="store_true", help="say what it would do and cost; changes nothing"
    )
    _call(commands, "pause", "stop training until `resume`")
    _call(commands, "resume", "undo `pause` and `off`")
    _call(commands, "cancel", "drop the training under way; its ratings are free again")
    _call(commands, "release", "let answers train again that trainings have left out")
    _call(commands, "off", "the base model answers and nothing is trained, until `resume`")
    rollback = _call(commands, "rollback", "back to the version before, to VERSION, or to `base`")
    rollback.add_argument(
        "words", nargs="*", metavar="VERSION | base | since DATE", help="a version from `goodbot adapters`"
    )
    rollback.add_argument(
        "--since", metavar="DATE", help="also leave out all ratings since then (2026-11-21)"
    )
    reset = _call(commands, "reset", "begin anew: the base model, and none of the ratings so far")
    reset.add_argument("--yes", action="store_true", help="do not ask")
    _adapters(commands)


def _adapters(commands: Commands[Any]) -> None:
    adapters = _call(commands, "adapters", "all versions and where they come from; pin, compare, export")
    actions = adapters.add_subparsers(metavar="ACTION", title="actions")
    for name, text, words in (
        ("list", "the tree of versions, how each was rated, which one answers", 0),
        ("show", "all of one version", "?"),
        ("diff", "what ratings came between two, and how far apart they are", 2),
        ("pin", "keep its files; if it answers, nothing new goes live until `unpin`", "?"),
        ("unpin", "let go of it; the newest version that waits goes live", "?"),
    ):
        action = _call(actions, name, text)
        action.set_defaults(command="adapters", first=(name,))
        if words:
            action.add_argument(
                "word" if words == "?" else "words",
                nargs=words,
                metavar="VERSION",
                help="a number from `goodbot adapters`",
            )
    back = _call(actions, "rollback", "as `goodbot rollback`: to a version, or to `base`")
    back.add_argument("words", nargs="*", metavar="VERSION | base")
    taken = _own(actions, "import", "make somebody's adapter a version of yours; it does not answer yet")
    taken.add_argument("path", type=Path, help="a PEFT or MLX directory, or an exported .tar")
    taken.add_argument("--activate", action="store_true", help="let it answer, if it can")
    taken.set_defaults(run="goodbot.cli.adapters:bring_in")
    export = _own(actions, "export", "write a version for another program")
    export.add_argument("version", metavar="VERSION", help="a number, or `base`")
    export.add_argument("--format", default="peft", choices=_FORMATS, help="peft, if not said")
    export.add_argument(
        "--fused",
        dest="format",
        action="store_const",
        const="fused",
        default=argparse.SUPPRESS,
        help="--format fused",
    )
    export.add_argument(
        "--out", type=Path, required=True, metavar="PATH", help="what is there is never replaced"
    )
    export.set_defaults(run="goodbot.cli.adapters:export")


def _people(commands: Commands[Any]) -> None:
    _call(commands, "pair", "a one-time code that makes its sender an owner", "CONNECTOR", "which")
    people = _call(commands, "people", "who may talk, rate and administer")
    people.add_argument("words", nargs="*", metavar="grant ROLE PERSON | revoke|link|unlink PERSON")
    channels = _call(commands, "channels", "where the bot is on; switch it on and off")
    channels.add_argument("words", nargs="*", metavar="list | enable CHANNEL | disable CHANNEL")
    forget = _call(commands, "forget", "delete all of a person's words and what was learnt from them")
    forget.add_argument("words", nargs=1, metavar="PERSON", help="connector:id, see `people`")
    forget.add_argument("--yes", action="store_true", help="do not ask")
    _call(commands, "link", "your accounts are one person with one vote", "CODE", "of the other")
    _call(commands, "unlink", "the terminal's account is on its own again")
    web = _own(commands, "web", "a link that logs you in to the browser, once")
    web.add_argument("--user", metavar="NAME", help="whom: by default the owner")
    web.add_argument("--sign-out", action="store_true", help="sign everybody out there")


def _keeping(commands: Commands[Any]) -> None:
    service = _own(commands, "service", "run in the background, also after a restart")
    service.add_argument("action", choices=("install", "status", "uninstall"))
    service.add_argument("--dry-run", action="store_true", help="only show what would be done")
    backup = _own(commands, "backup", "a verified copy without tokens, sessions and base models")
    backup.add_argument("path", nargs="?", type=Path, help="the file to write")
    restore = _own(commands, "restore", "bring a backup back")
    restore.add_argument("path", type=Path)
    restore.add_argument("--yes", action="store_true", help="do not ask")
    restore.add_argument(
        "--accept",
        action="append",
        default=[],
        choices=("owners", "rights", "addresses", "programs"),
        help="agree to what the backup gives: instead of typing that word",
    )
    upgrade = _own(commands, "upgrade", "whether a newer goodbot can be installed")
    upgrade.add_argument("--check", action="store_true", help="look, change nothing")
    upgrade.add_argument("--back", action="store_true", help="make the data fit the release before this one")
    upgrade.add_argument("--yes", action="store_true", help="go back without asking")
    completion = _own(commands, "completion", "completion for your shell", json=False)
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    uninstall = _own(commands, "uninstall", "remove all that goodbot has put on this machine")
    uninstall.add_argument("--keep-data", action="store_true", help="leave the state directory")
    uninstall.add_argument("--dry-run", action="store_true", help="only list it")
    uninstall.add_argument("--yes", action="store_true", help="do not ask")
    _call(commands, "export", "the rated answers, reasons and better answers as a file")
    _call(commands, "plugins", "what is plugged in")
    plugin = _own(commands, "plugin", "write a plugin of your own, to begin with")
    plugin.add_argument("action", choices=("new",))
    plugin.add_argument("name", metavar="NAME", help="small letters, digits and _")
    plugin.add_argument(
        "--kind",
        choices=("connector", "server", "reward", "objective", "tracker"),
        default="connector",
        help="what it adds; a connector, if not said",
    )
    plugin.add_argument("--out", type=Path, metavar="DIR", help="where: goodbot-NAME, if not said")


def _own(commands: Commands[Any], name: str, text: str, *, json: bool = True) -> Parser:
    """A command that `goodbot.cli.NAME:main` runs, or `command` in the package of that name."""
    parser: Parser = commands.add_parser(name, help=text, description=text)
    if json:
        parser.add_argument("--json", action="store_true", help="print one JSON object")
    module = f"{name}.command" if name in _PACKAGES else name
    parser.set_defaults(run=f"goodbot.cli.{module}:main")
    return parser


def _call(commands: Commands[Any], name: str, text: str, argument: str = "", about: str = "") -> Parser:
    """A command of the table in `goodbot.commands`, with at most one optional word."""
    parser: Parser = commands.add_parser(name, help=text, description=text)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    if argument:
        parser.add_argument("word", nargs="?", metavar=argument, help=about)
    parser.set_defaults(run=_CALL, command=name, word=None, words=(), since=None, first=())
    return parser
