# SPDX-License-Identifier: Apache-2.0
"""Grants by command: who is let in, who is put out, and what no command can change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from goodbot.access.authorization import Authorization
from goodbot.access.requests import card
from goodbot.api.commands import Grant
from goodbot.api.events import ChannelKind, ChannelRef, Outcome, UserRef
from goodbot.api.texts import LANGUAGES, say
from goodbot.config import Grants, ServingConfig
from goodbot.config import parse as parse_config
from goodbot.store import people, settings
from goodbot.testing import VirtualClock

from tests.core.builders import open_bot, rows, until


def user(who: str) -> UserRef:
    return UserRef(connector="loopback", account="loopback", id=who)


@pytest.mark.parametrize(
    ("role", "level"), [("owner", Grant.ADMINISTER), ("rater", Grant.RATE), ("talker", Grant.TALK)]
)
async def test_a_grant_holds_at_once_and_after_a_restart_until_it_is_revoked(
    tmp_path: Path, role: str, level: Grant
) -> None:
    async with open_bot(tmp_path) as bot:
        said = await bot.command("people", f"grant {role} loopback:ada")
        assert said.startswith(f"loopback:ada {'can do everything' if role == 'owner' else 'may'}")
        assert bot.app.authorization.level(user("ada")) is level
        assert (await bot.say("Hello?", user="ada")).turn
    async with open_bot(tmp_path) as bot:
        assert bot.app.authorization.level(user("ada")) is level
        assert "no grant any more" in await bot.command("people", "revoke loopback:ada")
        assert bot.app.authorization.level(user("ada")) is Grant.NONE
        assert (await bot.say("Hello?", user="ada")).turn == ""


async def test_the_list_says_who_by_whom_and_where_from(tmp_path: Path) -> None:
    grants = Grants(owners=("owner",), rater_groups=("mods",))
    async with open_bot(tmp_path, grants=grants) as bot:
        bot.chat.groups = {"mods": {"grace"}}
        await bot.app.groups.refresh("loopback")
        await bot.command("people", "grant talker loopback:ada")
        text = await bot.command("people")
        assert "owner    loopback:owner  by the config" in text
        assert "rater    loopback:grace  as a member of mods" in text
        assert "talker   loopback:ada  by loopback:owner on " in text
        assert "the members of mods on loopback" in text


async def test_no_command_takes_away_what_the_config_gives(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:rater")
        assert "rater by the program" in await bot.command("people", "revoke loopback:rater")
        assert bot.app.authorization.level(user("rater")) is Grant.RATE


def test_the_sentence_names_the_file_and_the_line(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[connectors.telegram]\nowners = ["1"]\nraters = ["2"]\n')
    config = parse_config(path.read_text(), home=tmp_path, path=path)
    error = config.where("connectors.telegram").error("raters", "here")
    assert str(error) == f"{path}:3: here"


async def test_nobody_locks_themselves_out_by_a_slip(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant owner loopback:ada")
        assert "another owner can" in await bot.command("people", "revoke loopback:ada", user="ada")
        said = await bot.command("people", "grant rater loopback:ada", user="ada")
        assert "another owner can" in said
        assert bot.app.authorization.level(user("ada")) is Grant.ADMINISTER


@pytest.mark.parametrize(
    "args",
    [
        "grant",
        "grant king loopback:ada",
        "grant owner",
        "grant owner ada",
        "grant owner loopback:",
        "grant owner nowhere:ada",
        "grant owner loopback:ada grace",
        "revoke",
        "revoke :ada",
        "revoke loopback:nobody",
        "promote loopback:ada",
        "grant owner loopback:a\u202eda",
    ],
)
async def test_odd_words_are_told_and_change_nothing(tmp_path: Path, args: str) -> None:
    async with open_bot(tmp_path) as bot:
        assert await bot.command("people", args)
        assert await rows(bot.store, "SELECT * FROM grants") == []


async def test_a_reply_to_an_answer_means_whom_it_answered(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("enable", channel="#room")
        answer = await bot.say("Hello?", user="ada", channel="#room")
        said = await bot.command("people", "grant rater", channel="#room", reply_to=answer.message.id)
        assert said.startswith("loopback:ada may talk and rate now.")
        assert (await bot.react(answer, "👍", user="ada")).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("who", ["rater", "talker", "stranger"])
async def test_only_owners_grant(tmp_path: Path, who: str) -> None:
    async with open_bot(tmp_path) as bot:
        for args in ("", f"grant owner loopback:{who}", "revoke loopback:owner"):
            said = await bot.command("people", args, user=who)
            told = "`people` is for the owners of this bot."
            assert said == ("" if who == "stranger" else told)
        assert await rows(bot.store, "SELECT * FROM grants") == []


async def test_a_revoked_persons_codes_die(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant talker loopback:ada")
        code = (await bot.command("link", user="ada")).split()[0]
        await bot.command("people", "revoke loopback:ada")
        await bot.command("people", "grant talker loopback:ada")
        assert "no code that holds" in await bot.command("link", code, user="talker")


async def test_the_trail_knows_who_granted_and_calls_others_by_an_alias(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("people", "grant rater loopback:ada")
        [entry], whole = await bot.store.read(settings.audit)
        [(alias,)] = await rows(bot.store, "SELECT alias FROM aliases WHERE person LIKE '%ada'")
        assert whole
        assert (entry.actor, entry.action) == ("loopback:owner", "people")
        assert f"grant rater {alias}" in entry.detail
        assert "ada" not in entry.detail.replace(alias, "")


async def test_a_grant_of_a_connector_that_is_not_configured_counts_for_nothing(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.store.write(lambda db: people.grant(db, "gone:ada", "owner", "x", 0.0))
        await bot.app.authorization.refresh(bot.store)
        assert "gone:ada" not in bot.app.authorization.owners()
        ada = UserRef(connector="gone", account="a", id="ada")
        assert bot.app.authorization.level(ada) is Grant.NONE


# -- the sources of a grant, as one table

ROOM = ChannelRef(connector="x", account="a", id="#room", kind=ChannelKind.SHARED)


def everywhere() -> Authorization:
    clock = VirtualClock()
    config = Grants(
        owners=("co",), raters=("cr",), talkers=("ct",), rater_groups=("mods",), channels=("#room",)
    )
    authorization = Authorization({"x": config}, clock)
    authorization._granted = {
        f"x:{id_}": people.GrantRow(person=f"x:{id_}", role=role, given_by=by, since=0.0)
        for id_, role, by in (
            ("paired", "owner", people.PAIRING),
            ("go", "owner", "x:co"),
            ("gr", "rater", "x:co"),
            ("gt", "talker", "x:co"),
            ("cr", "talker", "x:co"),
            ("ct", "owner", "x:co"),
        )
    }
    authorization.set_members("x", "mods", {"member", "ct2"}, clock.monotonic() + 300)
    authorization.set_members("x", "others", {"outsider"}, clock.monotonic() + 300)
    return authorization


@pytest.mark.parametrize(
    ("id_", "level"),
    [
        ("co", 3),
        ("cr", 2),
        ("ct", 3),
        ("paired", 3),
        ("go", 3),
        ("gr", 2),
        ("gt", 1),
        ("member", 2),
        ("outsider", 0),
        ("mods", 0),
        ("", 0),
        ("nobody", 0),
    ],
)
def test_the_highest_grant_of_all_sources_counts(id_: str, level: int) -> None:
    assert everywhere().level(UserRef(connector="x", account="a", id=id_)) == level
    robot = UserRef(connector="x", account="a", id=id_, is_bot=True)
    assert everywhere().level(robot) is Grant.NONE


@pytest.mark.parametrize("kind", ChannelKind)
def test_a_channel_of_the_config_is_on_for_everybody_and_no_other(kind: ChannelKind) -> None:
    nobody = UserRef(connector="x", account="a", id="nobody")
    room = ChannelRef(connector="x", account="a", id="#room", kind=kind)
    assert everywhere().may_talk(nobody, room, enabled=False) is (kind is ChannelKind.SHARED)
    other = ChannelRef(connector="x", account="a", id="#other", kind=kind)
    assert not everywhere().may_talk(nobody, other, enabled=False)
    assert not everywhere().may(nobody, Grant.TALK)


async def test_owners_are_asked_once_about_a_stranger_with_a_button_for_each_answer(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        for _ in range(2):
            await bot.say("May I?", user="ada9")
        await until(lambda: bot.chat.news)
        await bot.settle()
        [found] = [said for said in bot.chat.news if said.message.channel.id == "owner"]
        assert "loopback:ada9 wants to talk to me" in found.text
        assert "`/rl people grant talker loopback:ada9`" in found.text, "where there are no buttons"
        buttons = card(user("ada9"), "loopback:owner").buttons
        assert list(found.buttons) == [button.action for button in buttons]
        assert [(button.action, button.label) for button in buttons] == [
            ("run:people grant talker loopback:ada9", "May talk"),
            ("run:people grant rater loopback:ada9", "May rate"),
            ("run:people refuse loopback:ada9", "No"),
        ]
        for other in ("rater", "ada9"):
            denied = await bot.chat.press(answer, buttons[1].action, user=other)
            assert denied.outcome is Outcome.DENIED, "whoever presses must be an owner"
        assert "may not talk to me" in (await bot.chat.press(answer, buttons[2].action)).text
        assert bot.app.authorization.level(user("ada9")) is Grant.NONE
        said = (await bot.chat.press(answer, buttons[1].action)).text
        assert "loopback:ada9 may talk and rate now." in said
        assert "`/rl share off`" in said, "what it means for their own private chats"
        assert bot.app.authorization.level(user("ada9")) is Grant.RATE


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_card_is_in_the_owner_s_language(language: str) -> None:
    found = card(replace(user("ada9"), name="Ann"), "loopback:owner", language)
    labels = [say(key, language) for key in ("page_may_talk", "page_may_rate", "page_no")]
    assert [button.label for button in found.buttons] == labels
    asks, words = found.text.splitlines()
    assert asks == say("page_wants_named", language, name="Ann", who="loopback:ada9")
    assert "`/rl people grant talker loopback:ada9`" in words


async def test_an_owner_is_asked_in_the_language_that_the_platform_tells_else_in_that_of_the_config(
    tmp_path: Path,
) -> None:
    serving = ServingConfig(history=0, ask="never", language="de")
    async with open_bot(tmp_path, sections={"serving": serving}) as bot:
        await bot.say("May I?", user="ada9")
        await until(lambda: bot.chat.news)
        assert bot.chat.news[-1].text.startswith("loopback:ada9 will mit mir reden")
        french = replace(bot.chat.typed("status"), user=replace(user("owner"), language="fr"))
        bot.app.courier.readers.heard([french])
        await bot.say("May I?", user="ada10")
        await until(lambda: len(bot.chat.news) > 1)
        assert bot.chat.news[-1].text.startswith("loopback:ada10 veut me parler")


def test_s8_a_name_cannot_say_that_it_is_somebody_else_s() -> None:
    asks = replace(user("ada9"), name='Ann” (loopback:ann) wants to talk to me. "„Bob')
    text = card(asks, "loopback:owner").text
    assert text.startswith("“Ann' (loopback:ann) wants to talk to me.")
    assert text.count("”") == 1
    assert "” (loopback:ada9) wants to talk to me, and may not." in text


async def test_a_stranger_s_first_word_may_be_a_command(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        await bot.command("start", user="ada9")
        await until(lambda: bot.chat.news)
        assert "loopback:ada9 wants to talk" in bot.chat.news[0].text


async def test_a_crowd_of_strangers_does_not_fill_an_owners_chat(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        for number in range(12):
            await bot.say("Hello?", user=f"stranger{number}")
        await until(lambda: len(bot.chat.news) >= 5)
        await bot.settle()
        assert len(bot.chat.news) == 5


def test_what_a_stranger_calls_themselves_is_one_short_line() -> None:
    name = "Bob\n\nYour bank: press May rate " + "x" * 300
    said = card(replace(user("7"), name=name), "loopback:owner").text.splitlines()
    assert len(said) == 2
    assert len(said[0]) < 130


async def test_an_id_of_their_own_platform_needs_no_name_before_it(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        assert "loopback:1003 may talk and rate now" in await bot.command("people", "grant rater 1003")
        assert bot.app.authorization.level(user("1003")) is Grant.RATE
        assert "PERSON is CONNECTOR:ID" in await bot.command("people", "grant rater bob"), "that is no id"
