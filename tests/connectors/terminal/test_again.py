# SPDX-License-Identifier: Apache-2.0
"""Another answer in the terminal: it is offered after a bad rating, and asked for with `/again`."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from goodbot.api.actions import HINTS
from goodbot.api.commands import of
from goodbot.api.events import OrderKey, Outcome, PressEvent, Receipt
from goodbot_connectors.terminal.connector import TerminalConnector
from goodbot_connectors.terminal.conversation import Conversation
from goodbot_connectors.terminal.link import Link

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
    chat.rate(-1)
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


@pytest.mark.parametrize(("typed", "shown"), [("/yes", "👍"), ("/bad", "👎"), ("/status", "")])
def test_a_command_that_rates_marks_the_answer_by_any_of_its_names(
    typed: str, shown: str, tmp_path: Path
) -> None:
    view, daemon = View(), Daemon()
    chat = Conversation(cast("Link", daemon), tmp_path, view)
    chat._answered(typed[1:], {"ok": True, "text": "Noted; `/rl undo`.", "data": {"turn": "t"}})
    assert shown in view.shown[-1]
    assert chat.rated == (["t"] if shown else [])
