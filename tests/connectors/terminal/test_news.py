# SPDX-License-Identifier: Apache-2.0
"""What a chat shows unasked: when it comes, but never in the middle of an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from goodbot_connectors.terminal.conversation import Conversation
from goodbot_connectors.terminal.link import Link
from goodbot_connectors.terminal.live import LiveChat
from goodbot_connectors.terminal.screen import Screen


class View:
    """Writes down what is shown, in order."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def piece(self, text: str) -> None:
        self.shown.append(text)

    def whole(self) -> None:
        self.shown.append("|")

    def other(self, text: str) -> None:
        self.shown.append(text)

    def result(self, text: str) -> None:
        self.shown.append(text)

    def news(self, text: str) -> None:
        self.shown.append(f"● {text}")

    def note(self, text: str) -> None:
        self.shown.append(f"({text})")

    def put_back(self, text: str) -> None:
        self.shown.append(f"> {text}")


class Lines:
    """The daemon's end: what it says next, and nothing else."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def send(self, line: dict[str, Any]) -> bool:
        return True

    def receive(self) -> list[dict[str, Any]]:
        lines, self.lines = self.lines, []
        return lines


def test_news_wait_for_the_answer_to_end(tmp_path: Any) -> None:
    view, daemon = View(), Lines()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat.say("Hello?")
    [id_] = chat.waiting
    daemon.lines = [
        {"text": "Hel", "to": id_},
        {"news": "v1 is live. `/rl why` shows before and after.", "id": "n"},
        {"answer": "Hello!", "turn": "t", "to": id_},
    ]
    chat.read(chat.chat)
    assert view.shown == ["Hel", "lo!", "|", "● v1 is live. `/why` shows before and after."]
    daemon.lines = [{"news": "more", "id": "m"}]
    chat.read(chat.chat)
    assert view.shown[-1] == "● more"


def test_news_stand_apart_from_the_talk_without_colour_too() -> None:
    written: list[str] = []
    screen = Screen(written.append, -1, colour=False)
    chat = cast("LiveChat", SimpleNamespace(_screen=screen, note=screen.say))
    screen.stream("An answer.")
    LiveChat.news(chat, "v1 is live.")
    screen.draw("", 0, "", "")
    assert "An answer.\n\n● v1 is live.\n" in written[-1]
