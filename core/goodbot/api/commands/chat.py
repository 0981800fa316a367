# SPDX-License-Identifier: Apache-2.0
"""Asking, rating and learning: in a chat, most of it also in a terminal."""

from __future__ import annotations

from goodbot.api.commands.entry import (
    ALL,
    CHAT_ONLY,
    EVERY,
    LONG,
    TERMINAL,
    Arg,
    Command,
    Grant,
    option,
    words,
)

_ANSWER = Arg("answer", "its id in `history`; without it the last answer here", "ANSWER", required=False)
_TEXT = Arg("text", "in your words", "TEXT", many=True)
_LINE = Arg("number", "a number from `notes`", "N")
_ONE = _LINE._replace(required=False)
_VERSION = Arg("version", "a number from `adapters`", "VERSION", required=False)


def _rating(name: str, summary: str, *arguments: Arg, aliases: tuple[str, ...]) -> Command:
    return Command(
        name,
        summary,
        f"rating:{name}",
        arguments,
        Grant.RATE,
        aliases,
        menus=EVERY if name in ("good", "bad", "undo") else LONG,
        rates=True,
        personal=True,
    )


_YES = option("--yes", "do not ask")
_BACK = words("a version from `adapters`, or a day", "VERSION | base | since DATE")
_RATING = (
    _rating(
        "good",
        "the answer was good: the last one here, or the one you reply to",
        _ANSWER,
        aliases=("yes", "y", "+1", "+", "👍", "up"),
    ),
    _rating("bad", "the answer was bad", _ANSWER, aliases=("no", "n", "-1", "-", "👎", "down")),
    _rating(
        "stars",
        "how good it was, 1 to 5, beside good or bad; 0 takes that back",
        Arg("count", "1 to 5 stars; 0 takes them back", "COUNT", largest=5),
        _ANSWER,
        aliases=("rate", "star"),
    ),
    _rating("undo", "take your rating back", _ANSWER, aliases=("u",)),
    _rating(
        "reason",
        "what was wrong with the answer, in your words",
        _ANSWER,
        _TEXT,
        aliases=("because", "comment"),
    ),
    _rating("better", "what the answer should have been", _ANSWER, _TEXT, aliases=("instead", "correct")),
)

_ASKING = (
    Command(
        "status",
        "what answers, and how far the next training is",
        "status:status",
        grant=Grant.TALK,
        aliases=("stat", "info"),
        where=ALL,
        menus=("long", "private"),
    ),
    Command(
        "help",
        "what you can type here",
        "status:help_",
        grant=Grant.TALK,
        aliases=("start", "?", ""),
        where=("chat", "api"),
        menus=EVERY,
    ),
    Command(
        "history",
        "the last answers and their ratings",
        "status:history",
        (Arg("count", "how many (10)", "COUNT", required=False, largest=50),),
        where=ALL,
        menus=("long", "private"),
        personal=True,
    ),
    Command(
        "notes",
        "what I keep in mind when I answer you; change it",
        "notes:notes",
        grant=Grant.TALK,
        personal=True,
        own=True,
        actions=(
            Command("list", "each line with its number, and what it rests on"),
            Command(
                "on",
                "follow a line again; without a number: notes in this channel (owners)",
                arguments=(_ONE,),
            ),
            Command(
                "off",
                "keep a line, and do not follow it; without a number: none in this channel",
                arguments=(_ONE,),
            ),
            Command("delete", "take a line away", arguments=(_LINE,)),
            Command("edit", "say a line in your own words", arguments=(_LINE, _TEXT)),
            Command(
                "move",
                "let a line hold for everybody, or for you alone again (owners)",
                arguments=(_LINE, Arg("whom", "for whom", choices=("me", "everybody"))),
            ),
        ),
    ),
    Command(
        "waiting",
        "answers that wait for your rating, one by one",
        "waiting:waiting",
        (words("which one, 1 to 5; a press says good or bad", "N"),),
        Grant.RATE,
        menus=LONG,
        personal=True,
    ),
    Command(
        "why",
        "what the version that answers learnt from, and what it changed",
        "why:why",
        grant=Grant.RATE,
        where=ALL,
        menus=LONG,
    ),
    Command(
        "thought",
        "what the model thought before its last answer",
        "thought:thought",
        (_ANSWER,),
        Grant.TALK,
        where=CHAT_ONLY,
        personal=True,
    ),
    Command(
        "compare",
        "which of two versions is better",
        "compare:compare",
        (
            words(
                "nothing: the open question; v6 v7 (or base) and a prompt: both answers",
                "a|b|same|skip | VERSION VERSION PROMPT",
            ),
        ),
        where=ALL,
        program="compare:main",
        personal=True,
        quotes=True,
    ),
    Command(
        "probe",  # an owner's commands leave a line in the audit trail; this one changes nothing
        "whether the version that should answer really does",
        "probe:probe",
        grant=Grant.RATE,
        where=("chat", "api"),
        needs_server=True,
    ),
)

_LEARNING = (
    Command(
        "train",
        "train now on all ratings that are not used yet",
        "training:train",
        (
            Arg("--dry-run", "say what it would do and cost; changes nothing", required=False),
            option("--no-wait", "return at once; `status` shows how far it is"),
        ),
        where=ALL,
        menus=LONG,
        needs_server=True,
    ),
    Command("pause", "stop training until `resume`", "training:pause", where=ALL, menus=LONG),
    Command("resume", "undo `pause` and `off`", "training:resume", aliases=("on",), where=ALL, menus=LONG),
    Command(
        "cancel", "drop the training under way; its ratings are free again", "training:cancel", where=ALL
    ),
    Command("release", "let answers train again that trainings have left out", "training:release", where=ALL),
    Command(
        "off", "the base model answers and nothing is trained, until `resume`", "training:off", where=ALL
    ),
    Command(
        "switch",
        "another base model; in a terminal: `goodbot model switch`",
        "training:switch",
        where=CHAT_ONLY,
    ),
    Command(
        "rollback",
        "back to an earlier version, or to the base model",
        "adapters:rollback",
        (_BACK, option("--since", "also leave out all ratings since then (2026-11-21)", "DATE")),
        where=ALL,
        menus=LONG,
        needs_server=True,
    ),
    Command(
        "reset",
        "begin anew: the base model, and none of the ratings so far",
        "rollback_window:reset",
        (_YES,),
        where=ALL,
        needs_server=True,
    ),
    Command(
        "adapters",
        "all versions and where they come from",
        "adapters:adapters",
        where=ALL,
        actions=(
            Command("list", "the tree of versions, how each was rated, which one answers"),
            Command("show", "all of one version", arguments=(_VERSION,)),
            Command(
                "diff",
                "what ratings came between two, and how far apart they are",
                arguments=(_VERSION._replace(required=True), _VERSION._replace(name="other", required=True)),
            ),
            Command(
                "pin",
                "keep its files; if it answers, nothing new goes live until `unpin`",
                arguments=(_VERSION,),
            ),
            Command("unpin", "let go of it; the newest version that waits goes live", arguments=(_VERSION,)),
            Command("rollback", "as `goodbot rollback`: to a version, or to `base`", arguments=(_BACK,)),
            Command(
                "import",
                "make somebody's adapter a version of yours; it does not answer yet",
                arguments=(
                    Arg("path", "a PEFT or MLX directory, or an exported .tar", path=True),
                    Arg("--activate", "let it answer, if it can", required=False),
                ),
                where=TERMINAL,
                program="adapters:bring_in",
            ),
            Command(
                "export",
                "write a version for another program",
                arguments=(
                    Arg("version", "a number, or `base`", "VERSION"),
                    Arg(
                        "--format",
                        "peft, if not said",
                        required=False,
                        choices=("peft", "mlx", "gguf", "gguf-model", "fused"),
                        default="peft",
                    ),
                    Arg("--fused", "--format fused", required=False),
                    Arg("--out", "what is there is never replaced", "PATH", path=True),
                ),
                where=TERMINAL,
                program="adapters:export",
            ),
        ),
    ),
    Command("export", "the rated answers as a file on the bot's machine", "export:export", personal=True),
)

CHAT: tuple[Command, ...] = (*_ASKING[:1], *_RATING, *_ASKING[1:], *_LEARNING)
