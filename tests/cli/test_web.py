# SPDX-License-Identifier: Apache-2.0
"""`goodbot web` as it is typed; what the link does is in tests/security/test_login.py."""

from __future__ import annotations

from tests.cli.program import Bot


def test_without_a_daemon_there_is_nothing_to_log_in_to(bot: Bot) -> None:
    for words in ([], ["--user", "ada"], ["--sign-out"]):
        done = bot.call("web", *words)
        assert done.returncode == 2
        assert done.stderr == ("goodbot: goodbot is not running: start it (`goodbot run`), then ask again\n")
    assert not (bot.home / "goodbot.db").exists(), "nothing was made"


def test_signing_out_is_for_everybody(bot: Bot) -> None:
    done = bot.call("web", "--sign-out", "--user", "ada")
    assert done.returncode == 2
    assert "leave --user away" in done.stderr


def test_a_goodbot_without_the_browser_says_how_to_set_it_up(running: Bot) -> None:
    done = running.call("web")
    assert done.returncode == 2
    assert "goodbot connect web" in done.stderr
