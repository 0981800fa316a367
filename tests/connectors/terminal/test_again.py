# SPDX-License-Identifier: Apache-2.0
"""Another answer in the terminal: it is offered after a bad rating, and asked for with `/again`."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from goodbot.api.actions import HINTS
from goodbot.api.commands import of
from goodbot.api.events import OrderKey, Outcome, PressEvent, Receipt
from goodbot.api.texts import say
from goodbot_connectors.terminal.connector import TerminalConnector
from goodbot_connectors.terminal.conversation import Conversation
from goodbot_connectors.terminal.editor import Editor
from goodbot_connectors.terminal.link import Link
from goodbot_connectors.terminal.live import LiveChat
from goodbot_connectors.terminal.words import KEYS

from tests.connectors.terminal.test_news import Lines, View
from tests.core.made import CHANNEL, OWNER


class Daemon(Lines):
    """It also writes down what it is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[dict[str, Any]] = []

    def send(self, line: dict[str, Any]) -> bool:
        self.sent.append(line)
        return True


def test_a_bad_answer_can_be_asked_for_again(tmp_path: Path) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat.say("Hello?")
    daemon.lines = [{"answer": "Hello!", "turn": "t", "to": chat.waiting[0], "id": "m"}]
    chat.read(chat.chat)
    assert chat.press("b")
    daemon.lines = [{"receipt": "Bad.", "id": "r", "turn": "t", "value": -1.0, "offer": ["again:long"]}]
    chat.read(chat.chat)
    assert "/again long, short, wrong, tone, better" in view.shown[-1]
    chat.say("/again long")
    press = daemon.sent[-1]
    assert (press["press"], press["turn"], press["message"]) == ("again:long", "t", "m")
    assert chat.waiting == [press["id"]]
    daemon.lines = [{"answer": "Hi.", "turn": "n", "to": press["id"], "id": "m2"}]
    chat.read(chat.chat)
    assert (chat.waiting, chat.last, chat.open) == ([], "n", True)


def test_a_training_that_waits_is_a_command_to_type(tmp_path: Path) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    daemon.lines = [{"receipt": "Good.", "id": "r", "turn": "t", "value": 1.0, "offer": ["run:train"]}]
    chat.read(chat.chat)
    assert view.shown[-1] == "(Train now: /train.)"


def test_a_press_that_came_to_nothing_is_told_and_waited_for_no_more(tmp_path: Path) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat.say("/again long")
    assert view.shown == ["(There is no answer here yet.)"]
    daemon.lines = [{"answer": "Hello!", "turn": "t", "to": "", "id": "m"}]
    chat.read(chat.chat)
    chat.say("/again nonsense")
    assert "/again long, short" in view.shown[-1]
    assert daemon.sent == []
    chat.say("/again wrong")
    [id_] = chat.waiting
    daemon.lines = [{"receipt": "Too often.", "id": id_, "turn": "", "value": None, "offer": []}]
    chat.read(chat.chat)
    assert chat.waiting == []
    assert view.shown[-1] == "(Too often.)"


async def test_what_a_chip_has_set_off_is_said_and_the_answer_is_waited_for(tmp_path: Path) -> None:
    press = PressEvent(event_id="p", order=OrderKey(1), user=OWNER, channel=CHANNEL, action="again:long")
    receipt = Receipt(event_id="p", outcome=Outcome.ACCEPTED, text="Noted.", turn="t")
    said: list[dict[str, Any]] = []
    teller = cast("TerminalConnector", SimpleNamespace(tell=said.append))
    await TerminalConnector.acknowledge(teller, press, receipt)
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    daemon.lines = [{"answer": "Hello!", "turn": "t", "to": "", "id": "m"}]
    chat.read(chat.chat)
    chat.say("/again long")
    [waited] = chat.waiting
    daemon.lines = [{**line, "id": waited} for line in said]
    chat.read(chat.chat)
    assert chat.waiting == [waited]
    daemon.lines = [{"answer": "Hi.", "turn": "n", "to": waited, "id": "m2"}]
    chat.read(chat.chat)
    assert view.shown[-1] == "(Noted.)"


def test_help_is_made_of_the_table_of_commands(tmp_path: Path) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat.say("/help")
    told = view.shown[-1]
    assert all(name in told for name in ("/good", "/bad", "/undo", *HINTS))
    assert all(one.explained("/") in told for one in of("chat") if "chat" in one.first and not one.rates)
    assert "/rl" not in told


def test_a_message_that_was_not_answered_can_be_changed(tmp_path: Path) -> None:
    """Whoever is told to send a part of it need not type it again. Who has stopped it wants none."""
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat.say("much too long")
    daemon.lines = [{"failed": "Send me a part.", "to": chat.waiting[0]}]
    chat.read(chat.chat)
    assert view.shown == ["|", "> much too long", "(Send me a part.)"]
    chat.say("refused")
    daemon.lines = [{"refused": "That is too long.", "id": chat.waiting[0]}]
    chat.read(chat.chat)
    assert "> refused" in view.shown
    chat.say("stopped")
    [id_] = chat.waiting
    assert chat.stop()
    daemon.lines = [{"failed": "Stopped.", "to": id_}]
    chat.read(chat.chat)
    chat.say("answered")
    daemon.lines = [{"answer": "Yes.", "turn": "t", "to": chat.waiting[0], "id": "m"}]
    chat.read(chat.chat)
    assert [one for one in view.shown if one.startswith("> ")] == ["> much too long", "> refused"]


def test_what_is_put_back_does_not_stand_among_what_is_typed() -> None:
    chat = SimpleNamespace(_editor=Editor())
    LiveChat.put_back(cast("LiveChat", chat), "a message")
    LiveChat.put_back(cast("LiveChat", chat), "another")
    assert chat._editor.text == "a message"


def test_where_no_answer_came_a_key_does_not_mean_the_one_before(tmp_path: Path) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    daemon.lines = [{"answer": "Hello!", "turn": "t", "to": "", "id": "m"}]
    chat.read(chat.chat)
    chat.say("And now?")
    daemon.lines = [{"failed": "no model", "to": daemon.sent[-1]["id"]}]
    chat.read(chat.chat)
    sent = len(daemon.sent)
    assert (chat.keys, chat.press("g"), len(daemon.sent)) == ([], False, sent)


@pytest.mark.parametrize(("key", "value", "shown"), [("3", 0.0, "★"), ("1", -1.0, "★"), ("g", 1.0, "👍")])
def test_a_key_rates_once_and_three_stars_are_a_rating_too(
    key: str, value: float, shown: str, tmp_path: Path
) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    assert (chat.keys, chat.press(key), chat.press("u")) == ([], False, False)
    daemon.lines = [{"answer": "Hello!", "turn": "t", "to": "", "id": "m"}]
    chat.read(chat.chat)
    assert chat.keys == ["g", "b", "s", "1", "2", "3", "4", "5"]
    assert chat.press(key)
    source = "button" if key == "g" else "stars"
    line = {"receipt": "Noted.", "id": daemon.sent[-1]["id"], "turn": "t", "value": value, "source": source}
    daemon.lines = [line]
    chat.read(chat.chat)
    assert view.shown[-1] == f"({shown} Noted.)"
    assert (chat.keys, chat.busy) == (["u"], False)
    assert chat.press("u")
    daemon.lines = [{**line, "id": daemon.sent[-1]["id"], "value": None, "source": ""}]
    chat.read(chat.chat)
    assert chat.keys[:3] == ["g", "b", "s"]
    assert chat.press("s")
    assert chat.keys == []


@pytest.mark.parametrize("page", ["rate.js", "chat.js"])
def test_the_keys_are_those_of_the_browser(page: str) -> None:
    pages = (files("goodbot_connectors.web") / "pages" / name for name in ("keys.js", page))
    rows = [
        row for one in pages for row in re.findall(r"keys: \[(.+?)\], does: say\(\"(\w+)", one.read_text())
    ]
    there = {key: say(does).split()[0] for keys, does in rows for key in re.findall(r'"(\w)"', keys)}
    assert {key: there[key] for key in KEYS} == {
        "g": "Good",
        "b": "Bad",
        "s": "Skip",
        **dict.fromkeys("12345", "Give"),
        "u": "Undo",  # it back
    }


@pytest.mark.parametrize(("typed", "shown"), [("/yes", "👍"), ("/bad", "👎"), ("/status", "")])
def test_a_command_that_rates_marks_the_answer_by_any_of_its_names(
    typed: str, shown: str, tmp_path: Path
) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat._answered(typed[1:], {"ok": True, "text": "Noted; `/rl undo`.", "data": {"turn": "t"}})
    assert shown in view.shown[-1]
    assert chat.rated == (["t"] if shown else [])
