# SPDX-License-Identifier: Apache-2.0
"""What `status` and `why` tell whom: the reason of a failure may name a file or an account."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import sentences
from goodbot.api.fingerprint import ServedAs
from goodbot.api.sentences import Condition
from goodbot.api.texts import catalogue
from goodbot.commands.state import Public, Status
from goodbot.inference.servers.health import VersionHealth
from goodbot.store import runs

from tests.core.builders import Bot, open_bot
from tests.core.learning.training.test_scheduler import Veto, rest

PRIVATE = "CANARY"


def status(**public: Any) -> Status:
    """One in which all that concerns the machine and other people holds a canary."""
    plain = {"str": PRIVATE, "str | None": PRIVATE, "int": 7, "float": 7.0, "bool": True}
    of_others: dict[str, Any] = {
        one.name: plain.get(str(one.type), [PRIVATE])
        for one in fields(Status)
        if one.name not in {shown.name for shown in fields(Public)}
    }
    aside = {"answers": 2, "run": 1, "kind": "nan", "reason": PRIVATE}
    of_others |= {
        "proof": VersionHealth(version=1, verdict=ServedAs.BASE, why=PRIVATE),
        "tenancy": None,
        "connectors": {PRIVATE: PRIVATE},
        "judged": dict.fromkeys(("good", "bad", "neither", "closed", "waiting", "failed"), 1)
        | {"by": PRIVATE},
    }
    of_others |= {"alarms": [{"text": PRIVATE}], "set_aside": [aside]}
    of_others["last_run"] = {"metrics": {}, "state": "failed", "model": "tiny", "told": PRIVATE}
    return Status(**of_others, **public)


@pytest.mark.parametrize("training", [None, {"phase": "train", "step": 3, "steps": 6}])
@pytest.mark.parametrize("server", ["up", "down"])
@pytest.mark.parametrize("tainted", [False, True])
def test_the_public_half_of_a_status_is_made_of_public_fields_alone(
    training: Mapping[str, Any] | None, server: str, tainted: bool
) -> None:
    private = {"state": "failed", "reason": PRIVATE}
    found = status(
        model="tiny",
        version=1,
        off=False,
        tainted=tainted,
        tainted_by="a rating has changed",
        server=server,
        starting="",
        store="ok",
        training=training,
        waits="",
        ratings=3,
        needed=40,
        condition=Condition(name="unsuccessful", facts={"wanted": 2}, private=private),
    )
    assert PRIVATE not in "\n".join(found.for_everybody())
    assert PRIVATE in "\n".join(found.for_owners())


def test_programs_read_in_english_why_and_no_code() -> None:
    found = status(
        **dict.fromkeys(("off", "tainted"), False),
        **dict.fromkeys(("model", "server", "starting", "store", "waits"), ""),
        **dict.fromkeys(("version", "ratings", "needed"), 1),
        training=None,
        tainted_by=runs.CHANGED,
        condition=sentences.met("replaces", said=runs.CHANGED),
    ).for_programs()
    assert found["tainted_by"] == found["condition"]["facts"]["said"] == sentences.clause_of(runs.CHANGED)


def test_no_condition_tells_everybody_what_is_private() -> None:
    """Whatever its name: a private fact is not among those that its public words are made of."""
    facts = dict.fromkeys(("wanted", "said", "until", "time", "available", "needed"), "1")
    numbers = {"megabytes": 500, "load": 0.5, "limit": 0.5, "step": 1, "steps": 2}
    private = {"state": "failed", "reason": PRIVATE}
    keys = [key.removeprefix("wait_") for key in catalogue("en") if key.startswith("wait_")]
    for name in ({*keys, *sentences._SAID, "unsuccessful"}) - {"failed", "refused"}:
        one = Condition(name=name, facts={**facts, **numbers}, private=private)
        assert PRIVATE not in one.for_everybody()
        assert one.for_everybody() in one.for_owners()


async def failed(bot: Bot) -> None:
    bot.fake.set(train="nan")
    await bot.rated(10)
    assert await rest(bot) == 3


async def test_why_a_training_failed_is_told_to_owners_in_private(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto", min_ratings=10) as bot:
        await failed(bot)
        await bot.command("enable", channel="#room")
        for command in ("status", "why"):
            alone = await bot.command(command)
            assert "The loss was nan." in alone
            for user, channel in (("owner", "#room"), ("rater", "#room"), ("rater", "")):
                where = {"user": user, "channel": channel} if channel else {"user": user}
                told = await bot.command(command, **where)
                assert "new ratings until another try" in told.lower()
                assert "nan" not in told, (command, user, channel)


async def test_what_a_plugin_says_is_told_whole(tmp_path: Path) -> None:
    """A bracket in somebody's words does not end what is private."""
    veto = Veto(training="a game is on (the final); it ends at eight")
    async with open_bot(tmp_path, schedule="auto", extra=(veto,)) as bot:
        await bot.rated(8)
        assert await rest(bot) == 0
        assert "a game is on (the final)" in await bot.command("status", user="rater")
