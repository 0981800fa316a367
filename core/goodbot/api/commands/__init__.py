# SPDX-License-Identifier: Apache-2.0
"""What people can type, as data: the one table from which every surface is made.

The program's arguments and its completion, `/rl` and its help, the platforms' menus and the API for
programs all follow from it. It is light: nothing that a command needs is imported with it.
"""

from __future__ import annotations

from goodbot.api.commands.chat import CHAT
from goodbot.api.commands.entry import GROUPS, Arg, Command, Grant, Group, Menu, Where
from goodbot.api.commands.learning import LEARNING, OLD
from goodbot.api.commands.people import PEOPLE
from goodbot.api.commands.program import KEEPING, SETTING_UP
from goodbot.base.text import clean

ABOUT = "Rate my answers, see what I have learnt"
"""What `/rl` as a whole is for."""
_ALL = (*SETTING_UP, *CHAT, *LEARNING, *PEOPLE, *KEEPING)
TABLE: tuple[Command, ...] = tuple(sorted(_ALL, key=lambda command: [*GROUPS].index(command.group)))
"""All commands, in the order in which they are shown: by group."""

__all__ = [
    "ABOUT",
    "GROUPS",
    "OLD",
    "TABLE",
    "Arg",
    "Command",
    "Grant",
    "Group",
    "Menu",
    "Where",
    "allowed",
    "as_typed",
    "command_in",
    "find",
    "menu",
    "of",
    "parted",
    "rates",
    "typed_behind",
]


def of(where: Where, *, old: bool = False) -> list[Command]:
    """The commands that are shown there; with `old` those as well that are typed there out of habit."""
    return [command for command in (*TABLE, *(OLD if old else ())) if where in command.where]


def menu(kind: Menu, *, up_to: Grant = Grant.ADMINISTER) -> list[Command]:
    """The commands that a menu of that kind offers to who has that grant."""
    return [command for command in TABLE if kind in command.menus and command.grant <= up_to]


def allowed(level: Grant, *, most: Grant = Grant.ADMINISTER) -> list[Command]:
    """What somebody of that level may type in a chat; in a shared one not more than `most`."""
    return [command for command in of("chat") if command.grant <= min(max(level, Grant.TALK), most)]


def find(word: str) -> Command | None:
    """The command that a word names in a chat, or None.

    Rating and status words are forgiving (NFKC, invisible characters and case dropped); an
    administrative one must be plain ASCII as it stands, so that no look-alike ever reaches it.
    """
    import unicodedata

    folded = unicodedata.normalize("NFKC", word)
    folded = "".join(c for c in folded if unicodedata.category(c) not in ("Cf", "Cc", "Mn"))
    folded = folded.casefold().strip("/ \U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
    for command in of("chat", old=True):
        if folded == command.name or folded in command.aliases:
            strict = command.plain or command.grant is Grant.ADMINISTER
            if strict and not (word.isascii() and word.isprintable()):
                return None
            return command
    return None


def command_in(text: str) -> tuple[str, str] | None:
    """Split a command that somebody typed into its name and arguments: `/rl good`, `/good`, `/good@bot`.

    The name is as typed: see `find`. None for all else, also for a path like `/tmp/x`. `/rl` alone asks for
    help.
    """
    if behind := typed_behind(text, "/rl"):
        return behind
    first, rest = parted(text, "")
    word = first[1:].partition("@")[0]
    is_one = first[:1] == "/" and word.strip("/") and find(word)
    return (word, rest) if is_one else None


def typed_behind(text: str, *verbs: str) -> tuple[str, str] | None:
    """The name and the arguments behind one of these verbs, as in `/rl good`; else None.

    Any white space ends a word: a new line, a tab, the space that does not break.
    """
    verb, rest = parted(text, "")
    return parted(rest) if verb.casefold() in verbs else None


def as_typed(text: str, verb: str) -> str:
    """A text of ours with its commands as they are typed there: in all texts `/rl ` stands for the verb."""
    return text.replace("`/rl ", f"`{verb}")


def parted(words: str, nothing: str = "help") -> tuple[str, str]:
    """The name and the arguments of what was typed after `/rl`; `nothing` is what no word stands for."""
    name, args = (*clean(words).split(None, 1), "", "")[:2]
    return name or nothing, args.strip()


def rates(word: str) -> bool:
    """Whether a word names a command that says what somebody thinks of an answer."""
    command = find(word)
    return command is not None and command.rates
