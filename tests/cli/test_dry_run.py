# SPDX-License-Identifier: Apache-2.0
"""`goodbot train --dry-run` as a person types it."""

from __future__ import annotations

from tests.cli.program import Bot, need_backend


def test_with_no_ratings_it_says_why_and_exits_with_2(bot: Bot) -> None:
    need_backend()
    done = bot.call("train", "--dry-run")
    assert (done.returncode, done.stderr) == (2, "")
    nothing, now = done.stdout.splitlines()
    assert nothing == "There is nothing to train on: rate some answers first."
    why = "Now: it does not start by itself: 0 of 40 ratings, 40 more until the next training."
    assert now.startswith(why), "what else the machine does may follow"


def test_the_real_worker_s_numbers_reach_the_terminal(running: Bot) -> None:
    running.call("chat", input="Hello\ng\nWhat is 1+1?\nb\nWhat is 2+2?\ng\nWhat is 3+4?\nb\n")
    before = running.json("status")
    data = running.json("train", "--dry-run")
    assert data["trains"]
    assert data["train"] + data["held_out"] == before["ratings"] >= 4
    estimate = data["estimate"]
    assert estimate["train"] == data["train"]
    # Where others have the processor a step would take too long to be tried; it is counted then.
    assert estimate["how"] in ("measured", "counted")
    assert estimate["total"]["cpu"] > estimate["parts"]["load"]["cpu"] > 0
    assert (estimate["peak"] > 10**8) == (estimate["how"] == "measured")
    assert data["learning"].startswith("balanced, 1.0M dense: rate ")
    assert data["lora"] > 10_000
    after = running.json("status")
    assert (after["ratings"], after["last_run"]) == (before["ratings"], before["last_run"])
