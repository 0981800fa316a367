# SPDX-License-Identifier: Apache-2.0
"""What goodbot says unasked: once, in private, and never in a group."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import pytest
from goodbot import hookimpl
from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.events import ChannelKind, ChannelRef, MessageRef, Receipt, Reply
from goodbot.api.notice import Notice
from goodbot.api.sentences import because, words
from goodbot.api.texts import LANGUAGES
from goodbot.base.errors import ConnectorError, FatalConnectorError, RetriableError
from goodbot.config import Grants
from goodbot.conversation.notifications import raters, trainings
from goodbot.conversation.notifications.raters import milestones
from goodbot.daemon import loopback
from goodbot.daemon.app import App
from goodbot.daemon.loopback import Answer, Loopback
from goodbot.store import channels, news
from goodbot.testing import VirtualClock

from tests.core.builders import GRANTS, Bot, Fake, config, open_bot, plugins, rows, until

ROOM = "#room"


def told(bot: Bot) -> list[tuple[str, str]]:
    """All that was said unasked: to whom, and what. A room hears its one notice."""
    private = ChannelKind.PRIVATE
    loud = [item.text for item in bot.chat.news if item.message.channel.kind is not private]
    assert [text for text in loud if not text.startswith("Mention me or reply to me.")] == []
    return [
        (item.message.channel.id, item.text) for item in bot.chat.news if item.message.channel.kind is private
    ]


async def ask(bot: Bot, count: int, **fields: Any) -> list[Answer]:
    return [await bot.say(f"question {number}", **fields) for number in range(count)]


# -- progress


@pytest.mark.parametrize(
    ("needed", "expected"),
    [(40, (1, 10, 20, 30)), (8, (1, 2, 4, 6)), (10, (1, 3, 5, 8)), (3, (1, 2)), (2, (1,)), (1, ())],
)
def test_milestones_are_the_first_rating_and_each_quarter(needed: int, expected: tuple[int, ...]) -> None:
    assert milestones(needed) == expected


async def test_reactions_are_counted_up_in_private(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for answer in await ask(bot, 7):
            await bot.react(answer, "👍")
        await until(lambda: len(told(bot)) == 4)
        assert told(bot) == [
            ("owner", "Your rating counts: 1 of 8 ratings (7 to go)."),
            ("owner", "Your rating counts: 2 of 8 ratings (6 to go)."),
            ("owner", "Your rating counts: 4 of 8 ratings (4 to go)."),
            (
                "owner",
                "Your rating counts: 6 of 8 ratings (2 to go). 2 more ratings and my owner can train me.",
            ),
        ]


async def test_a_milestone_is_told_to_the_rater_who_reached_it_also_from_a_group(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel=ROOM)
        first, second = await ask(bot, 2, channel=ROOM)
        before = len(bot.replies)
        await bot.react(first, "👍", user="rater")
        await bot.react(second, "👎", user="owner")
        await until(lambda: len(told(bot)) == 2)
        assert [who for who, _ in told(bot)] == ["rater", "owner"]
        assert len(bot.replies) == before


async def test_a_milestone_is_told_once_whatever_is_undone(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        [answer] = await ask(bot, 1)
        for _ in range(3):
            await bot.react(answer, "👍")
            await bot.unreact(answer, "👍")
        await bot.command("status")
        await until(lambda: told(bot))
        assert len(told(bot)) == 1


async def test_of_a_round_of_very_many_a_rating_counts_so_far_only_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(news, "COUNTED", 3)
    async with open_bot(tmp_path) as bot:
        said = [await bot.command("good", answer.turn) for answer in await ask(bot, 5)]
        assert [one.split(".")[1].strip() for one in said] == [
            "1 of 8 ratings (7 to go)",
            "2 of 8 ratings (6 to go)",
            *["3 or more of 8 ratings"] * 3,
        ]
        assert not any("more and" in one for one in said)
        status = await bot.status()
        assert (status["ratings"], status["needed"]) == (5, 8)
        assert status["next"] == "5 of 8 ratings, 3 more until the next training"
        for answer in await ask(bot, 2):
            await bot.command("good", answer.turn)
        [last] = await ask(bot, 1)
        assert (await bot.command("good", last.turn)).startswith("Good. 3 or more of 8 ratings.")


async def test_a_command_has_it_in_its_answer_and_no_second_message_comes(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await ask(bot, 2)
        first = await bot.command("good", answers[0].turn)
        assert first.startswith("Good. 1 of 8 ratings (7 to go). “"), "nobody who likes it is told to like"
        second = await bot.command("bad", answers[1].turn)
        assert second.startswith("Bad. 2 of 8 ratings (6 to go). “")
        await bot.react(answers[1], "👎")
        await bot.command("status")
        assert told(bot) == []


async def test_whoever_begins_with_a_bad_rating_is_told_to_rate_what_they_like_too(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        [answer] = await ask(bot, 1)
        said = await bot.command("bad", answer.turn)
        assert said.startswith("Bad. 1 of 8 ratings (7 to go). Tell me what you like, too: ")


SHARE = raters.share_row("en")
WAITS = (
    "Ratings from your private chats do not count yet, because others hear what I learn. "
    "`/rl share on` lets them count."
)


async def test_who_rates_in_private_hears_why_it_does_not_count(tmp_path: Path) -> None:
    """Each time it is pressed or typed, with a button the first time; a reaction is told once."""
    async with open_bot(tmp_path) as bot:
        answers = await ask(bot, 4, user="rater")
        first = await bot.chat.press(answers[0], "run:good", user="rater")
        assert first.text.startswith(f"Good. 0 of 8 ratings (8 to go). {WAITS}")
        assert first.offer == SHARE
        second = await bot.chat.press(answers[1], "run:bad", user="rater")
        assert second.text.startswith(f"Bad. 0 of 8 ratings (8 to go). {WAITS}")
        assert not set(SHARE) & set(second.offer)
        shared = await bot.chat.press(answers[1], SHARE[0].action, user="rater")
        assert "may train what others talk to" in shared.text
        third = await bot.chat.press(answers[2], "run:good", user="rater")
        assert third.text.startswith("Good. 3 of 8 ratings (5 to go). “")
        assert SHARE[0] not in third.offer
        await bot.command("share", "off", user="rater")
        other = await bot.chat.press(answers[3], "run:good", user="owner")
        assert "This one does not count until the person who asked types `/rl share on`" in other.text
        assert not other.offer


async def test_whose_reactions_wait_is_told_so_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await ask(bot, 3, user="rater")
        await bot.react(answers[1], "👍", user="rater")
        await until(lambda: ("rater", WAITS) in told(bot))
        await bot.react(answers[2], "👍", user="rater")
        await bot.command("status")
        assert [text for _, text in told(bot)].count(WAITS) == 1
        [notice] = [item for item in bot.chat.news if item.text == WAITS]
        assert notice.buttons == (SHARE[0].action,)


async def test_an_answer_in_private_has_buttons_for_whoever_may_press_them(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert (await bot.say("Hello?")).buttons
        assert not (await bot.say("Hello?", user="talker")).buttons


async def test_three_stars_say_that_they_teach_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.say("Hello?")
        assert "I learn nothing from them" in await bot.command("stars", "3")
        assert "I learn nothing from them" not in await bot.command("stars", "4")


async def test_it_survives_a_crash_between_the_commit_and_the_message(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        [answer] = await ask(bot, 1)
        dispatcher = bot.app.dispatcher  # the process dies before this is done
        dispatcher._then = replace(dispatcher._then, tell=AsyncMock())
        await bot.react(answer, "👍")
        assert told(bot) == []
    for expected in (1, 0):
        async with open_bot(tmp_path) as bot:
            await bot.command("status")
            await until(lambda b=bot, n=expected: len(told(b)) == n)
    assert expected == 0


async def test_a_start_tells_nothing_of_what_a_run_left_over(tmp_path: Path) -> None:
    """Held-out answers count for the next round, but nobody has rated since."""
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.train()
        await until(lambda: any("is live" in text for _, text in told(bot)))
    async with open_bot(tmp_path) as bot:
        await bot.app.ratings.progress.catch_up(bot.store, bot.app.courier, "en")
        assert told(bot) == []


async def test_the_next_round_counts_anew_and_says_how_long_it_takes(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        assert (await bot.train()).state == "activated"
        await until(lambda: any("is live" in text for _, text in told(bot)))
        await bot.store.write(lambda db: db.execute("UPDATE runs SET finished_at = started_at + 1"))
        bot.chat.news.clear()
        await bot.rated(4)  # and the two that were held out
        await until(lambda: len(told(bot)) == 3)
        assert [text for _, text in told(bot)] == [
            "Your rating counts: 3 of 8 ratings (5 to go).",
            "Your rating counts: 4 of 8 ratings (4 to go).",
            "Your rating counts: 6 of 8 ratings (2 to go). "
            "2 more ratings and my owner can train me. That takes about 1 second here.",
        ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_toast_holds_what_there_is_to_say(language: str) -> None:
    """Telegram shows 200 characters of the answer to a press."""
    said = because("bad"), because("until", available=30, needed=40)
    for last in (because("advice"), because("streak", count=news.STREAK)):
        assert len(words(*said, last, language=language)) <= 200


@pytest.mark.parametrize(
    ("seconds", "takes"),
    [
        (0.2, "about 1 second"),
        (1.6, "about 2 seconds"),
        (89, "about 89 seconds"),
        (100, "about 2 minutes"),
        (600, "about 10 minutes"),
    ],
)
def test_how_long_a_training_takes(seconds: float, takes: str) -> None:
    told = words(because("soon", more=2, schedule="03:30", seconds=seconds))
    assert told == f"2 more ratings and I train at 03:30. That takes {takes} here."


# -- a streak of bad ratings


async def test_eight_bad_ratings_in_a_row_are_worth_a_word_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=40, held_out=8) as bot:
        answers = await ask(bot, 19)
        for answer in answers[:10]:
            await bot.react(answer, "👎")
        await until(lambda: len(streaks(bot)) == 1)
        assert "last 8 ratings" in streaks(bot)[0]
        await bot.react(answers[10], "👍")
        for answer in answers[11:18]:
            await bot.react(answer, "👎")
        await bot.command("status")
        assert len(streaks(bot)) == 1, "seven since the good one"
        text = await bot.command("bad", answers[18].turn)
        assert "Your last 8 ratings were all “bad”." in text
        await bot.command("status")
        assert len(streaks(bot)) == 1, "not told a second time"


def streaks(bot: Bot) -> list[str]:
    return [text for _, text in told(bot) if "all “bad”" in text]


async def test_the_streak_is_each_raters_own(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=40, held_out=8) as bot:
        await bot.command("enable", channel=ROOM)
        answers = await ask(bot, 8, channel=ROOM)
        for number, answer in enumerate(answers):
            await bot.react(answer, "👎", user="rater" if number else "owner")
        await bot.command("status")
        assert streaks(bot) == []


async def test_a_bad_rating_taken_back_is_none(tmp_path: Path) -> None:
    async with open_bot(tmp_path, min_ratings=40, held_out=8) as bot:
        answers = await ask(bot, 8)
        await bot.react(answers[0], "👎")
        await bot.unreact(answers[0], "👎")
        for answer in answers[1:]:
            await bot.react(answer, "👎")
        await bot.command("status")
        assert streaks(bot) == []


# -- platforms where somebody cannot be reached


class Wall(Loopback):
    """A platform without private acknowledgements, whose private chats can fail."""

    spec = replace(
        loopback.SPEC,
        name="wall",
        factory="tests.core.test_news:Wall",
        capabilities=Capability.REACTIONS | Capability.BUTTONS,
    )
    error: Exception | None = None
    closed = False
    acknowledged: list[str]
    buttons: list[int]

    def __init__(self, host: Any, settings: Any) -> None:
        super().__init__(host, settings)
        self.acknowledged, self.buttons, self.tried = [], [], 0

    @property
    def account(self) -> str:
        return "wall"

    async def private(self, user: str) -> ChannelRef | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        return None if self.closed else await super().private(user)

    async def send(self, channel: ChannelRef, reply: Reply) -> tuple[MessageRef, ...]:
        self.tried += 1
        if self.error is not None:
            raise self.error
        return await super().send(channel, reply)

    async def acknowledge(self, event: Any, receipt: Receipt) -> None:
        if receipt.text:  # without one, a connector may nod, and says nothing
            self.acknowledged.append(receipt.text)
        await super().acknowledge(event, receipt)

    def _post(self, channel: ChannelRef, reply: Reply, reply_to: str) -> MessageRef:
        self.buttons.append(len(reply.buttons))
        return super()._post(channel, reply, reply_to)


class WallPlugin:
    @hookimpl
    def register_connector(self) -> ConnectorSpec:
        return Wall.spec


@contextlib.asynccontextmanager
async def open_wall(
    home: Path, *, clock: Any = None, wall: type[Wall] = Wall
) -> AsyncGenerator[tuple[App, Wall]]:
    async with App.open(
        config(home / "bot", Fake(home / "fake")), plugins(WallPlugin()), grants={"wall": GRANTS}, clock=clock
    ) as app:
        connector = app.connectors.running["wall"]
        assert isinstance(connector, Wall)
        await app.store.write(_open_the_room)
        yield app, connector


async def _open_the_room(db: Any) -> None:
    room = ChannelRef(connector="wall", account="wall", id=ROOM, kind=ChannelKind.SHARED)
    await channels.enable(db, room, "wall:owner", 1.0)
    await db.execute("UPDATE channels SET noticed_at = 1")


async def test_a_platform_that_refuses_is_asked_once_and_the_group_hears_nothing(tmp_path: Path) -> None:
    async with open_wall(tmp_path) as (app, wall):
        wall.error = ConnectorError("Forbidden: bot can't initiate conversation with a user")
        answer = await wall.say("hello", channel=ROOM)
        for emoji in ("👍", "👎", "👍"):
            await wall.react(answer, emoji)
        await until(lambda: wall.tried == 1)
        assert len(wall.replies) == 1
        assert wall.news == []
    async with open_wall(tmp_path) as (app, wall):
        await app.news.look()
        await wall.command("status")
        assert wall.tried == 0


async def test_a_platform_that_is_down_is_tried_again_and_then_at_the_next_start(tmp_path: Path) -> None:
    async with open_wall(tmp_path) as (app, wall):
        wall.error = RetriableError("Telegram cannot be reached", retry_after=0.001)
        app._tasks["telling again"].cancel()
        app.courier._clock = clock = VirtualClock()
        answer = await wall.say("hello")
        await wall.react(answer, "👍")
        await until(lambda: wall.tried == 4)
        assert clock.slept == [1.0, 2.0, 4.0]

        async def free_again() -> bool:
            return not await rows(app.store, "SELECT 1 FROM told WHERE person LIKE 'progress%'")

        await until(free_again)
    async with open_wall(tmp_path) as (app, wall):
        await until(lambda: len(wall.news) == 1)


async def test_what_a_platform_that_is_down_was_to_tell_is_told_once_it_is_back(tmp_path: Path) -> None:
    """No restart is needed: it is tried again by itself, less and less often, and told once."""
    async with open_wall(tmp_path) as (app, wall):
        wall.error = RetriableError("Telegram cannot be reached", retry_after=0.001)
        app.courier._clock = clock = VirtualClock(waits=True)
        answer = await wall.say("hello")
        await wall.react(answer, "👍")
        await passing(clock, lambda: wall.tried >= 12)
        wall.error = None
        await passing(clock, lambda: not app.courier._unheard)
        assert [item.text for item in wall.news] == ["Your rating counts: 1 of 8 ratings (7 to go)."]


@pytest.mark.parametrize("how", ["taken back", "further", "a day"])
async def test_what_makes_no_sense_any_more_is_not_told_late(tmp_path: Path, how: str) -> None:
    async with open_wall(tmp_path) as (app, wall):
        wall.error = RetriableError("Telegram cannot be reached", retry_after=0.001)
        app.courier._clock = clock = VirtualClock(waits=True)
        first = await wall.say("hello")
        await wall.react(first, "👍")
        await passing(clock, lambda: app.courier._unheard)
        if how == "taken back":
            await wall.unreact(first, "👍")
        elif how == "further":
            second = await wall.say("hello again")
            await wall.react(second, "👍")
            await passing(clock, lambda: any(key.endswith(" 2") for key in app.courier._unheard))
        else:
            clock.advance(90_000.0)
        await passing(clock, lambda: how != "a day" or not app.courier._unheard)
        wall.error = None
        await passing(clock, lambda: not app.courier._unheard)
        heard = {"further": ["Your rating counts: 2 of 8 ratings (6 to go)."]}.get(how, [])
        assert [item.text for item in wall.news] == heard


async def test_what_was_due_at_a_start_is_tried_again_too(tmp_path: Path) -> None:
    async with open_wall(tmp_path) as (app, wall):
        wall.closed = True
        await wall.react(await wall.say("hello"), "👍")
        await until(lambda: app.courier._unheard)
    async with open_wall(tmp_path) as (app, wall):
        await until(lambda: wall.news)
        wall.news.clear()
        await app.store.write(lambda db: db.execute("DELETE FROM told"))
        app.ratings.progress._told.clear()
        app.courier._told.clear()
        app.courier._clock = clock = VirtualClock(waits=True)
        wall.closed = True
        await app.ratings.progress.catch_up(app.store, app.courier, "en")
        wall.closed = False
        await passing(clock, lambda: wall.news)
        assert len(wall.news) == 1


async def test_a_token_that_is_wrong_for_now_swallows_no_news(tmp_path: Path) -> None:
    """A person must act, and hears what there was once they have."""
    async with open_wall(tmp_path) as (app, wall):
        for error in (FatalConnectorError("the token is wrong"), ConnectionResetError("cut off")):
            wall.error = error
            assert not await app.courier.tell(Notice(key="k", person="wall:owner", text="News."))
        wall.error = None
        assert await app.courier.tell(Notice(key="k", person="wall:owner", text="News."))
        assert await app.courier.tell(Notice(key="k", person="wall:owner", text="News."))
        assert [item.text for item in wall.news] == ["News."]


async def test_a_platform_that_wants_a_long_pause_holds_nobody_else_up(tmp_path: Path) -> None:
    """News of all owners, and the blind question, waited behind it for hours."""
    async with open_wall(tmp_path) as (app, wall):
        app.courier._clock = clock = VirtualClock(waits=True)
        wall.error = RetriableError("Telegram asks for a pause", retry_after=3600.0)
        news = Notice(key="k", person="wall:owner", text="News.")
        for _ in range(2):
            assert not await app.courier.tell(news)
        assert (wall.tried, clock.slept) == (1, [])
        wall.error = None
        clock.advance(3600.0)
        assert await app.courier.tell(news)


@pytest.mark.parametrize("decided", ["", "grant talker wall:ada", "refuse wall:ada"])
async def test_who_would_like_to_talk_is_told_late_unless_it_is_decided(tmp_path: Path, decided: str) -> None:
    async with open_wall(tmp_path) as (app, wall):
        wall.closed = True
        app.courier._clock = clock = VirtualClock(waits=True)
        await wall.say("hello", user="ada")
        await until(lambda: app.courier._unheard)
        if decided:
            await wall.command("people", decided)
        wall.closed = False
        await passing(clock, lambda: not app.courier._unheard)
        asked = [item.text for item in wall.news if "wants to talk to me" in item.text]
        assert len(asked) == (0 if decided else 1)


def cards(wall: Wall) -> list[Answer]:
    return [item for item in wall.news if "wants to talk to me" in item.text]


@pytest.mark.parametrize("decided", ["", "refuse wall:ada"])
async def test_who_asked_before_a_restart_is_told_after_it_unless_it_is_decided(
    tmp_path: Path, decided: str
) -> None:
    """What had reached no owner was in memory alone, and the stranger is told nothing a second time."""
    async with open_wall(tmp_path) as (app, wall):
        wall.closed = True
        await wall.say("hello", user="ada")
        await until(lambda: app.courier._unheard)
        if decided:
            await wall.command("people", decided)
    for number in range(2):
        async with open_wall(tmp_path) as (app, wall):
            await wall.say("hello again", user="ada")
            await app._tasks["at start"]
            assert len(cards(wall)) == (1 if number == 0 and not decided else 0), "once"


async def test_an_owner_s_card_decides_after_a_restart(tmp_path: Path) -> None:
    async with open_wall(tmp_path) as (_, wall):
        await wall.say("hello", user="ada")
        await until(lambda: cards(wall))
        [card] = cards(wall)
    async with open_wall(tmp_path) as (app, wall):
        await wall.press(card, card.buttons[0])
        await until(lambda: app.authorization.level_of("wall:ada"))
        assert await rows(app.store, "SELECT * FROM join_requests") == []


async def passing(clock: VirtualClock, done: Any) -> None:
    """Let time pass until something has happened."""

    def later() -> Any:
        clock.advance(5.0)
        return done()

    await until(later)


async def test_where_nobody_is_there_it_waits(tmp_path: Path) -> None:
    """A terminal without a chat: told when one is open and somebody looks again."""
    async with open_wall(tmp_path) as (app, wall):
        wall.closed = True
        answer = await wall.say("hello")
        await wall.react(answer, "👍")
        await wall.command("status")
        assert (wall.news, wall.tried) == ([], 0)
        wall.closed = False
        await app.ratings.progress.catch_up(app.store, app.courier, "en")
        assert len(wall.news) == 1


async def test_a_rating_command_in_a_group_is_answered_in_private(tmp_path: Path) -> None:
    async with open_wall(tmp_path) as (_, wall):
        await wall.say("hello", channel=ROOM)
        await wall.host.submit([wall.typed("good", channel=ROOM)])
        await until(lambda: wall.news)
        [said] = wall.news
        assert said.message.channel.id == "owner"
        assert said.text.startswith("Good. 1 of 8 ratings (7 to go).")
        assert wall.acknowledged == []
        wall.closed = True
        await wall.host.submit([wall.typed("bad", channel=ROOM)])
        await wall.host.submit([wall.typed("bad", "nonsense", channel=ROOM)])
        await wall.command("status", channel=ROOM)
        assert len(wall.acknowledged) == 1, "`status` was asked for; the ratings stay unanswered"
        assert len(wall.news) == 1


async def test_there_are_buttons_in_private_only(tmp_path: Path) -> None:
    async with open_wall(tmp_path) as (_, wall):
        await wall.say("hello", channel=ROOM)
        await wall.say("hello")
        assert wall.buttons == [0, 2]
        wall.settings = _Buttons()
        await wall.say("hello", channel=ROOM)
        assert wall.buttons == [0, 2, 2]


@dataclass(frozen=True)
class _Buttons:
    group_buttons: bool = True


# -- owners


async def test_every_owner_is_told_of_a_new_version_and_nobody_else(tmp_path: Path) -> None:
    people = Grants(owners=("owner", "second"), raters=("rater",), talkers=("talker",))
    async with open_bot(tmp_path, grants=people) as bot:
        await bot.rated(8)
        bot.chat.news.clear()
        await bot.train()
        await until(lambda: len(told(bot)) == 2)
        expected = (
            "v1 is live. It learnt from 6 rated answers (3 good, 3 bad); 2 more were "
            "kept to check it.\nbetter\n"
            "`/rl why` shows before and after, `/rl rollback` takes it back."
        )
        assert sorted(told(bot)) == [("owner", expected), ("second", expected)]
        await bot.app.news.look()
        assert len(told(bot)) == 2
    async with open_bot(tmp_path, grants=people) as bot:
        await bot.app.news.look()
        assert told(bot) == []


async def test_what_went_live_just_before_a_crash_is_told_at_the_next_start(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.app.courier._connectors = {}
        await bot.rated(8)
        await bot.train()
    async with open_bot(tmp_path) as bot:
        await until(lambda: any(text.startswith("v1 is live.") for _, text in told(bot)))


async def test_a_refused_run_says_why_and_what_comes_next(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        bot.fake.set(train="refuse")
        await bot.rated(8)
        bot.chat.news.clear()
        await bot.train()
        await until(lambda: told(bot))
        assert told(bot) == [
            (
                "owner",
                "The base model goes on answering: the new version is not good enough. No better.\n"
                "Next: 2 of 8 ratings, 6 more until the next training.",
            )
        ]


async def test_failed_tries_are_told_at_the_first_and_at_the_last(tmp_path: Path) -> None:
    async with open_bot(tmp_path, schedule="auto") as bot:
        bot.fake.set(train="nan")
        await bot.rated(8)

        async def given_up() -> bool:
            runs = await rows(bot.store, "SELECT 1 FROM runs WHERE state = 'failed'")
            return len(runs) == 3 and not bot.app.scheduler.training

        await until(given_up)
        await until(lambda: len(failures(bot)) == 2)
        await bot.app.news.look()
        first, last = failures(bot)
        assert first.startswith("The base model goes on answering: a training failed. ")
        assert first.endswith("\nNext: it is tried again by itself.")
        assert "The loss was nan" in last
        assert last.endswith("Next: 1 new rating until another try.")


def failures(bot: Bot) -> list[str]:
    return [text for _, text in told(bot) if "failed" in text]


async def test_a_withdrawn_version_is_told(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answers = await bot.rated(8)
        await bot.train()
        await until(lambda: any("v1 is live" in text for _, text in told(bot)))
        await bot.command("pause")
        trained = await bot.trained_by(1)
        taken = next(answer for answer in answers if answer.turn in trained)
        bot.chat.news.clear()
        await bot.command("undo", taken.turn)
        await until(lambda: told(bot), 20)
        assert told(bot) == [
            (
                "owner",
                "v1 is withdrawn: a rating that it was trained on has changed. The base model answers now.",
            )
        ]


async def test_what_an_owner_stopped_and_what_is_long_over_is_no_news(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        await bot.start_training()
        await until(lambda: len(told(bot)) == 4)
        await bot.command("cancel")
        assert (await bot.last_run()).state == "superseded"
        await bot.app.news.look()
        assert len(told(bot)) == 4
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bot.app.news, "look", AsyncMock())
            bot.fake.set(train="ok")
            await bot.train()
            await bot.store.write(lambda db: db.execute("UPDATE runs SET finished_at = finished_at - 90000"))
        await bot.app.news.look()
        assert len(told(bot)) == 4


def test_the_words_count_people_where_there_are_several() -> None:
    made_of = news.RunMaterial(trained=32, held_out=8, good=20, bad=12, raters=3, since=0.0, until=0.0)
    assert trainings.counted(made_of) == "32 rated answers of 3 people (20 good, 12 bad)"
    assert trainings.kept(made_of) == "8 more were kept to check it"
    middling = replace(made_of, trained=33, held_out=1, raters=1)
    assert trainings.counted(middling) == "33 rated answers (20 good, 12 bad, 1 in between)"
    assert trainings.kept(middling) == "1 more was kept to check it"


@pytest.mark.parametrize(
    ("who", "name", "args"),
    [
        ("owner", "history", ""),
        ("owner", "channels", ""),
        ("owner", "plugins", ""),
        ("owner", "share", "on"),
        ("talker", "why", ""),
        ("stranger", "good", ""),
    ],
)
async def test_a_group_does_not_hear_what_is_for_one_person(
    tmp_path: Path, who: str, name: str, args: str
) -> None:
    async with open_wall(tmp_path) as (_, wall):
        await wall.say("a secret of mine")
        await wall.host.submit([wall.typed(name, args, user=who, channel=ROOM)])
        await until(lambda: wall.news)
        assert wall.acknowledged == []
        assert {said.message.channel.id for said in wall.news} == {who}


@pytest.mark.parametrize("who", ["talker", "rater"])
async def test_where_it_is_off_only_an_owner_makes_it_speak(tmp_path: Path, who: str) -> None:
    async with open_wall(tmp_path) as (_, wall):
        for name in ("status", "help", "nonsense"):
            await wall.host.submit([wall.typed(name, user=who, channel="#elsewhere")])
        await until(lambda: len(wall.news) == 3)
        assert wall.acknowledged == []
        assert {said.message.channel.id for said in wall.news} == {who}
        assert (await wall.command("status", channel="#elsewhere")).text


# -- what a round goes without


async def test_s5_owners_hear_once_whose_answers_a_round_went_without(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.rated(8)
        bot.fake.set(train="guilty")
        assert (await bot.train()).state == "activated"

        def named() -> list[tuple[str, str]]:
            return [(who, text) for who, text in told(bot) if "went without" in text]

        await until(named)
        await bot.app.news.look()
        [(who, text)] = named()
        assert who == "owner"
        [(talker,)] = await rows(bot.store, "SELECT t.talker FROM set_aside s JOIN turns t ON t.id = s.turn")
        assert text.startswith(
            f"Training 1 went without 1 answer to loopback:{talker}: its gradient explodes. All others train."
        )
