# SPDX-License-Identifier: Apache-2.0
"""Terminal, browser and programs of this machine are one person: one vote, one inbox, one `share`."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import goodbot_connectors.api
import goodbot_connectors.web
import pytest
from goodbot.access.inbox import viewer_of
from goodbot.api.commands import Grant
from goodbot.api.events import CommandEvent, OrderKey, Outcome, RatingEvent, RatingKind, Receipt, UserRef
from goodbot.base.errors import GoodbotError
from goodbot.config import HttpConfig, PrivacyConfig, ServingConfig
from goodbot.config.layout import DATABASE
from goodbot.daemon.control import execute
from goodbot.store import inspection, ledger, people, review_queue
from goodbot.testing import VirtualClock

from tests.core.builders import Bot, add_turn, check, open_bot, rows, until
from tests.core.made import CHANNEL

ME = f"terminal:{os.geteuid()}"
OWN = [ME, "api:me", "web:owner"]
API = {"owners": ["me"], "raters": ["ci", "other"]}


@contextlib.asynccontextmanager
async def machine(
    home: Path,
    port: int,
    api: dict[str, Any] | None = None,
    more: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncIterator[Bot]:
    """A bot of a terminal, a browser, the API, and a chat platform in memory."""
    sections = {"http": HttpConfig(port=port), "connectors": {"api": api or API, "web": {}}, **(more or {})}
    extra = (goodbot_connectors.api, goodbot_connectors.web)
    async with open_bot(home, extra=extra, sections=sections, terminal=True, **options) as bot:
        yield bot


def who(account: str) -> UserRef:
    connector, _, id_ = account.partition(":")
    return UserRef(connector=connector, account="here", id=id_)


async def asked(bot: Bot, account: str, id_: str, question: str = "Hello?") -> str:
    """An answer in somebody's private chat."""
    connector, _, name = account.partition(":")
    place = replace(CHANNEL, connector=connector, account="here", id=name)
    model = bot.app.model.name
    said = [{"role": "user", "content": question}]
    await add_turn(bot.store, id_, channel=place, talker=who(account), model=model, messages=said)
    return id_


async def rated(bot: Bot, account: str, id_: str, value: float, at: int = 1) -> None:
    connector, _, name = account.partition(":")
    place = replace(CHANNEL, connector=connector, account="here", id=name)
    event = RatingEvent(
        event_id=f"{account} {id_} {at}",
        order=OrderKey(at),
        user=who(account),
        channel=place,
        kind=RatingKind.RATE,
        turn=id_,
        source="button",
        value=value,
    )
    receipt = Receipt(event_id=event.event_id, outcome=Outcome.ACCEPTED)
    await bot.store.write(lambda db: ledger.insert(db, event, id_, account, receipt, float(at)))


async def labels(bot: Bot, id_: str) -> dict[str, Any]:
    return await bot.store.read(lambda db: ledger.labels(db, id_))


async def accounts(bot: Bot, account: str) -> Sequence[str]:
    return await bot.store.read(lambda db: people.accounts(db, account))


async def say(bot: Bot, command: str, *args: str) -> str:
    """What the terminal's user is answered."""
    return (await execute(bot.app, command, list(args))).text


async def seen(bot: Bot, account: str) -> set[str]:
    async def operation(db: Any) -> set[str]:
        viewer = await viewer_of(db, bot.app.authorization, who(account))
        assert viewer is not None
        return {one.turn for one in await review_queue.page(db, viewer, review_queue.Filter(), 50)}

    return await bot.store.read(operation)


async def standing(bot: Bot) -> tuple[int, int]:
    found = await bot.app.scheduler.standing()
    return found.available, found.waiting_for_consent


async def test_the_owner_s_accounts_here_are_one_vote_and_nobody_else_s(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        assert await accounts(bot, "web:owner") == sorted(OWN)
        for other in ("api:ci", "api:other", "loopback:owner"):
            assert await accounts(bot, other) == [other]
        await asked(bot, ME, "t1")
        for at, account in enumerate((ME, "web:owner", "api:me", "api:ci"), 1):
            await rated(bot, account, "t1", -1.0 if account == "api:me" else 1.0, at)
        assert await labels(bot, "t1") == {ME: -1.0, "api:ci": 1.0}, "the owner's last word counts"
        await check(bot)


async def test_what_was_rated_before_they_were_one_counts_once(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await asked(bot, ME, "t1")
        await bot.store.write(_as_an_older_one_left_it)
        await rated(bot, ME, "t1", 1.0, 1)
        await rated(bot, "web:owner", "t1", -1.0, 2)
        assert await labels(bot, "t1") == {ME: 1.0, "web:owner": -1.0}
    async with machine(tmp_path, unused_tcp_port) as bot:
        assert await labels(bot, "t1") == {ME: -1.0}


async def _as_an_older_one_left_it(db: Any) -> None:
    for table in ("links", "told", "switches"):
        await db.execute(f"DELETE FROM {table}")


async def test_an_unlink_lasts_over_a_restart(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        said = await say(bot, "people", "unlink", "web:owner")
        assert said == "web:owner is a person of its own, with a vote of its own."
        assert await accounts(bot, ME) == sorted([ME, "api:me"])
    async with machine(tmp_path, unused_tcp_port) as bot:
        assert await accounts(bot, "web:owner") == ["web:owner"]
        await say(bot, "people", "link", "web:owner")
        assert await accounts(bot, "web:owner") == sorted(OWN)


async def test_linking_gives_no_grant_and_no_rater_sees_the_owner_s_chats(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        for account in (ME, "web:owner", "api:ci", "api:other", "loopback:rater"):
            await asked(bot, account, f"of {account}")
        await say(bot, "people", "link", "api:ci")
        assert bot.app.authorization.level_of("api:ci") is Grant.RATE
        own = {f"of {account}" for account in (ME, "web:owner", "api:ci")}
        for account in OWN:
            assert await seen(bot, account) == own
        assert await seen(bot, "api:ci") == {"of api:ci"}
        assert await seen(bot, "api:other") == {"of api:other"}
        assert await seen(bot, "loopback:owner") == set()


async def test_a_chat_account_that_is_linked_with_them_sees_none_of_their_chats(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """Whoever takes over an account of a chat platform must not read what was said at the machine."""
    async with machine(tmp_path, unused_tcp_port) as bot:
        await asked(bot, ME, "mine")
        code = (await bot.command("link")).split()[0]
        await say(bot, "link", code)
        assert len(await accounts(bot, "loopback:owner")) == len(OWN) + 1
        assert await seen(bot, "loopback:owner") == set()
        assert await seen(bot, "web:loopback:owner") == set(), "nor who has logged in from it"
        assert await seen(bot, "web:owner") == {"mine"}


async def test_share_is_one_question_for_all_that_is_here(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        for account in (ME, "web:owner", "api:ci", "api:other"):
            await asked(bot, account, f"of {account}")
            await rated(bot, account, f"of {account}", 1.0)
        assert await standing(bot) == (2, 2)
        said = await say(bot, "people", "link", "api:ci")
        assert "one vote" in said
        assert "teaches me, as your private chats do" in said
        assert await standing(bot) == (3, 1), "the other one is asked"
        said = await say(bot, "share", "off")
        assert "web:owner" in said
        assert await standing(bot) == (0, 4)
        said = await say(bot, "people", "link", "api:other")
        assert "does not teach me" in said
        assert await standing(bot) == (0, 4)
        await say(bot, "share", "on")
        assert await standing(bot) == (4, 0)
        await say(bot, "people", "unlink", "api:other")


async def test_a_program_that_is_set_apart_again_is_asked_like_anybody(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await asked(bot, "api:ci", "t1")
        await rated(bot, "api:ci", "t1", 1.0)
        await say(bot, "people", "link", "api:ci")
        assert await standing(bot) == (1, 0)
        await say(bot, "people", "unlink", "api:ci")
        assert await standing(bot) == (0, 1)
        assert await labels(bot, "t1") == {"api:ci": 1.0}


async def linked(bot: Bot, maker: str, other: str) -> None:
    """They are linked by a code, as anybody links two accounts."""
    assert "one person now" in await at(bot, other, "link", (await at(bot, maker, "link")).split()[0])


async def at(bot: Bot, account: str, command: str, words: str = "") -> str:
    """What somebody is answered in their private chat."""
    _COUNT[0] += 1
    connector, _, name = account.partition(":")
    place = replace(CHANNEL, connector=connector, account="here", id=name)
    event = CommandEvent(
        event_id=f"{account} {_COUNT[0]}",
        order=OrderKey(_COUNT[0]),
        user=who(account),
        channel=place,
        name=command,
        args=words,
    )
    return (await bot.app.commands.execute(event)).text


_COUNT = [0]


async def taught(bot: Bot, account: str) -> bool:
    """Whether what an account has said in private may teach."""
    named = bot.app.authorization.owners(granted=False)
    return account in await bot.store.read(lambda db: inspection.sharers(db, named))


async def test_who_was_set_apart_and_is_linked_by_a_code_is_asked_like_anybody(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await say(bot, "people", "link", "api:ci")
        assert await taught(bot, "api:ci")
        await say(bot, "people", "unlink", "api:ci")
        await linked(bot, "web:owner", "api:ci")
        assert not await taught(bot, "api:ci"), "what was said at the machine has ended"
        await say(bot, "people", "unlink", "api:other")
        await linked(bot, "web:owner", "api:other")
        assert not await taught(bot, "api:other"), "it was said that it is apart, not that it is one"
        await say(bot, "people", "link", "api:ci")
        await at(bot, "api:ci", "unlink")
        await linked(bot, "web:owner", "api:ci")
        assert not await taught(bot, "api:ci"), "nor when it has left by itself"


async def test_whom_the_owner_leaves_is_no_longer_the_owner_s_own(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        for one in ("api:ci", "api:other"):
            await say(bot, "people", "link", one)
        await say(bot, "share", "on")
        for one in OWN:
            await at(bot, one, "unlink")
        await linked(bot, "web:owner", "api:ci")
        assert [await taught(bot, one) for one in ("api:ci", "api:other")] == [False, False]


async def test_forgetting_makes_nobody_the_owner_s_own(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await linked(bot, "web:owner", "api:ci")
        await say(bot, "people", "link", "api:other")
        assert [await taught(bot, one) for one in ("api:ci", "api:other")] == [False, True]
        await say(bot, "forget", "me", "yes")
        assert [await taught(bot, one) for one in ("api:ci", "api:other")] == [False, True]


async def test_an_account_that_was_apart_when_it_was_forgotten_stays_so(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await say(bot, "people", "unlink", "web:owner")
        await say(bot, "forget", "web:owner", "yes")
    async with machine(tmp_path, unused_tcp_port) as bot:
        assert await accounts(bot, "web:owner") == ["web:owner"]


@pytest.mark.parametrize("own", ["on", "off", ""])
@pytest.mark.parametrize("theirs", ["on", "off", ""])
async def test_an_account_s_own_word_on_sharing_outlasts_what_the_owner_said_for_it(
    tmp_path: Path, unused_tcp_port: int, own: str, theirs: str
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        if own:
            await at(bot, "api:ci", "share", own)
        for _ in range(2):
            await say(bot, "people", "link", "api:ci")
            if theirs:
                await say(bot, "share", theirs)
                assert await taught(bot, "api:ci") is (theirs == "on")
            await say(bot, "people", "unlink", "api:ci")
            assert await taught(bot, "api:ci") is (own == "on")
            if own == "off":
                await linked(bot, "web:owner", "api:ci")
                assert not await taught(bot, "api:ci")


async def test_a_refusal_of_its_own_outlasts_forgetting_and_the_owner_s_word(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await at(bot, "web:owner", "unlink")
        await at(bot, "web:owner", "share", "off")
        await say(bot, "people", "link", "web:owner")
        await say(bot, "share", "on")
        await say(bot, "forget", "me", "yes")
        await say(bot, "people", "unlink", "web:owner")
        assert not await taught(bot, "web:owner")


async def test_notes_of_before_are_told_apart(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await say(bot, "people", "link", "api:ci")
        await say(bot, "people", "unlink", "web:owner")
    db = sqlite3.connect(next(tmp_path.rglob(DATABASE)))
    with contextlib.closing(db):
        for script in sorted((files("goodbot.store") / "migrations/back").iterdir(), key=str, reverse=True):
            if int(script.name[:4]) > 3:
                db.executescript(script.read_text("utf-8"))
        db.execute("PRAGMA user_version = 3")
    async with machine(tmp_path, unused_tcp_port) as bot:
        assert await accounts(bot, "web:owner") == ["web:owner"]
        assert await accounts(bot, ME) == sorted([ME, "api:me", "api:ci"])
        assert await taught(bot, "api:ci")
        found = await rows(bot.store, "SELECT person FROM told WHERE person = 'own web:owner'")
        assert found == []


async def test_accounts_are_joined_from_the_terminal_alone(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        for deed in ("link", "unlink"):
            assert "at the machine itself" in await bot.command("people", f"{deed} api:ci")
            with pytest.raises(GoodbotError, match="no program or browser of this machine"):
                await say(bot, "people", deed, "loopback:rater")
            with pytest.raises(GoodbotError, match="no program or browser of this machine"):
                await say(bot, "people", deed, ME)
        with pytest.raises(GoodbotError, match="no connector is named 'slack'"):
            await say(bot, "people", "link", "slack:U1")
        assert await accounts(bot, "api:ci") == ["api:ci"]


async def test_forgetting_keeps_them_together_apart_and_silent(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        await say(bot, "people", "link", "api:ci")
        await say(bot, "people", "unlink", "web:owner")
        await say(bot, "share", "off")
        await asked(bot, ME, "t1")
        await say(bot, "forget", "me", "yes")
        together = sorted([ME, "api:me", "api:ci"])
        assert await accounts(bot, ME) == together
        await asked(bot, "api:ci", "t2")
        await rated(bot, "api:ci", "t2", 1.0)
        await asked(bot, ME, "t3")
        await rated(bot, ME, "t3", 1.0)
        assert await standing(bot) == (0, 2), "a `share off` is not turned into teaching"
    async with machine(tmp_path, unused_tcp_port) as bot:
        assert await accounts(bot, ME) == together
        assert await accounts(bot, "web:owner") == ["web:owner"]


async def test_whose_private_chats_teach_is_all_of_them(tmp_path: Path, unused_tcp_port: int) -> None:
    async with machine(tmp_path, unused_tcp_port) as bot:
        named = bot.app.authorization.owners(granted=False)
        assert {*OWN, "loopback:owner"} <= {*named}

        async def sharers() -> set[str]:
            return {*await bot.store.read(lambda db: inspection.sharers(db, named))}

        assert await sharers() == {*named}
        await say(bot, "people", "link", "api:ci")
        await bot.command("share", "on", user="rater")
        assert await sharers() == {*named, "api:ci", "loopback:rater"}
        await say(bot, "share", "off")
        assert await sharers() == {*named, "loopback:rater"} - {*OWN}


WAITED = "What you have rated in private waited"


async def test_owners_hear_once_that_what_waited_counts_now(tmp_path: Path) -> None:
    def told(bot: Bot) -> list[str]:
        return [item.message.channel.id for item in bot.chat.news if WAITED in item.text]

    async def looked(bot: Bot) -> None:
        await bot.app.news.look()

    # Days pass in no time by that clock, and what nobody rated is kept.
    kept = {"privacy": PrivacyConfig(unrated_days=1e6)}
    async with open_bot(tmp_path, clock=VirtualClock(1000.0), sections=kept) as bot:
        await bot.rated(1)
        await bot.say("Hello?", user="talker")
        await looked(bot)
        assert told(bot) == [], "nothing of this one waited"
        await bot.store.write(_as_an_older_one_left_it)
    async with open_bot(tmp_path, clock=VirtualClock(1e7), sections=kept) as bot:
        await until(lambda: told(bot))
        await looked(bot)
        assert len(told(bot)) == 1
    async with open_bot(tmp_path, clock=VirtualClock(2e7), sections=kept) as bot:
        await looked(bot)
        assert told(bot) == []


async def test_who_was_alone_has_nothing_that_waited(tmp_path: Path) -> None:
    async with open_bot(tmp_path, clock=VirtualClock(1000.0)) as bot:
        await bot.rated(1)
        await bot.store.write(_as_an_older_one_left_it)
    async with open_bot(tmp_path, clock=VirtualClock(1e7)) as bot:
        await bot.app.news.look()
        assert [item for item in bot.chat.news if WAITED in item.text] == []


async def test_what_was_asked_through_the_api_is_compared_in_the_terminal_and_there_once_it_was_shown(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    sections = {"serving": ServingConfig(history=0, ask="before")}
    async with machine(tmp_path, unused_tcp_port, more=sections) as bot:
        for number in range(8):
            await asked(bot, "api:me", f"t{number}", f"question {number}")
            await rated(bot, "api:me", f"t{number}", 1.0 if number % 2 else -1.0, number)
        assert (await bot.train()).state == "activated"
        ab_test = bot.app.ab_test
        await until(lambda: _asking(bot))
        found = await ab_test.current()
        assert found is not None
        assert [len(await ab_test.pairs(found, one)) for one in (ME, "api:me")] == [5, 5]

        async def client(words: str) -> str:
            event = CommandEvent(
                event_id=f"api {words} {await _chosen(bot)}",
                order=OrderKey(1),
                user=who("api:me"),
                channel=replace(CHANNEL, connector="api", account="here", id="me"),
                name="compare",
                args=words,
            )
            return (await bot.app.commands.execute(event)).text

        assert (await client("a")).startswith("Look at it first"), "its news came with this reply"
        assert await _chosen(bot) == 0
        assert (await client("a")).startswith("Noted.")
        assert await _chosen(bot) == 1
        assert "(2 of 5)" in await say(bot, "compare")
        assert (await say(bot, "compare", "b")).startswith("Noted.")
        assert await _chosen(bot) == 2


async def _asking(bot: Bot) -> bool:
    found = await bot.app.ab_test.current()
    return found is not None and found.state == "asking"


async def _chosen(bot: Bot) -> int:
    found = await rows(bot.store, "SELECT count(*) FROM pairs WHERE choice IS NOT NULL")
    return found[0][0]
