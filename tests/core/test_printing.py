# SPDX-License-Identifier: Apache-2.0
"""What others wrote, on its way to a terminal or a log."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from goodbot import cli
from goodbot.base import log, printing
from goodbot.base.errors import GoodbotError

FOREIGN = "a\x1b]0;title\x07b\u202ec\x9bd\x1b[2Je\r\nf"


@pytest.mark.parametrize("error", [GoodbotError(FOREIGN), OSError(2, FOREIGN, FOREIGN)])
def test_s8_an_error_is_told_without_what_moves_a_terminal(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(_: object) -> None:
        raise error

    monkeypatch.setattr("goodbot.cli.parser.parse", fails)
    assert cli.main(["status"]) == 1
    assert capsys.readouterr().err.rstrip("\n").replace("\n", "").isprintable()


@pytest.mark.parametrize("within", ["the program", "a thread"])
def test_s8_what_nobody_catches_moves_no_terminal_either(within: str) -> None:
    code = f"""
import threading
from goodbot import cli
def fails(*_):
    raise TypeError({FOREIGN!r})
def thread(_):
    one = threading.Thread(target=fails)
    one.start(), one.join()
    raise SystemExit(1)
cli.parser.parse = {"fails" if within == "the program" else "thread"}
cli.main([])
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 1
    said = ended.stderr.decode()
    assert "Traceback" in said
    assert "TypeError: abcde" in said
    assert said.replace("\n", "").isprintable()


def test_s8_what_is_said_is_clean_and_what_is_drawn_is_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    printing.say(FOREIGN)
    assert capsys.readouterr().out == "abcde\nf\n"
    printing.draw("\x1b[2J")
    assert capsys.readouterr().out == "\x1b[2J"
    printing.say_json({"said": FOREIGN})
    assert capsys.readouterr().out.isascii()


def test_s8_a_log_holds_no_line_that_others_began() -> None:
    record = logging.LogRecord(
        "goodbot", logging.INFO, "", 0, "told: %s", (f"{FOREIGN}\n2026 INFO goodbot: forged",), None
    )
    first, *others = log.MaskingFormatter().format(record).split("\n")
    assert first.endswith("told: abcde")
    assert others == ["  f", "  2026 INFO goodbot: forged"]


def test_s8_an_entry_of_a_list_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    forged = "api:x\n    nothing else\r\x1b[2Kchanges\u2028\u2029\x85\x0b\u202e\ud800"
    printing.say_lines(["Was bleibt:", f"{forged} wird 🙂"])
    said = capsys.readouterr().out
    assert said == (
        "Was bleibt:\n"
        "api:x\\n    nothing else\\r\\x1b[2Kchanges\\u2028\\u2029\\x85\\x0b\\u202e\\ud800 wird 🙂\n"
    )
