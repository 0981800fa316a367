# SPDX-License-Identifier: Apache-2.0
"""Core rule 9: who may do what where, as one exact table; ids are ids; admin words are plain."""

from __future__ import annotations

import errno
import hashlib
import itertools
import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.access.authorization import Authorization
from goodbot.api.commands import Grant, find, of
from goodbot.api.events import (
    ChannelKind,
    ChannelRef,
    CommandEvent,
    MessageEvent,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    UserRef,
)
from goodbot.base import sealed
from goodbot.base.errors import StoreError
from goodbot.config import Grants
from goodbot.store import channels, forgetting, joining, refusals, retention, settings
from goodbot.testing import VirtualClock

from tests.core.builders import OWNER, Bot, open_bot, rows, until
from tests.core.test_dispatcher import message

WHO = ("owner", "rater", "talker", "stranger", "bot")
WHERE = ("private", "enabled", "not enabled", "encrypted")
WHAT = ("message", "reaction", "button", "rating command", "admin command")

# Letters for owner, rater, talker, stranger, bot: [y]es, [n]o, [i]gnored without a trace.
ALLOWED = {
    ("message", "private"): "yyyni",
    ("message", "enabled"): "yyyyi",
    ("message", "not enabled"): "nnnni",
    ("message", "encrypted"): "nnnni",
    ("reaction", "private"): "yynni",
    ("reaction", "enabled"): "yynni",
    ("reaction", "not enabled"): "yynni",
    ("reaction", "encrypted"): "nnnni",
    ("button", "private"): "yynni",
    ("button", "enabled"): "yynni",
    ("button", "not enabled"): "yynni",
    ("button", "encrypted"): "nnnni",
    ("rating command", "private"): "yynni",
    ("rating command", "enabled"): "yynni",
    ("rating command", "not enabled"): "yynni",
    ("rating command", "encrypted"): "nnnni",
    ("admin command", "private"): "ynnni",
    ("admin command", "enabled"): "ynnni",
    ("admin command", "not enabled"): "ynnni",
    ("admin command", "encrypted"): "nnnni",
}
TABLE_OF_TABLES = [
    (what, where, who, ALLOWED[what, where][WHO.index(who)])
    for what, where, who in itertools.product(WHAT, WHERE, WHO)
]


def user(who: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=who, is_bot=who == "bot")


def place(where: str) -> ChannelRef:
    kind = {"private": ChannelKind.PRIVATE, "encrypted": ChannelKind.ENCRYPTED}.get(where, ChannelKind.SHARED)
    return ChannelRef(connector="loopback", account="loopback", id=f"#{where}", kind=kind)


class Matrix:
    """A goodbot with one rateable answer in every place."""

    def __init__(self, bot: Bot) -> None:
        self.bot = bot
        self.count = 0
        self.receipts: dict[str, Receipt] = {}
        real = bot.chat.acknowledge

        async def acknowledge(event: Any, receipt: Receipt) -> None:
            self.receipts[event.event_id] = receipt
            await real(event, receipt)

        bot.chat.acknowledge = acknowledge

    async def answer_in(self, where: str) -> str:
        """The turn of an answer there, however it came to be (the channel was on once)."""
        from goodbot.store import turns

        from tests.core.builders import turn

        id_ = f"turn-{where}".replace(" ", "-")
        if await self.bot.store.read(lambda db: turns.get(db, id_)) is None:
            made = turn(id_, channel=place(where))
            await self.bot.store.write(lambda db: turns.insert(db, made, trainable=True))
        return id_

    async def do(self, what: str, where: str, who: str) -> Receipt:
        self.count += 1
        id_ = f"x{self.count}"
        common: dict[str, Any] = {
            "event_id": id_,
            "order": OrderKey(self.count),
            "user": user(who),
            "channel": place(where),
        }
        turn = await self.answer_in(where)
        if what == "message":
            event: Any = MessageEvent(**common, text="Hello?", message_id=id_, addressed=True)
        elif what in ("reaction", "button"):
            source = "button" if what == "button" else "reaction:👍"
            event = RatingEvent(**common, kind=RatingKind.RATE, turn=turn, source=source, value=1.0)
        else:
            name, args = ("good", turn) if what == "rating command" else ("pause", "")
            event = CommandEvent(**common, name=name, args=args)
        [receipt] = await self.bot.chat.host.submit([event])
        if isinstance(event, CommandEvent) and receipt.outcome is Outcome.ACCEPTED:
            await self.bot.app.dispatcher._commands.join()
            await self.bot.app.dispatcher._rated.join()
            receipt = self.receipts[id_]
        return receipt

    async def effect(self, what: str, where: str, who: str) -> bool:
        if what == "message":
            return bool(await rows(self.bot.store, "SELECT 1 FROM inbox WHERE receipt LIKE '%accepted%'"))
        if what == "admin command":
            return bool(await rows(self.bot.store, "SELECT 1 FROM switches WHERE name = 'paused'"))
        return bool(await rows(self.bot.store, "SELECT 1 FROM labels WHERE rater = ?", (f"loopback:{who}",)))


@pytest.mark.parametrize("what", WHAT)
async def test_the_table_is_exact(tmp_path: Path, what: str) -> None:
    """Every cell: the outcome, and what it did to the store."""
    wrong: list[str] = []
    async with open_bot(tmp_path) as bot:
        matrix = Matrix(bot)
        await bot.store.write(lambda db: channels.enable(db, place("enabled"), "loopback:owner", 0.0))
        for where, who in itertools.product(WHERE, WHO):
            allowed = ALLOWED[what, where][WHO.index(who)]

            async def clean(db: Any) -> None:
                for table in ("inbox", "labels", "events", "switches"):
                    await db.execute(f"DELETE FROM {table}")

            receipt = await matrix.do(what, where, who)
            effect = await matrix.effect(what, where, who)
            await bot.app.dispatcher.drain(5)
            bot.app.dispatcher._closed = False
            expected = {"y": Outcome.ACCEPTED, "n": Outcome.DENIED, "i": Outcome.IGNORED}[allowed]
            if receipt.outcome is not expected or effect is not (allowed == "y"):
                wrong.append(f"{what} by {who} in {where}: {receipt.outcome}, effect {effect}")
            await bot.store.write(clean)
    assert wrong == []


def test_the_table_has_every_cell() -> None:
    assert len(TABLE_OF_TABLES) == 100
    assert {cell[3] for cell in TABLE_OF_TABLES} == set("yni")


@pytest.mark.parametrize("what", ["reaction", "message"])
async def test_refused_ones_leave_nothing_in_the_store(tmp_path: Path, what: str) -> None:
    """A crowd of strangers costs no space."""
    async with open_bot(tmp_path) as bot:
        matrix = Matrix(bot)
        await matrix.answer_in("not enabled")
        for _ in range(5):
            await matrix.do(what, "not enabled", "stranger")
        for table in ("inbox", "events", "labels", "told"):
            assert await rows(bot.store, f"SELECT * FROM {table}") == []


async def test_strangers_are_told_once_and_talkers_each_time_where_nobody_else_reads(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        matrix = Matrix(bot)
        await bot.store.write(lambda db: channels.enable(db, place("enabled"), "x", 0.0))
        told: dict[tuple[str, bool], list[str]] = {}
        for who, _, what, where in itertools.product(("stranger", "talker"), range(3), WHAT, WHERE):
            receipt = await matrix.do(what, where, who)
            if receipt.outcome is Outcome.DENIED and receipt.text:
                told.setdefault((who, where == "private"), []).append(receipt.text)
    stranger = told["stranger", True] + told.get(("stranger", False), [])
    assert len(stranger) == len(set(stranger)) == 2, stranger
    talker = told["talker", True]
    assert len(talker) > 3
    assert all("can rate my answers" in text or "for the owners" in text for text in talker)
    assert ("talker", False) not in told, "they knew by then"


async def test_a_reaction_or_an_admin_word_of_a_stranger_is_not_answered_at_all(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        matrix = Matrix(bot)
        for what in ("reaction", "admin command"):
            for where in WHERE:
                assert (await matrix.do(what, where, "stranger")).text == ""


async def test_a_stranger_who_types_all_day_costs_no_space(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for name in ("help", "status", "good", "nonsense", "forget", "pause"):
            for channel in ("", "#room"):
                await bot.command(name, "x" * 1000, user="stranger", channel=channel)
        [(kept,)] = await rows(bot.store, "SELECT payload || receipt FROM inbox")
        assert '"loopback:stranger"' in kept  # what they are told, once
        assert "xxx" not in kept


async def test_what_concerns_the_machine_and_others_is_for_an_owner_in_private(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("a secret", user="rater")
        await bot.react(answer, "👍", user="rater")
        bot.app.connectors.errors["x"] = "the token of /srv/ada/x is refused"
        for who in ("rater", "talker"):
            said = await bot.command("status", user=who)
            assert "answers" in said
            assert "ada" not in said
            assert "share on" not in said
        said = await bot.command("status")
        assert "/srv/ada" in said
        assert "1 rating from a private chat is not used until that person types" in said
        assert "/srv/ada" not in await bot.command("status", channel="#room")


# -- ids


@pytest.mark.parametrize(
    ("granted", "other"),
    [
        ("42", "042"),
        ("42", "4"),
        ("42", "420"),
        ("42", " 42"),
        ("42", "42 "),
        ("42", "42\n"),
        ("42", "４２"),
        ("42", "٤٢"),
        ("42", "42\u200b"),
        ("42", ""),
        ("42", "42\0"),
        ("U1", "u1"),
        ("ada", "аda"),
        ("é", "e\u0301"),
        ("*", "anyone"),
        ("", ""),
        ("42", "-42"),
        ("42", "42.0"),
    ],
)
def test_an_id_is_that_id_and_no_other(granted: str, other: str) -> None:
    authorization = Authorization({"x": Grants(owners=(granted,), raters=(granted,))})
    stranger = UserRef(connector="x", account="a", id=other)
    assert authorization.level(stranger) is Grant.NONE
    if granted:
        assert authorization.level(replace(stranger, id=granted)) is Grant.ADMINISTER


def test_a_name_is_never_an_id_and_a_grant_is_of_its_connector() -> None:
    authorization = Authorization({"x": Grants(owners=("1",)), "y": Grants()})
    assert authorization.level(UserRef(connector="x", account="a", id="2", name="1")) is Grant.NONE
    assert authorization.level(UserRef(connector="y", account="a", id="1")) is Grant.NONE
    assert authorization.level(UserRef(connector="z", account="a", id="1")) is Grant.NONE
    assert authorization.level(UserRef(connector="x", account="a", id="1", is_bot=True)) is Grant.NONE


def test_without_any_grant_nobody_may_anything() -> None:
    for authorization in (Authorization({}), Authorization({"x": Grants()})):
        for id_ in ("", "1", "owner", "*", "None"):
            assert authorization.level(UserRef(connector="x", account="a", id=id_)) is Grant.NONE


async def test_a_member_cannot_undo_what_the_owner_said(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        await bot.react(answer, "👍")
        await bot.unreact(answer, "👍", user="rater")
        await bot.command("undo", answer.turn, user="rater")
        assert await bot.labels(answer) == {"loopback:owner": 1.0}


# -- admin words

ADMIN = [command.name for command in of("chat") if command.grant is Grant.ADMINISTER]


def look_alikes(word: str) -> list[str]:
    fullwidth = "".join(chr(ord(c) + 0xFEE0) for c in word)
    cyrillic = word.translate(str.maketrans("aeopcyx", "аеорсух"))
    return [
        fullwidth,
        word[0] + "\u200b" + word[1:],
        word + "\u200d",
        "\ufeff" + word,
        "\u202e" + word,
        word[0] + "\u0301" + word[1:],
        word[0] + "\x08" + word[1:],
        word + "\0",
        word + "\x7f",
        word[0] + "\n" + word[1:],
        word + "\U000e0041",
        *([cyrillic] if cyrillic != word else []),
        "".join(chr(0x1D41A + ord(c) - 97) if c.isalpha() else c for c in word),
    ]


@pytest.mark.parametrize("word", [*ADMIN, "on"])
def test_what_looks_like_an_admin_word_is_none(word: str) -> None:
    assert find(word) is not None
    for odd in look_alikes(word):
        assert find(odd) is None, repr(odd)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("GOOD", "good"),
        ("ｇｏｏｄ", "good"),
        ("go\u200bod", "good"),
        ("/good", "good"),
        ("👍🏽", "good"),
        ("👎️", "bad"),
        ("+1", "good"),
        ("Status", "status"),
        ("good job", None),
        ("", "help"),
    ],
)
def test_rating_words_are_forgiving(word: str, name: str | None) -> None:
    found = find(word)
    assert (found.name if found else None) == name


async def test_look_alikes_do_nothing_even_for_the_owner(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for odd in look_alikes("pause"):
            assert "there is no command" in await bot.command(odd)
        assert not (await bot.status())["paused"]


# -- the audit trail


async def test_every_admin_attempt_is_in_the_trail_and_no_foreign_words_are(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        await bot.say("my secret question")
        for who in ("owner", "rater", "talker", "stranger"):
            for name in ADMIN:
                await bot.command(name, "x" * 1000, user=who)
                clock.advance(10)
        await bot.command("history")
        await bot.command("good")
        entries, whole = await bot.store.read(settings.audit)
        assert whole
        names = dict(await rows(bot.store, "SELECT person, alias FROM aliases"))
        assert set(names) == {"loopback:rater", "loopback:talker"}
        names["loopback:stranger"] = "strangers"
        assert [(e.actor, e.action) for e in entries[:-1]] == [
            (names.get(f"loopback:{who}", f"loopback:{who}"), name)
            for who in ("owner", "rater", "talker", "stranger")
            for name in ADMIN
        ]
        for entry in entries:
            refused = "kept_not_allowed" in entry.detail
            assert refused == (entry.actor != "loopback:owner")
            assert len(entry.detail) < 600
            assert "secret question" not in entry.detail


async def test_a_stranger_who_tries_all_day_leaves_one_row_a_command_and_day(tmp_path: Path) -> None:
    clock = VirtualClock(waits=True)
    async with open_bot(tmp_path, clock=clock) as bot:
        for _ in range(5):
            await bot.command("pause", user="stranger")
            await bot.command("train", user="stranger")
            clock.advance(3600)
        entries, _ = await bot.store.read(settings.audit)
        assert [entry.action for entry in entries] == ["pause", "train"]
        clock.advance(86400)
        await bot.command("pause", user="stranger")
        for _ in range(3):
            await bot.command("pause")  # an owner's acts are all there
        entries, whole = await bot.store.read(settings.audit)
        assert [entry.action for entry in entries[2:]] == ["pause"] * 4
        assert whole


async def test_s7_a_crowd_of_strangers_leaves_no_more_rows_than_one(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for number in range(4):
            made_up = " ".join(f"loopback:{number}-{one}" for one in range(12))
            for name in ("pause", "train"):
                await bot.command(name, made_up, user=f"stranger{number}")
        entries, whole = await bot.store.read(settings.audit)
        assert [(entry.actor, entry.action) for entry in entries] == [
            ("strangers", "pause"),
            ("strangers", "train"),
        ]
        assert all("loopback:" not in entry.detail for entry in entries)
        assert await rows(bot.store, "SELECT * FROM aliases") == []
        assert whole
        assert "people who may not talk tried commands of owners 8 times" in await bot.command("status")
        await bot.command("pause", user="talker")
        await bot.command("pause", "loopback:1-1")
        entries, whole = await bot.store.read(settings.audit)
        assert [entry.action for entry in entries[2:]] == ["pause"] * 2, "whom the bot knows is told apart"
        assert whole
        assert (await bot.status())["strangers"] == 8


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit SET actor = 'loopback:rater' WHERE seq = 2",
        "UPDATE audit SET at = at + 1 WHERE seq = 2",
        "UPDATE audit SET detail = '{}' WHERE seq = 1",
        "UPDATE audit SET action = 'resume' WHERE seq = 3",
        "DELETE FROM audit WHERE seq = 2",
        "DELETE FROM audit WHERE seq = 1",
        "UPDATE audit SET hash = 'x' WHERE seq = 3",
        "UPDATE audit SET seq = 9 WHERE seq = 1",
    ],
)
async def test_a_change_of_the_trail_shows(tmp_path: Path, change: str) -> None:
    async with open_bot(tmp_path, serve=True) as bot:
        for name in ("pause", "resume", "off"):
            await bot.command(name)
        assert (await bot.store.read(settings.audit))[1]

        async def tamper(db: Any) -> None:
            await db.execute(change)

        await bot.store.write(tamper)
        assert not (await bot.store.read(settings.audit))[1]


async def test_somebody_named_is_told_that_a_command_is_for_owners(tmp_path: Path) -> None:
    """In private each time, for else the bot looks dead; where others read once, a stranger never."""
    said = "`train` is for the owners of this bot."
    async with open_bot(tmp_path) as bot:
        for user in ("rater", "talker"):
            assert [await bot.command("train", user=user) for _ in range(2)] == [said, said]
        await bot.store.write(lambda db: channels.enable(db, place("enabled"), "x", 0.0))
        matrix = Matrix(bot)
        for where in WHERE:
            assert (await matrix.do("admin command", where, "stranger")).text == ""


async def test_somebody_named_who_rates_where_the_bot_is_off_is_told_once(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        receipts = [await bot.chat.command("good", user="talker", channel="#elsewhere") for _ in range(2)]
        assert [receipt.text for receipt in receipts] == [
            "Only people that my owner has chosen can rate my answers.",
            "",
        ]


async def test_p10_what_was_refused_is_not_done_when_it_is_read_again_with_more_rights(
    tmp_path: Path,
) -> None:
    async with open_bot(tmp_path) as bot:
        pause = bot.chat.typed("pause", user="newcomer", channel="#room")
        off = replace(OWNER, id="guest")
        asked = message("early", "my salary is 4711", user=off, channel=replace(pause.channel, id="#off"))
        later = message("later", "hello", user=off, channel=asked.channel)
        await bot.chat.host.submit([pause, asked])
        for refused in (pause, asked):
            await until(lambda one=refused: bot.store.read(lambda db: refusals.knows(db, one)))
        assert await rows(bot.store, "SELECT 1 FROM inbox") == [], "a crowd costs no space"
        await bot.command("people", "grant owner loopback:newcomer")
        await bot.command("enable", channel="#off")
        again = await bot.chat.host.submit([pause, asked, later])
        assert [one.outcome for one in again] == [Outcome.DENIED, Outcome.DENIED, Outcome.ACCEPTED]
        await until(lambda: not bot.app.follow_up_tasks.answering)
        assert "4711" not in str(await rows(bot.store, "SELECT messages FROM turns"))
        assert not await rows(bot.store, "SELECT 1 FROM switches WHERE name = 'paused' AND value <> ''")


async def test_p10_what_was_refused_stays_refused_after_a_restart(tmp_path: Path) -> None:
    """A command, a question, and a rating by a button: a platform tells the last minutes again."""
    newcomer = replace(OWNER, id="newcomer")
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What?")
        await until(lambda: rows(bot.store, "SELECT 1 FROM messages"))
        pause = bot.chat.typed("pause", user="newcomer", channel="#room")
        asked = message(
            "early", "my salary is 4711", user=newcomer, channel=replace(pause.channel, id="#off")
        )
        rated = RatingEvent(
            event_id="pressed",
            order=OrderKey(1),
            user=newcomer,
            channel=answer.message.channel,
            kind=RatingKind.RATE,
            message_id=answer.message.id,
            turn=answer.turn,
            source="button",
            value=1.0,
        )
        await bot.chat.host.submit([pause, asked, rated])
        for one in (pause, asked, rated):
            await until(lambda one=one: bot.store.read(lambda db: refusals.knows(db, one)))
        await bot.command("people", "grant owner loopback:newcomer")
        await bot.command("enable", channel="#off")
    async with open_bot(tmp_path) as bot:
        receipts = await bot.chat.host.submit([pause, asked, rated, replace(rated, event_id="pressed now")])
        assert [one.outcome for one in receipts] == [*[Outcome.DENIED] * 3, Outcome.ACCEPTED]
        await until(lambda: not bot.app.follow_up_tasks.answering)
        assert "4711" not in str(await rows(bot.store, "SELECT messages FROM turns"))
        assert not await rows(bot.store, "SELECT 1 FROM switches WHERE name = 'paused' AND value <> ''")
        assert await rows(bot.store, "SELECT 1 FROM events WHERE event_id = 'pressed'") == []


async def test_p10_nobody_guesses_from_the_database_who_was_refused(tmp_path: Path) -> None:
    """Ids of platforms are few enough to try them all; the key is in no copy of the database."""
    async with open_bot(tmp_path) as bot:
        sent = message("e", "hello", user=replace(OWNER, id="123456789"), channel=place("not enabled"))
        await bot.chat.host.submit([sent])
        assert await bot.store.read(lambda db: refusals.knows(db, sent))
        [(event, person)] = await rows(bot.store, "SELECT event, person FROM refused")
        guessed = ("loopback:123456789", "\0".join(("loopback", sent.user.account, "e")))
        assert not {hashlib.sha256(one.encode()).digest()[:16] for one in guessed} & {event, person}
        (tmp_path / "bot" / sealed.KEY).unlink()
        assert not await bot.store.read(lambda db: refusals.knows(db, sent))


async def test_p10_a_key_that_cannot_be_read_keeps_nobody_from_rating(tmp_path: Path) -> None:
    """Each event is looked up by it, within the transaction that stores the event."""
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("What?")
        key = tmp_path / "bot" / sealed.KEY
        key.unlink(missing_ok=True)
        key.symlink_to("x")
        assert (await bot.react(answer, "👍")).outcome is Outcome.ACCEPTED
        assert await bot.labels(answer)
        sent = message("e", "hello", user=replace(OWNER, id="mallory77"), channel=place("not enabled"))
        [receipt] = await bot.chat.host.submit([sent])
        assert receipt.outcome is Outcome.DENIED
        assert not await bot.store.read(lambda db: refusals.knows(db, sent))
        found = await rows(bot.store, "SELECT length(event), length(person) FROM refused")
        assert found == [(16, 16)], "an empty one would be everybody's"


async def test_p10_nobody_is_forgotten_in_part_while_the_key_cannot_be_read(tmp_path: Path) -> None:
    """It said that it was done, and what they were refused stayed."""
    async with open_bot(tmp_path) as bot:
        sent = message("e", "hello", user=replace(OWNER, id="mallory77"), channel=place("not enabled"))
        await bot.chat.host.submit([sent])
        key, kept = tmp_path / "bot" / sealed.KEY, tmp_path / "kept"
        key.rename(kept)
        key.symlink_to(kept)
        with pytest.raises(StoreError):
            await bot.store.write(lambda db: joining.forget(db, "loopback:mallory77"))
        kept.replace(key)
        await bot.store.write(lambda db: joining.forget(db, "loopback:mallory77"))
        assert await rows(bot.store, "SELECT 1 FROM refused") == []


@pytest.mark.parametrize(
    ("code", "passes"),
    [(errno.EACCES, True), (errno.EMFILE, False), (errno.ENFILE, False), (errno.EIO, False)],
)
def test_p10_a_moment_without_handles_lets_nobody_in(
    code: int, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(home: Path) -> bytes:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(sealed, "_key", fails)
    with nullcontext() if passes else pytest.raises(OSError, match=os.strerror(code)):
        assert refusals.function(tmp_path)(b"who", 0) == b""


async def test_p10_what_is_known_of_refusals_is_bounded_names_nobody_and_goes_with_its_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "MOST", 4)
    async with open_bot(tmp_path) as bot:

        async def known() -> list[bool]:
            return [await bot.store.read(lambda db, one=one: refusals.knows(db, one)) for one in sent]

        sent = [
            message(f"{who} {n}", "x" * 1000, user=replace(OWNER, id=who), channel=place("not enabled"))
            for n in range(3)
            for who in ("mallory77", "eve88")
        ]
        await bot.chat.host.submit(sent)
        assert await known() == [False] * 2 + [True] * 4, "the newest"
        found = await rows(bot.store, "SELECT * FROM refused")
        assert {len(row[1]) for row in found} == {16}
        assert not any(word in str(found) for word in ("mallory", "eve", "xxx"))
        await bot.command("forget", "loopback:mallory77")
        await bot.command("forget", "loopback:mallory77 yes")
        assert await known() == [False] * 3 + [True, False, True]
        assert not await bot.store.read(lambda db: settings.switch(db, forgetting.ERASE)), "nothing to wipe"
        await bot.store.write(lambda db: joining.forget(db, "loopback:eve88"))
        assert await known() == [False] * 6
        await bot.chat.host.submit(sent)
        await retention.expire(bot.store, bot.app.clock.now() + 4 * 86400.0, unrated_days=30)
        assert await known() == [False] * 6
