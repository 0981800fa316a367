# SPDX-License-Identifier: Apache-2.0
"""Before anything is set up: nothing is made, and no model is named that nobody has chosen."""

from __future__ import annotations

from tests.cli.program import Bot


def test_status_says_what_to_do_and_makes_nothing(bot: Bot) -> None:
    done = bot.call("status")
    assert (done.returncode, "no model is configured: `goodbot init`" in done.stdout) == (0, True)
    assert "tiny" not in done.stdout
    data = bot.json("status")
    assert (data["model"], data["server"]) == (None, "stopped")
    assert not bot.home.exists()


def test_status_of_a_bot_that_was_only_tried(bot: Bot) -> None:
    bot.call("history")  # makes the data
    done = bot.call("status")
    assert "no model is configured" in done.stdout
    assert "tiny" not in done.stdout
    assert "0 of 40 ratings, 40 more until the next training" in done.stdout
    assert bot.json("status")["model"] is None


def test_the_demo_model_does_not_silently_give_way_to_a_configured_one(bot: Bot) -> None:
    bot.home.mkdir(mode=0o700)
    (bot.home / "config.toml").write_text('[model]\npath = "/models/mine"\n')
    done = bot.call("run", "--demo-model")
    assert done.returncode == 2
    assert "the config names a model (/models/mine): leave --demo-model away" in done.stderr
