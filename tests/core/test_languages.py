# SPDX-License-Identifier: Apache-2.0
"""People are told things in the language that they read, whoever else is told the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from goodbot.api.events import ChannelKind, CommandEvent, UserRef
from goodbot.api.sentences import because, words
from goodbot.config import ServingConfig
from goodbot.conversation import sanitize
from goodbot.store import codec

from tests.core.builders import OWNER, open_bot, rate
from tests.core.test_dispatcher import message

ROOM = "#room"
CHIPS = ["Zu lang", "Zu kurz", "Falsch", "Ton", "Sag es besser"]


def read_by(user: UserRef, language: str) -> UserRef:
    return replace(user, language=language)


async def test_a_receipt_is_told_to_each_in_their_language(tmp_path: Path) -> None:
    async with open_bot(tmp_path) as bot:
        answer = await bot.say("Hello?")
        event = rate("r1", 5, -1.0, message_id=answer.message.id)
        german, french = (replace(event, user=read_by(event.user, tag)) for tag in ("de-AT", "fr_FR"))
        [first] = await bot.chat.host.submit([german])
        assert first.text.startswith("Schlecht. 1 von 8 Bewertungen (noch 7).")
        assert [button.label for button in first.offer] == CHIPS
        [again] = await bot.chat.host.submit([french])
        assert again.duplicate
        assert again.text.startswith("Mauvaise. 1 note sur 8 (encore 7).")
        assert again.reasons == first.reasons
        [english] = await bot.chat.host.submit([event])
        assert english.text.startswith("Bad. 1 of 8 ratings (7 to go).")


async def test_whose_language_is_not_known_reads_the_bots(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections={"serving": ServingConfig(language="ja")}) as bot:
        [told] = await bot.chat.host.submit([rate("r1", 5, 1.0, message_id="")])
        assert told.text == "それは私の回答ではありません。"
        dutch = replace(OWNER, language="nl")
        [told] = await bot.chat.host.submit([rate("r2", 5, 1.0, message_id="", user=dutch)])
        assert told.text == "それは私の回答ではありません。"


async def test_a_group_is_told_in_the_bots_language(tmp_path: Path) -> None:
    async with open_bot(tmp_path, sections={"serving": ServingConfig(language="es")}) as bot:
        await bot.command("enable", channel=ROOM)
        await bot.app.notices.post()
        [notice] = [item.text for item in bot.chat.news if item.message.channel.id == ROOM]
        assert notice.startswith("Mencióname o respóndeme.")


def test_what_is_asked_before_others_is_answered_in_the_bots_language() -> None:
    asked = message("m1", user=read_by(OWNER, "ja"))
    room = replace(asked, channel=replace(asked.channel, id=ROOM, kind=ChannelKind.SHARED))
    private = replace(asked, channel=replace(asked.channel, kind=ChannelKind.PRIVATE))
    assert sanitize.read_by(room, "es").user.language == "es"
    assert sanitize.read_by(private, "es").user.language == "ja"
    press = rate("r1", 5, 1.0, message_id="", user=asked.user, channel=room.channel)
    assert sanitize.read_by(press, "es").user.language == "ja", "its answer is for them alone"


async def test_what_waits_in_the_inbox_knows_who_reads_it(tmp_path: Path) -> None:
    event = replace(message("m1"), user=read_by(OWNER, "pt"))
    assert codec.load_event(codec.dump_event(event)).user.language == "pt"


def test_a_command_that_waits_is_read_by_an_earlier_goodbot_and_known_as_a_look() -> None:
    asked = message("c1")
    typed = CommandEvent(
        event_id="c1", order=asked.order, user=asked.user, channel=asked.channel, name="status"
    )
    assert "looked" not in codec.dump_event(typed)
    looked = replace(typed, looked=True)
    assert [codec.load_event(codec.dump_event(one)) for one in (typed, looked)] == [typed, looked]


def test_what_an_earlier_goodbot_kept_is_told_still() -> None:
    assert "`/rl people grant talker 1003`" in words(because("stranger", id="1003"), language="fr")
