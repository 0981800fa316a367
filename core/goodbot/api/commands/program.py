# SPDX-License-Identifier: Apache-2.0
"""What only the program in a terminal does: set up, look after, remove."""

from __future__ import annotations

from goodbot.api.commands.entry import TERMINAL, Arg, Command, Group, option


def _own(
    name: str, summary: str, *arguments: Arg, group: Group = "start", module: str = "", json: bool = True
) -> Command:
    return Command(
        name,
        summary,
        arguments=arguments,
        where=TERMINAL,
        program=f"{module or name}:main",
        json=json,
        group=group,
        first=TERMINAL if name in ("init", "run", "doctor") else (),
    )


_YES = option("--yes", "do not ask")
_ANSWERS = (
    option("--token", "the platform's one token, `-`: from standard input; others can see a flag", "TOKEN"),
    option("--keep-token", "keyring, file (readable by you alone) or environment (nowhere)", "WHERE"),
    option("--backend", "what computes: auto, mlx or torch", "NAME"),
    option("--install", "yes or no: packages that are missing, also those above 500 MB", "YES"),
    option("--model", "what answers: auto, a name in the hub, a directory, a server, demo", "MODEL"),
    option("--preset", "how boldly it learns: careful, balanced or aggressive", "NAME"),
    option("--schedule", "when it learns: auto, a time such as 03:30, or manual", "WHEN"),
    option("--owner", "the owner's user id on the platform, instead of pairing with a code", "ID"),
    option("--start", "now (here), service (in the background) or no", "HOW"),
    option(
        "--set", "a setting that the platform asks for: Teams has app_id and tenant", "KEY=VALUE", many=True
    ),
    option("--token-stdin", "tokens come on standard input, a line each; Slack has two"),
    option("--yes", "ask nothing; take the flags and defaults"),
    option("--browser", "ask on a page in your browser"),
)
"""Each question of the set-up as a flag."""

SETTING_UP = (
    _own(
        "init",
        "set goodbot up, or change how it is set up",
        option("--platform", "where people talk to it: telegram, slack, … or terminal", "NAME"),
        *_ANSWERS,
    ),
    _own(
        "connect",
        "set up one platform: telegram, discord, slack, teams, web, …",
        Arg("name", "one of these, or a plugin's name for its own", "NAME"),
        option("--dry-run", "say what it would change, and change nothing"),
        *_ANSWERS,
    ),
    _own(
        "manifest",
        "print the set-up file for Slack, Discord or Teams",
        Arg("name", "which platform: slack, discord, teams, …", "NAME"),
        option("--out", "write it there; Teams takes a zip file", "FILE", path=True),
    ),
    _own("disconnect", "leave a platform; what was learnt there stays", Arg("name", "which", "NAME"), _YES),
    _own(
        "model",
        "what answers: list what is here, choose, or switch",
        Arg("action", required=False, choices=("list", "use", "switch"), default="list"),
        Arg("name", "`auto`, a name in the hub, a directory, a server", required=False),
        option("--yes", "download and change without asking"),
        option("--anyway", "switch also if it cannot be taught your ratings"),
    ),
    _own(
        "run",
        "start the bot: it connects, answers and learns",
        option("--demo-model", "answer with the tiny demonstration model"),
        option(
            "--insecure-local", "believe whoever calls as Teams from this machine: for Microsoft's playground"
        ),
        json=False,
    ),
    _own(
        "doctor",
        "look at every part, and say what to do; changes nothing",
        Arg("topic", "only this part, in detail", required=False, choices=("serving",)),
        option("--security", "who may talk, rate, administer"),
        option("--demo-model", ""),
        module="doctor.command",
        group="fix",
    ),
)
KEEPING = (
    _own(
        "service",
        "run in the background, also after a restart",
        Arg("action", choices=("install", "restart", "status", "uninstall")),
        option("--dry-run", "only show what would be done"),
        module="service.command",
    ),
    _own(
        "backup",
        "a verified copy without tokens, sessions and base models",
        Arg("path", "the file to write", required=False, path=True),
        module="backup.command",
        group="data",
    ),
    _own(
        "restore",
        "bring a backup back",
        Arg("path", path=True),
        _YES,
        Arg(
            "--accept",
            "agree to what the backup gives: instead of typing that word",
            required=False,
            many=True,
            choices=("owners", "rights", "addresses", "privacy", "programs"),
        ),
        option("--key", "where the key of an encrypted backup is: keyring, file:PATH or prompt", "WHERE"),
        group="data",
    ),
    _own(
        "encrypt",
        "encrypt what people said, on this machine's disk",
        option("--key", "where a new key is kept: keyring, file:PATH, or prompt for a passphrase", "WHERE"),
        option("--rekey", "take a new key"),
        option("--save-key", "write a copy of the key to this file, too", "FILE", path=True),
        module="encryption.command",
        group="data",
    ),
    _own(
        "decrypt",
        "turn encryption off, or write one encrypted file in clear",
        Arg("path", "an exported file or a backup; if not said, everything", required=False, path=True),
        option("--out", "where that file is written in clear", "FILE", path=True),
        option("--key", "where its key is, if not this goodbot's: keyring, file:PATH or prompt", "WHERE"),
        _YES,
        module="encryption.command",
        group="data",
    ),
    _own(
        "upgrade",
        "say how a newer goodbot is installed here",
        option("--check", "say it, change nothing"),
        option("--back", "make the data fit the release before this one"),
        option("--yes", "go back without asking"),
        group="fix",
    ),
    _own(
        "completion", "completion for your shell", Arg("shell", choices=("bash", "zsh", "fish")), json=False
    ),
    _own(
        "uninstall",
        "remove all that goodbot has put on this machine",
        option("--keep-data", "leave the state directory"),
        option("--dry-run", "only list it"),
        _YES,
        module="uninstall.command",
        group="data",
    ),
    _own(
        "plugin",
        "write a plugin of your own, to begin with",
        Arg("action", choices=("new",)),
        Arg("name", "small letters, digits and _", "NAME"),
        Arg(
            "--kind",
            "what it adds; a connector, if not said",
            required=False,
            choices=("connector", "server", "reward", "objective", "tracker"),
            default="connector",
        ),
        option("--out", "where: goodbot-NAME, if not said", "DIR", path=True),
        module="plugin.command",
    ),
)
