# SPDX-License-Identifier: Apache-2.0
"""Strangers are without number: what they were told once is remembered of the newest of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.store import Store, raters, retention, settings

from tests.core.builders import open_bot, rows


async def test_s7_what_strangers_were_told_takes_no_more_and_more_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "STRANGERS", 10)
    store = await Store.open(tmp_path / "goodbot.db")
    try:
        await store.write(lambda db: settings.tell_once(db, "streak loopback:ada 7"))
        await store.write(lambda db: settings.tell_once(db, f"{raters.REFUSED}loopback:mallory"))
        await store.write(lambda db: settings.tell_stranger(db, "loopback:mallory"))
        for round_ in range(20):
            for number in range(12):
                key = f"{('', 'rate ', 'owners ')[number % 3]}loopback:{round_}-{number}"
                assert await store.write(lambda db, k=key: settings.tell_stranger(db, k))
                await retention.expire(store, 1.0, unrated_days=30)
                assert not await store.write(lambda db, k=key: settings.tell_stranger(db, k)), "once"
        found = {row[0] for row in await rows(store, "SELECT person FROM told")}
        assert len(found) <= 2 * 11 + 3
        newest = {f"loopback:19-{number}" for number in range(2, 12)}
        assert newest <= {one.split()[-1] for one in found}, "the newest stay"
        assert {"streak loopback:ada 7", "loopback:mallory"} <= found, "others, and the refused"
        assert not any("loopback:0-" in one for one in found)
    finally:
        await store.close()


async def test_s7_who_asked_before_the_newest_strangers_still_waits_for_an_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "STRANGERS", 2)
    async with open_bot(tmp_path) as bot:
        for who in ("s1", "s2", "s3"):
            assert (await bot.say("Hello?", user=who)).text
        await bot.store.write(settings.forget_strangers)
        assert (await bot.say("And now?", user="s1")).text == "", "told once"
        known = await bot.store.read(lambda db: raters.known(db, bot.app.registry.scope))
        assert {"loopback:s1", "loopback:s2", "loopback:s3"} <= set(known.asked)
