# SPDX-License-Identifier: Apache-2.0
"""Signed, in order, again and again until it is taken, and once by its id."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from goodbot.base.errors import ConfigError, StoreError, UsageError
from goodbot.base.outward import UndeliveredError
from goodbot.config.secrets import Secrets
from goodbot.features.webhooks import sending
from goodbot.features.webhooks.outbox import derived
from goodbot.features.webhooks.plugin import KEY

from tests.core.builders import until
from tests.core.webhooks.receiving import Got, Laid, key_of, receiver, running, signed_by, webhooks
from tests.support import patience

DAY = 86400.0


async def next_try(host: Laid, seconds: float) -> None:
    """Wait until it waits so long, and let that pass."""
    await until(lambda: host.clock.slept[-1:] == [seconds])
    host.clock.slept.clear()
    host.clock.advance(seconds)


async def test_each_is_signed_and_the_order_is_kept() -> None:
    host = Laid()
    async with receiver() as got, running(webhooks(host, crm=got.settings())):
        host.lay("a", "b")
        await until(lambda: host.clock.slept)
        host.clock.advance(60)
        await until(lambda: len(got.bodies) == 2)
    assert [one["id"] for one in got.events] == ["a", "b"]
    assert got.events[0].keys() == {"id", "type", "time", "data"}
    assert got.events[0]["time"] == "1970-01-01T00:00:01.000+00:00"
    for headers, body, event in zip(got.headers, got.bodies, got.events, strict=True):
        assert headers["Goodbot-Delivery"] == event["id"]
        assert headers["Content-Type"] == "application/json"
        assert signed_by(key_of("crm"), headers, body)
        assert not signed_by(key_of("other"), headers, body)
        assert not signed_by(key_of("crm"), headers, body + b" ")


async def test_a_person_is_the_same_one_for_one_receiver_and_nobody_for_two() -> None:
    host = Laid()
    host.lay("a", "b")
    async with (
        receiver() as one,
        receiver() as two,
        running(webhooks(host, one=one.settings(), two=two.settings())),
    ):
        await until(lambda: len(one.bodies) == len(two.bodies) == 2)
    first, again, other = (one["data"]["person"] for one in (*one.events, two.events[0]))
    assert first == again != other
    assert derived(key_of("one"), "slack:U1")[:16] not in first, "who gets it cannot try every id"
    assert b"U1" not in b"".join(one.bodies + two.bodies)


async def test_it_is_tried_again_after_an_error_a_silence_and_a_closed_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Laid()
    host.lay("a", "b")
    async with receiver(got=Got(0, answers=[500, 0])) as got:
        made = webhooks(host, crm=got.settings())
        task = asyncio.create_task(made.run())
        with monkeypatch.context() as patched:  # for the silent one alone
            await until(lambda: host.clock.slept == [1])
            patched.setattr(sending, "SECONDS", patience(0.5))
            await next_try(host, 1)
            assert "answers 500" in host.kept["state"]
            await until(lambda: host.clock.slept == [2])
        assert "no answer within" in host.kept["state"]
    await next_try(host, 2)  # nobody is at the door
    await until(lambda: host.clock.slept == [4])
    assert "cannot be reached" in host.kept["state"]
    async with receiver(got=got):
        await next_try(host, 4)
        await until(lambda: len(got.bodies) == 4)
    task.cancel()
    assert [one["id"] for one in got.events] == ["a", "a", "a", "b"], "what comes behind waits"
    assert {one["Goodbot-Delivery"] for one in got.headers[:3]} == {"a"}


async def test_owners_are_told_after_three_days_and_of_the_end() -> None:
    host = Laid()
    host.lay("a")
    async with receiver(got=Got(0, answers=[503] * 90)) as got, running(webhooks(host, crm=got.settings())):
        for tries in range(12):
            await next_try(host, float(2**tries))
        for _ in range(70):
            await next_try(host, 3600.0)
        assert host.troubles == {}
        await next_try(host, 3600.0)
        await until(lambda: host.troubles)
        assert host.troubles["crm"] == "nothing has been taken for 3 days: it answers 503"
        got.answers.clear()
        await next_try(host, 3600.0)
        await until(lambda: host.troubles == {})


async def test_three_days_are_three_though_our_clock_was_set_back_since_it_fails() -> None:
    host = Laid()
    host.lay("a")
    async with receiver(got=Got(0, answers=[503] * 9)) as got, running(webhooks(host, crm=got.settings())):
        await until(lambda: host.clock.slept == [1])
        host.clock.jump(-365 * DAY)
        await next_try(host, 1)
        await until(lambda: host.clock.slept == [2])
        host.clock.jump(3 * DAY)
        await next_try(host, 2)
        await until(lambda: host.troubles)


async def test_one_that_fails_keeps_no_other_waiting() -> None:
    host = Laid()
    host.lay("a", "b")
    async with (
        receiver(got=Got(0, answers=[500])) as bad,
        receiver() as good,
        running(webhooks(host, bad=bad.settings(), good=good.settings())),
    ):
        await until(lambda: len(good.bodies) == 2)
        assert len(bad.bodies) == 1


async def test_what_is_refused_for_good_is_skipped_by_hand_and_nothing_else_is() -> None:
    host = Laid()
    host.lay("a", "b")
    async with (
        receiver(got=Got(0, answers=[413])) as got,
        running(webhooks(host, crm=got.settings())) as made,
    ):
        await until(lambda: "answers 413" in host.kept.get("state", ""))
        text, data = await made.asked(["skip", "crm"])
        assert text.startswith("crm is not told of this rating of 19")
        assert text.endswith(": a")
        assert data == {"skipped": {"id": "a", "type": "rating", "time": 1.0}}
        await until(lambda: '"2"' in host.kept["state"])  # what comes behind it is tried at once
        assert [one["id"] for one in got.events] == ["a", "b"]
        host.lay("c")
        with pytest.raises(UsageError, match="refused nothing"):
            await made.asked(["skip", "crm"])


async def test_a_fault_of_ours_with_one_ends_no_other_and_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    host = Laid({"state": '{"bad": {"mark": "0", "of_a_newer_goodbot": 1}}'})
    host.lay("a")
    async with receiver() as bad, receiver() as good:
        made = webhooks(host, bad=bad.settings(), good=good.settings())

        async def broken(*_: Any) -> None:
            raise KeyError("id")

        monkeypatch.setattr(made._deliveries["bad"], "_send", broken)
        async with running(made):
            await until(lambda: good.bodies and "KeyError" in host.kept["state"])
            assert host.clock.slept.count(1) == 1, "it is tried again like everything"
    assert "the webhook bad has failed: KeyError: 'id'" in caplog.text


async def test_a_database_that_fails_is_not_the_receivers_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Laid()
    host.lay("a")

    async def busy(*_: Any) -> None:
        raise StoreError("the database is busy")

    async with receiver() as got:
        made = webhooks(host, crm=got.settings())
        with monkeypatch.context() as patched:
            patched.setattr(host, "happened", busy)
            task = asyncio.create_task(made.run())
            await next_try(host, 1)
            await until(lambda: host.clock.slept == [2])
            [told] = (await made.asked(["list"]))[1]["receivers"]
            assert (told["failing_since"], told["error"]) == (None, "")
        await next_try(host, 2)
        await until(lambda: got.bodies)
        task.cancel()


async def test_what_was_sent_and_not_noted_comes_again_under_the_same_id() -> None:
    kept: dict[str, str] = {}
    host = Laid(kept)
    host.lay("a", "b")
    async with receiver(got=Got(0, answers=[200, 0])) as got:
        async with running(webhooks(host, crm=got.settings())):
            await until(lambda: len(got.bodies) == 2)  # the second is there, and its answer is not
        again = Laid(kept)
        again.things = host.things
        async with running(webhooks(again, crm=got.settings())):
            await until(lambda: len(got.bodies) == 3)
    assert [one["Goodbot-Delivery"] for one in got.headers] == ["a", "b", "b"]


async def test_where_its_place_cannot_be_kept_nothing_more_is_sent_until_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = Laid()
    host.lay("a", "b")

    async def full(*_: Any) -> None:
        raise StoreError("the disk is full")

    async with receiver() as got:
        with monkeypatch.context() as patched:
            patched.setattr(host, "set", full)
            task = asyncio.create_task(webhooks(host, crm=got.settings()).run())
            for wait in (1, 2):
                await next_try(host, wait)
            await until(lambda: host.clock.slept == [4])
            assert len(got.bodies) == 1
        await next_try(host, 4)
        await until(lambda: len(got.bodies) == 2 and '"2"' in host.kept["state"])
        task.cancel()
    assert [one["id"] for one in got.events] == ["a", "b"]
    assert "full" not in host.kept["state"]


async def test_its_command_lists_tests_and_tells_the_key() -> None:
    host = Laid()
    host.lay("a", "b")
    async with (
        receiver(got=Got(0, answers=[500, 500])) as got,
        running(webhooks(host, crm=got.settings())) as made,
    ):
        await until(lambda: "answers 500" in host.kept.get("state", ""))
        text, data = await made.asked(["list"])
        assert text.startswith(f"crm: 127.0.0.1:{got.port}, rating, training, version; nothing taken yet;")
        assert "2 waiting; fails since 20" in text
        assert text.endswith(": it answers 500")
        assert data["receivers"][0]["waiting"] == 2
        assert (await made.asked(["key", "crm"]))[0] == key_of("crm")
        with pytest.raises(UndeliveredError, match="it answers 500"):
            await made.asked(["test", "crm"])
        assert (await made.asked(["test", "crm"]))[0] == "crm has taken a ping."
        assert got.events[2]["type"] == "ping"
        await until(lambda: len(got.bodies) == 5)  # what waited is tried at once
        assert (await made.asked(["list"]))[1]["receivers"][0]["failing_since"] is None
        for words in (["test", "crn"], ["skip", "crn"], ["test"], ["lost"]):
            with pytest.raises(UsageError, match=r"crm|type `goodbot webhooks`"):
                await made.asked(words)


async def test_another_name_begins_now_and_one_that_is_gone_is_forgotten() -> None:
    host = Laid({"state": '{"old": {"mark": "7"}, "crm": {"mark": "1"}}'})
    host.lay("a", "b")
    async with receiver() as got, running(webhooks(host, crm=got.settings())):
        await until(lambda: len(got.bodies) == 1 and "old" not in host.kept["state"])
    assert got.events[0]["id"] == "b"


def test_a_short_secret_is_refused() -> None:
    host = Laid()
    host.secrets = Secrets((KEY,), {KEY: "short"})
    with pytest.raises(ConfigError, match="take 16 characters or more"):
        webhooks(host)
