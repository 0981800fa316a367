# SPDX-License-Identifier: Apache-2.0
"""What a whole goodbot tells its receivers, and of whom it tells nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, Outcome, Receipt
from goodbot.api.feature import HappenedWanted
from goodbot.api.plugins import PluginHost
from goodbot.api.setup import Examined
from goodbot.base.errors import UsageError
from goodbot.base.outward import UndeliveredError
from goodbot.cli import main
from goodbot.config import Config
from goodbot.daemon.control import execute
from goodbot.features.webhooks import plugin
from goodbot.features.webhooks.plugin import KEY, Receiver
from goodbot.features.webhooks.sending import post, signature
from goodbot.store import happened, ledger, messages

from tests.architecture.source import ROOT
from tests.core.builders import Bot, add_turn, open_bot, rate, rows, until
from tests.core.webhooks.receiving import SECRET, Got, key_of, receiver, signed_by
from tests.support import free_port

ROOM, WORDS = "#room", "my daughter's name is Wilhelmina"


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY, SECRET)


@contextlib.asynccontextmanager
async def telling(home: Path, **to: Any) -> AsyncGenerator[Bot]:
    """A bot that is on in a shared channel, once it has begun to tell."""
    sections: dict[str, Any] = {"features": {"webhooks": {"to": to}}}
    async with open_bot(home, extra=(plugin,), sections=sections) as bot:
        await bot.command("enable", channel=ROOM)

        async def begun() -> bool:
            said = await execute(bot.app, "feature", ["webhooks", "list"])
            marks = await bot.app.manager.features._made["webhooks"].host.get("state")
            return bool(marks) and len(said.data["receivers"]) == len(to)

        await until(begun)
        yield bot


async def test_ratings_trainings_and_versions_arrive_signed(tmp_path: Path) -> None:
    async with receiver() as got, telling(tmp_path, crm=got.settings()) as bot:
        answers = [await bot.say(WORDS, channel=ROOM) for _ in range(8)]
        for answer in answers:
            await bot.react(answer, "👍")
        await bot.unreact(answers[0], "👍")
        await bot.react(answers[0], "👎")
        outcome = await bot.train()
        assert outcome.version == 1
        await until(lambda: len(got.bodies) == 12)
    events = got.events
    assert len({one["id"] for one in events}) == 12
    assert all(signed_by(key_of("crm"), h, b) for h, b in zip(got.headers, got.bodies, strict=True))
    ratings = [one["data"] for one in events if one["type"] == "rating"]
    assert [one["kind"] for one in ratings] == ["rate"] * 8 + ["retract", "rate"]
    assert [one["turn"] for one in ratings] == [*(one.turn for one in answers), *[answers[0].turn] * 2]
    assert (ratings[1]["value"], ratings[1]["stands"], ratings[1]["version"]) == (1.0, 1.0, 0)
    assert ratings[9]["stands"] == -1.0
    assert ratings[0].keys() == {
        *("kind", "value", "source", "turn", "platform", "person", "stands", "version")
    }
    assert re.fullmatch(r"person-[0-9a-f]{16}", ratings[0]["person"])
    assert len({one["person"] for one in ratings}) == 1
    [training] = [one["data"] for one in events if one["type"] == "training"]
    assert training == {
        "training": outcome.run,
        "state": "activated",
        "reason": "",
        "parent": 0,
        "version": 1,
        "answers": training["answers"],
    }
    assert training["answers"] == 8
    [version] = [one["data"] for one in events if one["type"] == "version"]
    assert version == {"version": 1, "parent": 0, "training": outcome.run}
    assert b"Wilhelmina" not in b"".join(got.bodies)
    assert b"owner" not in b"".join(got.bodies)


async def test_words_and_private_chats_go_out_only_where_the_config_says_so(tmp_path: Path) -> None:
    key = "sk-proj-" + "aB3" * 10
    async with receiver() as plain, receiver() as full:
        settings = full.settings(private_chats=True, words=True)
        async with telling(tmp_path, plain=plain.settings(), full=settings) as bot:
            await bot.command("share", "on")
            private = await bot.say(f"{WORDS}, my key is {key}")
            shared = await bot.say(WORDS, channel=ROOM)
            await bot.command("share", "off", user="rater")
            silent = await bot.say(WORDS, user="rater")
            await bot.react(private, "👍")
            await bot.react(silent, "👎", user="rater")
            await bot.react(shared, "👍")
            await until(lambda: len(full.bodies) == 2 and plain.bodies)
    assert [one["data"]["turn"] for one in plain.events] == [shared.turn]
    assert [one["data"]["turn"] for one in full.events] == [private.turn, shared.turn]
    assert WORDS in full.events[0]["data"]["question"]
    assert full.events[0]["data"]["answer"] == private.text
    assert key.encode() not in full.bodies[0], "keys are masked"


async def test_a_restart_loses_nothing_and_tells_what_was_not_acknowledged_again(tmp_path: Path) -> None:
    async with receiver(got=Got(0, answers=[0])) as got:
        async with telling(tmp_path, crm=got.settings()) as bot:
            first = await bot.say("one", channel=ROOM)
            await bot.react(first, "👍")
            await until(lambda: got.bodies)
            second = await bot.say("two", channel=ROOM)
            await bot.react(second, "👍")
        async with telling(tmp_path, crm=got.settings()):
            await until(lambda: len(got.bodies) == 3)
    assert [one["data"]["turn"] for one in got.events] == [first.turn, first.turn, second.turn]
    assert got.headers[0]["Goodbot-Delivery"] == got.headers[1]["Goodbot-Delivery"] == got.events[0]["id"]


async def test_of_who_is_forgotten_nothing_more_is_sent(tmp_path: Path) -> None:
    async with receiver(got=Got(0, answers=[500] * 99)) as got, telling(tmp_path, crm=got.settings()) as bot:
        theirs = await bot.say("hello", channel=ROOM)
        ours = await bot.say("hello", channel=ROOM)
        await bot.react(theirs, "👎", user="rater")
        await until(lambda: got.bodies)  # it is not taken, and waits
        await bot.react(ours, "👍")
        await bot.command("forget", "loopback:rater")
        await bot.command("forget", "loopback:rater yes")
        got.answers.clear()
        before = len(got.bodies)
        await until(lambda: got.bodies[before:] and got.events[-1]["data"]["turn"] == ours.turn)
    assert [one["data"]["turn"] for one in got.events[before:]] == [ours.turn]


async def test_a_rating_whose_answer_is_not_known_yet_keeps_none_waiting_and_is_not_lost(
    tmp_path: Path,
) -> None:
    wanted, room = (
        HappenedWanted(kinds=("rating",)),
        ChannelRef(connector="loopback", account="loopback", id=ROOM, kind=ChannelKind.SHARED),
    )
    async with open_bot(tmp_path) as bot:
        pool, accepted = bot.app.pool, Receipt(event_id="", outcome=Outcome.ACCEPTED)

        async def insert(id_: str, turn: str | None, message: str) -> None:
            event = rate(id_, 1, 1.0, message, channel=room)
            await bot.store.write(lambda db: ledger.insert(db, event, turn, "loopback:owner", accepted, 1e9))

        async def told(mark: str) -> tuple[str, str]:
            found, then = await bot.store.read(lambda db: happened.after(db, pool, wanted, mark))
            return found.data["turn"] if found else "", then

        for one in ("a", "b", "c", "late", "later"):
            await add_turn(bot.store, one, channel=room)
        _, mark = await told("")
        await insert("e1", None, "m1")
        await insert("e2", None, "m2")
        await insert("e3", "c", "c")
        turn, mark = await told(mark)
        assert turn == "c", "it does not wait for those"
        assert (await told(mark))[0] == ""
        for name, message in (("late", "m-m1"), ("later", "m-m2")):
            ref = MessageRef(channel=room, id=message)
            await bot.store.write(lambda db, n=name, r=ref: messages.attach(db, n, [r]))
        assert await bot.store.read(lambda db: happened.waiting(db, pool, wanted, mark)) == 2
        seen: list[str] = []
        while (found := await told(mark))[0]:
            seen.append(found[0])
            mark = found[1]
        assert seen == ["late", "later"]
        assert (await told(mark))[0] == ""


async def test_s9_a_mark_holds_the_newest_ratings_of_unknown_answers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd that rated what never became known filled the marks, and each step read all of them."""
    monkeypatch.setattr(happened, "OPEN", 3)
    room = ChannelRef(connector="loopback", account="loopback", id=ROOM, kind=ChannelKind.SHARED)
    wanted, accepted = HappenedWanted(kinds=("rating",)), Receipt(event_id="", outcome=Outcome.ACCEPTED)
    async with open_bot(tmp_path) as bot:

        async def insert(id_: str, turn: str | None, message: str) -> None:
            event = rate(id_, 1, 1.0, message, channel=room)
            await bot.store.write(lambda db: ledger.insert(db, event, turn, "loopback:owner", accepted, 1e9))

        async def told(mark: str) -> tuple[str, str]:
            found, then = await bot.store.read(lambda db: happened.after(db, bot.app.pool, wanted, mark))
            return found.data["turn"] if found else "", then

        for one in ("known", "late"):
            await add_turn(bot.store, one, channel=room)
        _, mark = await told("")
        for number in range(10):
            await insert(f"u{number}", None, f"m{number}")
        await insert("k", "known", "known")
        turn, mark = await told(mark)
        assert (turn, len(json.loads(mark)["rating"])) == ("known", 1 + 3)
        for number in range(10, 20):
            await insert(f"u{number}", None, f"m{number}")
            _, mark = await told(mark)
            assert len(json.loads(mark)["rating"]) == 1 + 3
        ref = MessageRef(channel=room, id="m-m19")
        await bot.store.write(lambda db: messages.attach(db, "late", [ref]))
        assert (await told(mark))[0] == "late"


async def test_a_long_queue_is_read_in_order_and_not_whole_for_each(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        wanted, kind = HappenedWanted(kinds=("rating",)), happened._KINDS["rating"]
        values = happened._values(bot.app.pool, wanted, [5, 3])
        query = f"EXPLAIN QUERY PLAN SELECT {kind.columns}{kind.rows} LIMIT 1"
        plan = [row[3] for row in await rows(bot.store, query, values) if row[1] == 0]
    assert "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan
    assert not any("TEMP B-TREE FOR ORDER" in step for step in plan)


async def test_the_command_asks_the_running_goodbot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with receiver() as got, telling(tmp_path, crm=got.settings()) as bot:
        said = await execute(bot.app, "feature", ["webhooks", "test", "crm"])
        assert said.text == "crm has taken a ping."
        with pytest.raises(UsageError, match=r"\[features.metrics\] is not in the config"):
            await execute(bot.app, "feature", ["metrics", "list"])
    for words in (["webhooks"], ["webhooks", "key", "crm"]):
        assert main(["--home", str(tmp_path / "none"), *words]) == 2
        assert "goodbot is not running: start it" in capsys.readouterr().err


async def test_the_status_and_the_doctor_name_one_that_has_failed_for_days(tmp_path: Path) -> None:
    async with receiver() as got, telling(tmp_path, crm=got.settings()) as bot:
        host = bot.app.manager.features._made["webhooks"].host
        host.trouble("crm", "nothing has been taken for 3 days: it answers 500")
        status = await bot.status()
        assert "webhooks.crm: nothing has been taken for 3 days" in await bot.command("status")
        config = Config(home=tmp_path, features={"webhooks": {}})
        examined = Examined(config=config, plugins=PluginHost(), environ={}, daemon=status)
        [check] = await plugin.register_probe().run(examined)
        assert (check.state, check.part, check.fix) == ("warn", "webhooks.crm", "goodbot webhooks")
        host.trouble("crm", "")
        assert "webhooks.crm" not in (await bot.status())["connectors"]


async def test_the_receiver_of_the_page_takes_what_is_signed_and_nothing_else(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "webhooks.md").read_text(encoding="utf-8")
    [code] = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    port = free_port()
    (tmp_path / "receiver.py").write_text(code.replace("9000", str(port)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "receiver.py"),
        cwd=tmp_path,
        env={**os.environ, "WEBHOOK_KEY": key_of("crm")},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    body, to = (
        b'{"id": "a", "type": "ping", "data": {}}',
        Receiver(url=f"http://127.0.0.1:{port}", local=True),
    )

    async def sent(key: str, ago: float = 0.0) -> str:
        try:
            await post(to, "a", body, signature(key, int(time.time() - ago), body))
        except UndeliveredError as error:
            return str(error)
        return "taken"

    async def up() -> bool:
        return "reached" not in await sent(key_of("crm"))

    try:
        await until(up)
        assert await sent(key_of("crm")) == "taken"
        assert await sent(key_of("other")) == "it answers 403"
        assert await sent(key_of("crm"), 3600) == "it answers 403", "an old one is nobody's twice"
    finally:
        process.terminate()
        out, _ = await process.communicate()
    assert b"ping" in out
