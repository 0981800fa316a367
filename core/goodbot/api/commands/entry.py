# SPDX-License-Identifier: Apache-2.0
"""What an entry of the table of commands is: names, words, who may, where it can be typed."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal, NamedTuple

from goodbot.base.text import begun

Where = Literal["chat", "terminal", "api"]
"""`/rl NAME` in a chat, `goodbot NAME` in a terminal, `POST /v1/commands` of a program."""
Menu = Literal["long", "private", "shared"]
"""A menu with room for two dozen commands; a short one of a private chat; one of a shared chat."""
Group = Literal["start", "talk", "watch", "fix", "people", "data"]
"""What a command is for: wherever commands are listed, they are listed by it."""

GROUPS: dict[Group, str] = {
    "start": "Start",
    "talk": "Talk and rate",
    "watch": "Watch",
    "fix": "Fix",
    "people": "People",
    "data": "Data",
}
"""The groups in their order, with their headings."""

ALL: tuple[Where, ...] = ("chat", "terminal", "api")
CHAT_ONLY: tuple[Where, ...] = ("chat",)
TERMINAL: tuple[Where, ...] = ("terminal",)
LONG: tuple[Menu, ...] = ("long",)
EVERY: tuple[Menu, ...] = ("long", "private", "shared")


class Grant(IntEnum):
    """What a command or an event needs. Each includes the ones below it, TALK by channel aside."""

    NONE = 0
    TALK = 1
    RATE = 2
    ADMINISTER = 3


class Arg(NamedTuple):
    """One word behind a command, or with a name such as `--yes` an option of it."""

    name: str
    help: str = ""
    """What it means; an option without it is shown nowhere."""
    metavar: str = ""
    """What stands for it where it is explained. An option without one is a switch."""
    required: bool = True
    many: bool = False
    """A word: it and all behind it. An option: it may be given several times."""
    choices: tuple[str, ...] = ()
    default: str | None = None
    path: bool = False
    largest: int = 0
    """It is a number from 0 on, and the largest one that a menu offers; 0: it is no number."""
    where: tuple[Where, ...] = ("chat", "terminal")

    @property
    def is_option(self) -> bool:
        """Whether it is an option, not a word."""
        return self.name.startswith("-")

    @property
    def label(self) -> str:
        """What a menu says of it."""
        return begun(self.help)

    @property
    def usage(self) -> str:
        """How it is written where a command is explained: `COUNT`, `[ANSWER]`."""
        text = self.metavar or "|".join(self.choices) or self.name
        return text if self.required else f"[{text}]"


def option(name: str, help: str, metavar: str = "", *, many: bool = False, path: bool = False) -> Arg:
    """Make an option that only a terminal has, and that may be left out.

    Args:
        name: As it is typed: `--yes`.
        help: What it does, in a few words.
        metavar: What its value is called in the help; empty: it takes none.
        many: Whether it takes several values.
        path: Whether its value is a file or a directory.

    Returns:
        The entry for the table of commands.
    """
    return Arg(name, help, metavar, required=False, many=many, path=path, where=TERMINAL)


DETAILS = Arg("--details", "figures and terms, for who wants to know how it works", required=False)


def words(help: str, metavar: str) -> Arg:
    """All that is typed, which may be nothing."""
    return Arg("words", help, metavar, required=False, many=True)


class Command(NamedTuple):
    """One entry of the table. What it does is named, not imported: the table costs next to nothing."""

    name: str
    summary: str
    run: str = ""
    """`MODULE:FUNCTION` of `goodbot.commands`, which takes a Call and returns a Result; the errors that it
    raises are GoodbotErrors with a sentence. Empty for what only the program in a terminal does. What is no
    command of chats and has it is done for that program alone (`CommandRunner.execute`, `direct`)."""
    arguments: tuple[Arg, ...] = ()
    grant: Grant = Grant.ADMINISTER
    aliases: tuple[str, ...] = ()
    actions: tuple[Command, ...] = ()
    """What its first word may be, each with words of its own."""
    where: tuple[Where, ...] = ("chat", "terminal")
    program: str = "client:main"
    """`MODULE:FUNCTION` of `goodbot.cli` that does it in a terminal; by itself the daemon is asked."""
    json: bool = True
    """A terminal's `--json` prints what it answers as one JSON object."""
    menus: tuple[Menu, ...] = ()
    """Where it is offered before anything is typed."""
    group: Group = "talk"
    first: tuple[Where, ...] = ()
    """Where a newcomer is shown it before all others."""
    rates: bool = False
    """It says what somebody thinks of an answer."""
    needs_server: bool = False
    """Without a daemon, the model is started for this command."""
    plain: bool = False
    """No look-alike of its name is taken for it. So it is with all that needs ADMINISTER."""
    personal: bool = False
    """What it answers is for the one who typed it: in a shared channel they are told privately."""
    quotes: bool = False
    """What is typed behind it may be anybody's words: the audit trail leaves them out."""
    own: bool = False
    """It is about what is stored of the person, who may use it for as long as anything is."""
    instead: str = ""
    """It is an old word, shown nowhere: what is typed in its place. It works, and says so."""

    def words(self, where: Where) -> list[Arg]:
        """Its arguments in a chat or in a terminal, in the order in which they are said."""
        return [one for one in self.arguments if where in one.where]

    @property
    def usage(self) -> str:
        """What is typed behind its name in a chat."""
        if self.actions:
            return f"[{'|'.join(one.name for one in self.actions if 'chat' in one.where)} …]"
        return " ".join(one.usage for one in self.words("chat"))

    def explained(self, verb: str, *, fully: bool = False) -> str:
        """Its line in a list, as it is typed behind `verb`; `fully`: with what may be left out."""
        return f"{verb}{self.name} {self.usage if fully else self.needed}".rstrip() + f" – {self.summary}"

    @property
    def needed(self) -> str:
        """What has to be typed behind its name in a chat."""
        return " ".join(one.usage for one in self.words("chat") if one.required and not self.actions)

    @property
    def label(self) -> str:
        """What a menu says of it."""
        return begun(self.summary) + (" (owners)" if self.grant is Grant.ADMINISTER else "")
