# SPDX-License-Identifier: Apache-2.0
"""Probes side by side: none hides, delays or stops another, and no line shows a token."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot import hookimpl
from goodbot.api.setup import Check, CheckState, Examined, Probe, fail, ok, warn
from goodbot.base.deadline import within
from goodbot.base.errors import ConfigError, GoodbotError, NewerDataError
from goodbot.cli.doctor import exit_code, parts, run

from tests.core.cli.doctor.examining import examined
from tests.support import patience


def probe(name: str, run: Any, seconds: float = 0.0) -> Probe:
    return Probe(name=name, run=run, seconds=seconds or patience(5))


async def well(_: Examined) -> Sequence[Check]:
    return [ok("well", "it is")]


async def waits_for_ever(_: Examined) -> Sequence[Check]:
    await asyncio.Event().wait()
    return []


async def blocks(_: Examined) -> Sequence[Check]:
    time.sleep(60)  # noqa: ASYNC251  as a plugin may, or a look at a dead disk
    return []


async def raises(_: Examined) -> Sequence[Check]:
    raise ValueError("boom")


async def leaves(_: Examined) -> Sequence[Check]:
    raise SystemExit(3)


async def babbles(_: Examined) -> Any:
    return ["all is well"]


async def refuses(_: Examined) -> Sequence[Check]:
    raise NewerDataError("from the future")


@pytest.mark.parametrize(
    ("bad", "text", "code"),
    [
        (waits_for_ever, "no answer within 0.2 s", 1),
        (blocks, "no answer within 0.2 s", 1),
        (raises, "this probe failed: ValueError: boom", 1),
        (leaves, "this probe failed: SystemExit: 3", 1),
        (babbles, "something else than checks", 1),
        (refuses, "from the future", 78),
    ],
)
def test_one_bad_probe_does_not_hide_the_others(bad: Any, text: str, code: int, tmp_path: Path) -> None:
    made = [probe("first", well), probe("bad", bad, 0.2 if "0.2 s" in text else 0.0), probe("last", well)]
    checks = list(run(made, examined(tmp_path)))
    assert [check.part for check in checks] == ["well", "bad", "well"]
    assert (checks[1].state, text in checks[1].text) == (CheckState.FAIL, True)
    assert exit_code(checks) == code
    blocked = any(thread.name == "probe bad" for thread in threading.enumerate())
    assert blocked or bad is not blocks, "it is left behind, not waited for"


def test_probes_that_wait_do_so_together(tmp_path: Path) -> None:
    all_of_them = threading.Barrier(8)

    async def waits(_: Examined) -> Sequence[Check]:
        await asyncio.to_thread(all_of_them.wait, patience(20))
        return [ok("waited", "for the seven others")]

    made = [probe("p", waits, patience(30))] * 8
    found = [check.text for check in run(made, examined(tmp_path))]
    assert found == ["for the seven others"] * 8


def test_the_exit_code_says_most() -> None:
    assert exit_code([]) == 0
    assert exit_code([ok("a", ""), warn("b", "")]) == 0
    assert exit_code([warn("b", ""), fail("c", "")]) == 1
    assert exit_code([fail("c", ""), fail("d", "", exit_code=ConfigError.exit_code)]) == 2
    assert exit_code([fail("e", "", exit_code=78), fail("d", "", exit_code=2)]) == 78


def test_no_line_shows_a_token(tmp_path: Path) -> None:
    token = "123456789:AAsecret-secret"

    async def careless(_: Examined) -> Sequence[Check]:
        raise RuntimeError(f"GET https://api.example/bot{token}/getMe failed")

    async def thoughtless(_: Examined) -> Sequence[Check]:
        return [warn("fix", token, f"curl {token}")]

    seen = examined(tmp_path, environ={"GOODBOT_TELEGRAM_TOKEN": token})
    checks = list(run([probe("careless", careless), probe("thoughtless", thoughtless)], seen))
    assert token not in repr(checks)
    assert "bot***/getMe" in checks[0].text


class Lamp:
    """A plugin with probes."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers

    @hookimpl
    def register_probe(self) -> Any:
        if isinstance(self.answers[0], Exception):
            raise self.answers[0]
        return list(self.answers)


def of_plugins(home: Path, *plugins: object) -> list[Check]:
    seen = examined(home, "", *plugins)
    return list(run(parts.of_plugins(seen), seen))


def test_plugins_bring_probes_and_each_line_says_whose(tmp_path: Path) -> None:
    async def bulb(seen: Examined) -> Sequence[Check]:
        return [warn("bulb", f"flickers at {seen.config.home.name}", "change it")]

    [check] = of_plugins(tmp_path / "home", Lamp(probe("bulb", bulb)))
    assert (check.part, check.text) == ("extra-0: bulb", "flickers at home")


def test_a_plugin_without_its_probe_is_named(tmp_path: Path) -> None:
    found = of_plugins(tmp_path, Lamp(RuntimeError("no bulb")), Lamp("bulb"), Lamp(probe("bulb", raises)))
    assert [check.state for check in found] == [CheckState.FAIL] * 3
    assert [check.part for check in found] == ["extra-0", "extra-1", "extra-2: bulb"]
    assert "no bulb" in found[0].text
    assert "returned str, not Probe" in found[1].text
    assert "ValueError: boom" in found[2].text


def test_what_blocks_is_left_behind() -> None:
    assert within(patience(5), lambda: 3) == 3
    with pytest.raises(TimeoutError):
        within(0.1, lambda: time.sleep(60))

    def refuse() -> None:
        raise GoodbotError("refused")

    with pytest.raises(GoodbotError, match=r"^refused$"):
        within(patience(5), refuse)
