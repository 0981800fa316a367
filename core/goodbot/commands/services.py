# SPDX-License-Identifier: Apache-2.0
"""What commands work with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from goodbot.access.login import Logins
from goodbot.access.notices import Notices
from goodbot.base.descriptors import Descriptors
from goodbot.commands.confirm import Confirmations
from goodbot.conversation.notifications import OwnerNews
from goodbot.conversation.parts import AnsweringParts
from goodbot.learning.adapters.erasure import Eraser
from goodbot.learning.evaluation.ab_test import AbTest
from goodbot.learning.evaluation.own_questions import OwnQuestions
from goodbot.learning.evaluation.side_by_side import SideBySide


class Reachable(Protocol):
    """What is answered over HTTP, as far as commands tell of it."""

    @property
    def address(self) -> str: ...
    @property
    def listening(self) -> bool: ...
    def moved(self, language: str = "") -> str: ...
    @property
    def descriptors(self) -> Descriptors: ...


@dataclass(frozen=True, kw_only=True)
class Services(AnsweringParts):
    """The parts of a running goodbot that commands work with."""

    http: Reachable
    logins: Logins
    confirmations: Confirmations
    news: OwnerNews
    ab_test: AbTest
    own_questions: OwnQuestions
    side_by_side: SideBySide
    notices: Notices
    eraser: Eraser
    thinks: str
    """Whether the model thinks before it answers, in a sentence; empty for one that does not."""
