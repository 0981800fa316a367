# SPDX-License-Identifier: Apache-2.0
"""Who sees whose answers in the inbox, and whose rating counts there."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, OrderKey, Outcome, RatingKind
from goodbot.daemon.loopback import Answer
from goodbot.store import teaching, turns

from tests.core.builders import Bot, add_turn, open_bot, until
from tests.core.daemon.http.site import Site, served
from tests.core.made import CHANNEL, turn

PEOPLE = {"owners": ["boss"], "raters": ["ann"], "talkers": ["tom"]}


async def answers(bot: Bot) -> dict[str, Answer]:
    """One answer in each place: the owner's and the rater's own chats, and a shared channel."""
    await bot.command("enable", channel="#room")
    return {
        "owner": await bot.say("What does the owner ask?"),
        "rater": await bot.say("What does the rater ask?", user="rater"),
        "room": await bot.say("What does the room ask?", user="talker", channel="#room"),
    }


def names(found: Sequence[str], of: dict[str, Answer]) -> set[str]:
    return {name for name, answer in of.items() if answer.turn in found}


async def test_a_rater_sees_the_shared_channels_and_nobody_else_s_chat(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        assert names(await site.inbox("ann"), said) == {"room"}
        assert (await site.rate("ann", said["room"].turn)).outcome is Outcome.ACCEPTED
        for other in ("owner", "rater"):
            assert (await site.rate("ann", said[other].turn)).outcome is Outcome.UNKNOWN_TARGET, (
                "knowing its name is not enough"
            )
        assert await bot.labels(said["room"]) == {"web:ann": 1.0}
        assert await bot.labels(said["owner"]) == {}


async def test_m5_who_logged_in_from_a_chat_sees_that_chat_and_no_other(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """M5: but nobody's by the name of one of the browser's own accounts."""
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        assert names(await site.inbox("loopback:rater"), said) == {"rater", "room"}
        assert names(await site.inbox("loopback:owner"), said) == {"owner", "room"}
        assert await site.inbox("loopback:talker") == []
        assert await site.inbox("loopback:nobody") == []
        assert await site.inbox("loopback:loopback:owner") == []
        assert await site.inbox("web:boss") == [], "one logs in from elsewhere, or as oneself"


async def test_a_stranger_and_a_talker_see_nothing_and_rate_nothing(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        for who in ("tom", "nobody", ""):
            assert await site.inbox(who) == []
            for answer in said.values():
                assert (await site.rate(who, answer.turn)).outcome is Outcome.DENIED
        assert all([await bot.labels(answer) == {} for answer in said.values()])


async def test_an_owner_sees_private_chats_of_those_who_share_them(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """What may not train what others talk to needs nobody's rating but its speaker's."""
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        assert names(await site.inbox("boss"), said) == {"room"}
        await bot.command("share", "on", user="rater")
        assert names(await site.inbox("boss"), said) == {"rater", "room"}
        assert names(await site.inbox("ann"), said) == {"room"}
        assert (await site.rate("boss", said["rater"].turn)).outcome is Outcome.ACCEPTED
        await bot.command("share", "off", user="rater")
        assert names(await site.inbox("boss", rated=True), said) == set()
        denied = await site.rate("boss", said["rater"].turn, -1.0)
        assert denied.outcome is Outcome.UNKNOWN_TARGET
        assert await bot.labels(said["rater"]) == {"web:boss": 1.0}


async def test_the_link_of_two_accounts_shows_neither_the_other_s_chat(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """Whoever takes over one account must not read what the other said in private."""
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        code = (await bot.command("link", user="rater")).split()[0]
        await bot.command("link", code, user="owner")
        assert names(await site.inbox("loopback:rater"), said) == {"rater", "room"}


async def test_whoever_is_forgotten_is_in_no_inbox(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        await bot.command("forget", "me", user="talker", channel="#room")
        await bot.command("forget", "me yes", user="talker", channel="#room")
        assert names(await site.inbox("ann"), said) == set()
        assert (await site.rate("ann", said["room"].turn)).outcome is Outcome.UNKNOWN_TARGET


async def test_what_was_revoked_is_gone_at_once(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        said = await answers(bot)
        await bot.command("people", "grant rater loopback:ada")
        assert names(await site.inbox("loopback:ada"), said) == {"room"}
        await bot.command("people", "revoke loopback:ada")
        assert await site.inbox("loopback:ada") == []
        assert (await site.rate("loopback:ada", said["room"].turn)).outcome is Outcome.DENIED


@pytest.mark.parametrize(
    "hidden",
    [
        {"channel": replace(CHANNEL, kind=ChannelKind.ENCRYPTED)},
        {"channel": replace(CHANNEL, kind=ChannelKind.SHARED), "response": ""},
    ],
    ids=["encrypted", "empty"],
)
async def test_what_is_nobody_s_to_rate_is_not_shown(
    hidden: dict[str, Any], tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        await add_turn(bot.store, "hidden", **hidden)
        await add_turn(bot.store, "seen", channel=replace(CHANNEL, kind=ChannelKind.SHARED))
        assert await site.inbox("boss") == ["seen"]
        assert (await site.rate("boss", "hidden")).outcome is Outcome.UNKNOWN_TARGET
        assert (await site.rate("boss", "seen")).outcome is Outcome.ACCEPTED


async def test_what_a_plugin_keeps_out_of_training_is_not_shown(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        kept_out = turn("vetoed", channel=replace(CHANNEL, kind=ChannelKind.SHARED))
        await bot.store.write(lambda db: turns.insert(db, kept_out, trainable=False))
        assert await site.inbox("boss") == []
        assert (await site.rate("boss", "vetoed")).outcome is Outcome.UNKNOWN_TARGET


async def test_only_a_connector_with_an_inbox_rates_elsewhere(tmp_path: Path, unused_tcp_port: int) -> None:
    other = {"path": "/other", "owners": ["boss"]}
    async with served(tmp_path, unused_tcp_port, web=PEOPLE, other=other) as (bot, site):
        said = await answers(bot)
        second = bot.app.connectors.running["other"]
        assert isinstance(second, Site)
        with pytest.raises(ValueError, match="no INBOX"):
            await second.host.inbox(second.user("boss"))
        with pytest.raises(ValueError, match="somebody else's"):
            await site.host.inbox(second.user("boss"))
        place = replace(CHANNEL, connector="other", account="here")
        receipt = await second.rate("boss", said["room"].turn, channel=place)
        assert receipt.outcome is Outcome.UNKNOWN_TARGET
        assert await bot.labels(said["room"]) == {}


async def test_a_rating_out_of_the_inbox_is_one_like_any_other(tmp_path: Path, unused_tcp_port: int) -> None:
    """It is told its effect, is taken back, can be stars and words, and counts towards a training."""
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        room = (await answers(bot))["room"]
        receipt = await site.rate("ann", room.turn, -1.0)
        assert receipt.text.startswith("Bad. 1 of 8")
        assert receipt.offer == (), "another answer is asked for where it stands"
        await site.rate("ann", room.turn, 0.5, source="stars")
        assert await bot.labels(room) == {"web:ann": [-1.0, 0.5]}
        for kind in (RatingKind.COMMENT, RatingKind.BETTER):
            said = await site.rate("ann", room.turn, kind=kind, text="Better so.", value=None)
            assert said.outcome is Outcome.ACCEPTED
        assert await site.inbox("ann") == []
        [seen] = await site.entries("ann", rated=True)
        assert (seen.turn, seen.label, seen.stars) == (room.turn, -1.0, 0.5)
        assert (await bot.app.scheduler.standing()).available == 1
        await site.rate("ann", room.turn, None, source="")
        assert await bot.labels(room) == {}
        assert await site.inbox("ann") == [room.turn]


async def test_stars_alone_are_no_thumb(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        room = (await answers(bot))["room"]
        await site.rate("ann", room.turn, 1.0, source="stars")
        [seen] = await site.entries("ann", rated=True)
        assert (seen.label, seen.stars) == (None, 1.0)
        await site.rate("ann", room.turn, 1.0)
        [seen] = await site.entries("ann", rated=True)
        assert (seen.label, seen.stars) == (1.0, 1.0)


async def test_the_other_s_rating_of_an_answer_is_not_told(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        room = (await answers(bot))["room"]
        await bot.react(room, "👎")
        [seen] = await site.entries("ann")
        assert (seen.turn, seen.label) == (room.turn, None)
        assert await site.inbox("ann", rated=True) == []


async def test_what_one_has_rated_in_the_chat_is_rated_in_the_browser(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        room = (await answers(bot))["room"]
        await bot.react(room, "👎", user="rater")
        link = (await bot.command("web", user="rater")).splitlines()[0]
        assert await site.host.log_in(link.partition("#")[2]) == "loopback:rater"
        [seen] = await site.entries("loopback:rater", rated=True)
        assert (seen.turn, seen.label) == (room.turn, -1.0)
        await site.rate("loopback:rater", room.turn, 1.0, order=OrderKey(2_000_000_000_000))
        assert await bot.labels(room) == {"loopback:rater": 1.0}, "one person, one vote"


async def test_an_answer_that_was_replaced_is_not_shown(tmp_path: Path, unused_tcp_port: int) -> None:
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        first = await bot.say("Which one stands?")
        second = await bot.chat.again(first, "short")
        assert second.turn != first.turn

        async def recorded() -> bool:
            return await site.inbox("loopback:owner") == [second.turn]

        await until(recorded)
        [seen] = await site.entries("loopback:owner")
        assert (seen.turn, seen.question, seen.answer) == (second.turn, "Which one stands?", second.text)


async def test_it_is_narrowed_down_and_read_page_by_page(tmp_path: Path, unused_tcp_port: int) -> None:
    shared = replace(CHANNEL, kind=ChannelKind.SHARED)
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        for number in range(7):
            question = [{"role": "user", "content": f"Frage {number}: 100% ÜBER_alles?"}]
            await add_turn(
                bot.store,
                f"t{number}",
                channel=shared,
                created_at=1e9 + number,
                messages=question,
                response=f"Antwort {number}",
            )
        assert await site.inbox("ann", limit=3) == ["t6", "t5", "t4"]
        assert await site.inbox("ann", limit=3, before="t4") == ["t3", "t2", "t1"]
        assert await site.inbox("ann", before="gone") == []
        assert await site.inbox("ann", since=1e9 + 5) == ["t6", "t5"]
        assert await site.inbox("ann", text="frage 3") == ["t3"]
        assert await site.inbox("ann", text="antWORT 4") == ["t4"]
        assert len(await site.inbox("ann", text="über")) == 7, "whatever the script"
        assert await site.inbox("ann", text="frage%3") == [], "it is no pattern"
        assert await site.inbox("ann", text="100_") == []
        assert await site.inbox("ann", text="') OR 1 --") == []
        assert len(await site.inbox("ann", connector="loopback")) == 7
        assert await site.inbox("ann", connector="telegram") == []
        assert len(await site.inbox("ann", limit=-5)) == 1
        [seen] = await site.entries("ann", text="frage 3")
        assert (seen.connector, seen.kind) == ("loopback", ChannelKind.SHARED)
        assert (seen.created_at, seen.version) == (1e9 + 3, 0)


async def test_a_page_is_no_larger_than_two_hundred(tmp_path: Path, unused_tcp_port: int) -> None:
    shared = replace(CHANNEL, kind=ChannelKind.SHARED)
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        many = [add_turn(bot.store, f"t{number}", channel=shared) for number in range(210)]
        await asyncio.gather(*many)
        assert len(await site.inbox("ann", limit=1_000_000)) == 200


async def test_the_browser_s_owner_is_an_owner_for_consent_too(tmp_path: Path) -> None:
    """The owner's words train without being shared, wherever they are said."""
    async with open_bot(tmp_path) as bot:
        for talker, waits in (("loopback:owner", 0), ("loopback:talker", 1)):
            place = replace(CHANNEL, connector="web", account="here", id=talker)
            person = replace(turn("x").talker, connector="web", account="here", id=talker)
            await add_turn(bot.store, talker, channel=place, talker=person, model=bot.app.model.name)
            await bot.store.write(lambda db, t=talker: _label(db, t))
            standing = await bot.app.scheduler.standing()
            assert (standing.available, standing.waiting_for_consent) == (1, waits)


async def _label(db: Any, turn_: str) -> None:
    await db.execute(
        "INSERT INTO labels (turn, rater, value, event_id, event_seq) VALUES (?, 'x:y', 1.0, 'e', 0)",
        (turn_,),
    )
    await teaching.count(db, turn_)


async def test_it_knows_every_connector_that_somebody_may_see_answers_of(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """Not those of the newest page alone, and nobody's private ones."""
    shared = replace(CHANNEL, kind=ChannelKind.SHARED)
    async with served(tmp_path, unused_tcp_port, web=PEOPLE) as (bot, site):
        await add_turn(bot.store, "old", channel=replace(shared, connector="slack"), created_at=1e9)
        await add_turn(bot.store, "own", channel=replace(CHANNEL, connector="discord"), created_at=1e9)
        for number in range(60):
            await add_turn(bot.store, f"t{number}", channel=shared, created_at=1e9 + 1 + number)
        assert "old" not in await site.inbox("ann")
        assert await site.host.inbox_connectors(site.user("ann")) == ["loopback", "slack"]
        assert await site.host.inbox_connectors(site.user("tom")) == ()
        with pytest.raises(ValueError, match="somebody else's"):
            await site.host.inbox_connectors(replace(site.user("ann"), connector="loopback"))
