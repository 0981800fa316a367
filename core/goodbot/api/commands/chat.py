# SPDX-License-Identifier: Apache-2.0
"""Asking and rating: in a chat, most of it also in a terminal."""

from __future__ import annotations

from goodbot.api.commands.entry import ALL, CHAT_ONLY, DETAILS, EVERY, LONG, Arg, Command, Grant, words

_ANSWER = Arg("answer", "its id in `history`; without it the last answer here", "ANSWER", required=False)
_TEXT = Arg("text", "in your words", "TEXT", many=True)
_LINE = Arg("number", "a number from `notes`", "N")
_ONE = _LINE._replace(required=False)


def _rating(name: str, summary: str, *arguments: Arg, aliases: tuple[str, ...]) -> Command:
    return Command(
        name,
        summary,
        f"rating:{name}",
        arguments,
        Grant.RATE,
        aliases,
        menus=EVERY if name in ("good", "bad", "undo") else LONG,
        first=CHAT_ONLY if name in ("good", "bad", "undo", "reason") else (),
        rates=True,
        personal=True,
    )


_RATING = (
    _rating(
        "good",
        "the last answer was good, or the one you reply to",
        _ANSWER,
        aliases=("yes", "y", "+1", "+", "👍", "up"),
    ),
    _rating("bad", "that answer was bad", _ANSWER, aliases=("no", "n", "-1", "-", "👎", "down")),
    _rating(
        "stars",
        "how good it was, 1 to 5, beside good or bad; 0 takes that back",
        Arg("count", "1 to 5 stars; 0 takes them back", "COUNT", largest=5),
        _ANSWER,
        aliases=("rate", "star"),
    ),
    _rating("undo", "take your rating back", _ANSWER, aliases=("u",)),
    _rating(
        "reason", "what was wrong with it, in your words", _ANSWER, _TEXT, aliases=("because", "comment")
    ),
    _rating("better", "what the answer should have been", _ANSWER, _TEXT, aliases=("instead", "correct")),
)

_ASKING = (
    Command(
        "status",
        "what answers, and how far the next training is",
        "status:status",
        (DETAILS,),
        grant=Grant.TALK,
        aliases=("stat", "info"),
        where=ALL,
        menus=("long", "private"),
        group="watch",
        first=("chat", "terminal"),
    ),
    Command(
        "help",
        "what you can type here",
        "help:help_",
        (Arg("topic", "all, or one of: talk, watch, fix, people, data", "TOPIC", required=False),),
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
        group="watch",
        personal=True,
    ),
    Command(
        "notes",
        "what I keep in mind when I answer you; change it",
        "notes:notes",
        grant=Grant.TALK,
        first=CHAT_ONLY,
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
        "what I have learnt, from what, and what that changed",
        "why:why",
        (_ANSWER._replace(help="the id of a rated answer: what that one taught, for owners"),),
        Grant.RATE,
        where=ALL,
        menus=LONG,
        group="watch",
        first=("chat", "terminal"),
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
                "nothing: the open question; undo: your last choice; v6 v7 (or base) PROMPT: both answers",
                "a|b|same|skip|undo | VERSION VERSION PROMPT",
            ),
        ),
        where=ALL,
        group="watch",
        program="compare:main",
        personal=True,
        quotes=True,
    ),
    Command(
        "probe",  # an owner's commands leave a line in the audit trail; this one changes nothing
        "check that the right version is answering",
        "probe:probe",
        grant=Grant.RATE,
        where=("chat", "api"),
        group="fix",
        needs_server=True,
    ),
)

CHAT: tuple[Command, ...] = (*_ASKING[:1], *_RATING, *_ASKING[1:])
