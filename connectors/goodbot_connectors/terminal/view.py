# SPDX-License-Identifier: Apache-2.0
"""What a conversation asks of whatever shows it: a screen, or plain lines."""

from __future__ import annotations

from typing import Protocol


class ConversationView(Protocol):
    """How a conversation shows itself."""

    def piece(self, text: str) -> None:
        """More of an answer."""
        ...

    def whole(self) -> None:
        """The answer is complete."""
        ...

    def other(self, text: str) -> None:
        """What another chat said."""
        ...

    def result(self, text: str) -> None:
        """What a command answered."""
        ...

    def news(self, text: str) -> None:
        """What nobody has asked for: a new version, a training that waits."""
        ...

    def note(self, text: str) -> None:
        """Something on the side: a receipt, why an answer is late."""
        ...

    def put_back(self, text: str) -> None:
        """A message that was not answered, for whoever wants to change it."""
        ...
