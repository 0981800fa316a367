# SPDX-License-Identifier: Apache-2.0
"""`goodbot chat` as a person sees it, on a pty."""

from __future__ import annotations

import os
import signal

from tests.cli.program import Bot, need_backend, until
from tests.cli.terminal import Person

DOWN = "not running"


def test_it_starts_a_goodbot_talks_rates_and_stops_it(bot: Bot) -> None:
    need_backend()
    with Person(bot.home, "chat", "--demo-model") as ada:
        ada.sees("starting the model…", "type a message", "0 of 40 ratings, 40 more until the next training")
        ada.type("What is the capital of France?\r")
        screen = ada.sees("› What is the capital of France?", "[demo model]", "g good · b bad · s skip")
        assert "u undo" not in screen, "there is nothing to undo yet"
        ada.press("g")
        ada.sees("👍 Good. 1 of 40 ratings (39 to go).", "› u undo")
        ada.press("u")
        ada.sees("Taken back. 0 of 40", "› g good")
        ada.press("b")
        ada.sees("👎 Bad. 1 of 40")
        ada.type("next\r")
        ada.until(lambda screen: screen.count("[demo model]") == 2 and "› g good" in screen)
        ada.type("/status\r")
        ada.sees("› /status", "the base model answers (tiny)")
        pid = bot.json("status")["pid"]
        ada.press("\x04")
        assert ada.ends() == 0
        assert "› g good" not in ada.look(), "only what was said stays on the screen"
    until(lambda: not _alive(pid))
    assert DOWN in bot.call("status").stdout
    assert [turn["value"] for turn in bot.json("history")["turns"]] == [None, -1.0]


def test_it_attaches_to_a_running_one_and_leaves_it_running(running: Bot) -> None:
    with Person(running.home, "chat") as ada:
        ada.sees("type a message")
        assert "starting" not in ada.look()
        ada.type("Hello\r")
        ada.sees("g good")
        ada.type("/quit\r")
        assert ada.ends() == 0
    assert running.json("status")["pid"] == running.process.pid


def test_a_key_begins_a_message_when_text_follows(running: Bot) -> None:
    with Person(running.home, "chat") as ada:
        ada.type("Hello\r")
        ada.sees("g good")
        before = running.json("status")["ratings"]
        ada.type("2")
        ada.type("+")
        ada.type("2?\r")
        ada.sees("› 2+2?")
        ada.until(lambda screen: screen.count("[demo model]") == 2 and "› g good" in screen)
        ada.type("g")
        ada.type("\x7f")  # it was no rating, and is no letter any more
        ada.type("s\r")
        ada.press("1")
        ada.press("2 o'clock?")
        screen = ada.sees("› 12 o'clock?")
        assert "👎" not in screen
        assert "👍" not in screen
        assert running.json("status")["ratings"] == before


def test_digits_are_stars_as_in_the_browser(running: Bot) -> None:
    with Person(running.home, "chat", columns=60) as ada:
        ada.type("Hello\r")
        ada.sees("› g good · b bad · s skip · 1–5 stars · or write")
        ada.type("4\r")
        ada.sees("★ 4 of 5 stars.", "› u undo")
        assert running.json("history")["turns"][0]["value"] == 0.5
        ada.press("u")
        ada.sees("Taken back.", "› g good")
        ada.press("3")
        ada.sees("★ 3 of 5 stars.", "› u undo")
        ada.type("Hello\r")
        ada.sees("› g good · b bad · s skip · 1–5 stars · u undo · or write")


def test_a_space_before_it_makes_a_key_a_message(running: Bot) -> None:
    with Person(running.home, "chat") as ada:
        ada.type("How many?\r")
        ada.sees("g good")
        ada.press(" ")
        ada.press("4")
        ada.type("\r")
        ada.until(lambda screen: screen.count("[demo model]") == 2 and "› g good" in screen)
        assert "\n› 4\n" in ada.look()
    plain = running.call("chat", input="How many?\n 4\n4\n")
    assert (plain.stdout.count("[demo model]"), plain.returncode) == (2, 0)
    assert "★ 4 of 5 stars." in plain.stderr
    assert [turn["value"] for turn in running.json("history", "4")["turns"]] == [0.5, None, None, None]
    early = running.call("chat", input="4\n")
    assert (early.stdout, early.returncode) == ("", 1)
    assert "a space before it makes it a message" in early.stderr


def test_pasted_lines_are_one_message_and_no_rating(running: Bot) -> None:
    with Person(running.home, "chat") as ada:
        ada.type("Hello\r")
        ada.sees("g good")
        ada.press("\x1b[200~2\x1b[201~")
        ada.sees("› 2\n")
        ada.press("\x1b[200~ lines\r\nin one\x1b[201~")
        ada.sees("› 2 lines\n  in one\n")
        ada.type("\r")
        ada.until(lambda screen: screen.count("[demo model]") == 2 and "› g good" in screen)
        assert "2 lines" in running.json("history")["turns"][0]["prompt"]


def test_editing_and_ctrl_c(running: Bot) -> None:
    with Person(running.home, "chat") as ada:
        ada.sees("type a message")
        ada.type("Hxllo thxre\x17\x1b[D\x1b[D\x1b[D\x1b[D\x1b[D\x1b[3~e\x05bot")
        ada.sees("› Hello bot")
        ada.press("\x03")
        ada.sees("type a message")
        ada.type("x" * 300)
        screen = ada.look(0.3)
        assert max(map(len, screen.split("\n"))) < 80, "a long line scrolls sideways"
        ada.press("\x15")
        ada.press("\x1b")
        ada.press("\x03")
        ada.sees("Ctrl-C again leaves.")
        ada.type("\x03")
        assert ada.ends() == 0


def test_two_chats_and_a_rating_in_the_other(running: Bot) -> None:
    with Person(running.home, "chat") as ada, Person(running.home, "chat") as bob:
        ada.sees("type a message")
        bob.sees("type a message")
        ada.type("Hello\r")
        bob.sees("(another chat) › Hello", "[demo model]", "g good")
        bob.press("g")
        ada.sees("👍 Good.", "› u undo")
        ada.press("u")
        bob.sees("Taken back.", "› g good")


def test_without_colour_and_on_a_dumb_terminal(running: Bot) -> None:
    with Person(running.home, "chat", NO_COLOR="1") as ada:
        ada.sees("type a message")
        ada.type("\x04")
        assert ada.ends() == 0
        assert "\x1b[2m" not in ada.raw
        assert "\x1b[1m" not in ada.raw
    with Person(running.home, "chat", TERM="dumb") as ada:
        ada.sees("/quit\n>")
        ada.type("Hello\r")
        ada.sees("[demo model]")
        ada.type("g\r")
        ada.sees("Good.")
        ada.type("\x04")
        assert ada.ends() == 0
        assert "\x1b" not in ada.raw


def test_a_narrow_window_is_no_trouble(running: Bot) -> None:
    with Person(running.home, "chat", columns=30) as ada:
        ada.type("What is the capital of France?\r")
        screen = ada.sees("g good")
        assert max(map(len, screen.split("\n"))) <= 30


def test_leaving_waits_for_a_training_unless_told_not_to(bot: Bot) -> None:
    need_backend()
    bot.home.mkdir(mode=0o700)
    toml = "[training]\nmin_ratings = 4\nheld_out = 1\nidle_seconds = 0.1\nmax_load = 1.0\n"
    # So many steps that it is still under way when somebody leaves.
    toml += "[training.settings]\nsteps = 100000\nmax_passes = 100000\n"
    (bot.home / "config.toml").write_text(toml)
    with Person(bot.home, "chat", "--demo-model") as ada:
        for number in range(4):
            ada.type(f"What is {number}+1?\r")
            ada.until(lambda screen, n=number: screen.count("[demo") > n and "› g good" in screen)
            ada.type("gb"[number % 2] + "\r")  # all alike would teach nothing
        ada.until(lambda screen: "loading ·" in screen or "learning" in screen)
        ada.type("\x04")
        ada.sees("a training is under way: waiting for it to end")
        ada.type("\x03")
        ada.sees("stopping now")
        assert ada.ends() == 0
    assert DOWN in bot.call("status").stdout
    assert bot.json("status")["last_run"]["state"] == "running", "the next start goes on with it"


def test_a_closed_window_stops_what_it_started(bot: Bot) -> None:
    need_backend()
    with Person(bot.home, "chat", "--demo-model") as ada:
        ada.sees("type a message")
        pid = bot.json("status")["pid"]
        ada.process.send_signal(signal.SIGHUP)
        assert ada.ends() == 128 + signal.SIGHUP
    assert not _alive(pid)


def test_the_daemon_dies_under_it(bot: Bot) -> None:
    need_backend()
    with Person(bot.home, "chat", "--demo-model") as ada:
        ada.sees("type a message")
        os.kill(bot.json("status")["pid"], signal.SIGKILL)
        ada.sees("goodbot has ended.")
        assert ada.ends() == 1
    bot.start()
    with Person(bot.home, "chat") as ada:
        ada.sees("type a message")
        bot.stop()
        ada.sees("this chat waits for it")
        bot.start()
        ada.sees("goodbot is back.")
        ada.type("Hello\r")
        ada.sees("[demo model]")


def test_no_model_is_a_sentence(bot: Bot) -> None:
    with Person(bot.home, "chat") as ada:
        assert ada.ends() == 2
        assert "no model is configured" in ada.look()
        assert "Traceback" not in ada.look()
    done = bot.call("chat")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("goodbot: no model is configured")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
