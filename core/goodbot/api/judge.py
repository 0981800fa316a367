# SPDX-License-Identifier: Apache-2.0
"""The contract between the core and a judge, which says what the next state tells of an answer.

The next state is what came after an answer: the next message of the same person, or the results of the
tools that the answer has called. A plugin registers a `JudgeSpec`; `[judge] by` names the one that judges, by
default none. A judge gets texts and gives a `Judgement`; the core says what it weighs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from goodbot.api import address
from goodbot.api.events import Message

JUDGE = "judge"
"""In the place of a connector's name, of who says what judges say: no connector may be called so."""
KEY = "GOODBOT_JUDGE_KEY"
"""The secret that the server may ask for."""
Ask = Callable[[Sequence[Message], int, float], Awaitable[str]]
"""Messages, a seed and a time limit in seconds → what the model says. Raises ServerError, TimeoutError."""


class Asks(StrEnum):
    """Whom a judge asks."""

    NOBODY = "nobody"
    OWN = "own"
    """Our own base model, while nobody waits for it and nothing trains."""
    SERVER = "server"
    """The server at `[judge] url`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeCase:
    """One answer and what came next, whole: all of it is what people and programs wrote."""

    request: str
    answer: str
    next: tuple[str, ...]
    """The next message, or the results of the tools, one each."""
    by_tool: bool
    """Whether `next` are results of tools."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a judge makes of a case."""

    value: int
    """1 good, -1 bad, 0 neither."""
    votes: tuple[int | None, ...] = ()
    """What it is made of, where there were votes; None is one that came to nothing."""


class Judge(ABC):
    """Made with the settings of `[judge.settings]` and whom it may ask."""

    def __init__(self, settings: Any, ask: Ask) -> None:
        self.settings = settings
        self.ask = ask

    @abstractmethod
    async def judge(self, case: JudgeCase) -> Judgement:
        """Judge one case. Raises ServerError where it cannot now; it is asked again, a few times."""


@dataclass(frozen=True, kw_only=True)
class JudgeSpec:
    """What the host must know of a judge before it imports it."""

    name: str
    """`[judge] by` names it."""
    factory: str
    """`package.module:Class`, a `Judge`."""
    settings: type[Any]
    """A frozen dataclass; the config section `[judge.settings]` is parsed into it."""
    asks: Asks = Asks.NOBODY


def server(url: str, model: str, hosts: Sequence[str]) -> str:
    """Check the address of the server that a judge asks.

    Args:
        url: What the owner has typed.
        model: The name of the model on that server.
        hosts: The other machines that the owner allows.

    Returns:
        The address in one spelling.

    Raises:
        ValueError: One of them is missing or wrong; in words that go on after "url".
    """
    if not (url and model):
        raise ValueError("and model must say which server is asked, and for what")
    return address.checked(url, hosts, section="judge", key=KEY)
