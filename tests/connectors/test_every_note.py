# SPDX-License-Identifier: Apache-2.0
"""What was wrong with an answer, said in the way of each platform, is a line of the next prompt there."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import importlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, cast

import pytest
from goodbot.access import pairing
from goodbot.api.events import MessageRef
from goodbot.api.turns import Turn
from goodbot.config import HttpConfig
from goodbot.config.lock import CONTROL_SOCKET, socket_path
from goodbot.conversation.note_rules import RULES
from goodbot.daemon.control import ControlSocket, execute
from goodbot.store import turns
from goodbot.testing.connector_base import eventually
from goodbot.testing.platform import Post
from goodbot_connectors.terminal.conversation import Conversation
from goodbot_connectors.terminal.link import Link

from tests.connectors.api.daemon import served
from tests.connectors.terminal.peer import TerminalPeer
from tests.connectors.terminal.test_news import Lines, View
from tests.connectors.web.peer import Browser, WebPeer
from tests.core.builders import Bot, open_bot, rows
from tests.support import free_port, require
from tests.training.zoo.dialects import CHATML

Far = AbstractAsyncContextManager[Any]


class Page(WebPeer):
    """A browser that is signed in with a link of the machine's."""

    bot: Bot

    async def browser(self, user: str) -> Browser:
        if user not in self.browsers:
            address, _, code = (
                (await execute(self.bot.app, "web", ())).text.splitlines()[0].partition("/login#")
            )
            self.browsers[user] = Browser(address)
            await self.browsers[user].log_in(code)
        return self.browsers[user]


class Screen(TerminalPeer):
    """A chat in a terminal, where words are typed as commands."""

    bot: Bot

    async def comment(
        self, message: MessageRef, text: str, *, better: bool = False, user: str = "ada"
    ) -> None:
        told = await execute(self.bot.app, "better" if better else "reason", [self._turns[message.id], text])
        self._receipts.append(told.text)


@contextlib.asynccontextmanager
async def telegram(home: Path) -> AsyncIterator[Any]:
    require("telegram")
    from goodbot_fakes.telegram import FakeTelegram

    from tests.connectors.telegram.fake import Driver

    async with FakeTelegram() as fake:
        yield Driver(fake)


@contextlib.asynccontextmanager
async def discord(home: Path) -> AsyncIterator[Any]:
    require("discord")
    from goodbot_fakes.discord import FakeDiscord

    from tests.connectors.discord.peer import DiscordPeer

    async with FakeDiscord() as fake:
        yield DiscordPeer(fake)


@contextlib.asynccontextmanager
async def slack(home: Path) -> AsyncIterator[Any]:
    require("slack_sdk")
    from goodbot_fakes.slack import FakeSlack

    from tests.connectors.slack.conftest import QUICK
    from tests.connectors.slack.peer import SlackPeer

    async with FakeSlack(pace=QUICK) as fake:
        yield SlackPeer(fake)


@contextlib.asynccontextmanager
async def teams(home: Path) -> AsyncIterator[Any]:
    require("botbuilder.core")
    from goodbot_fakes.teams import FakeTeams, Pace

    from tests.connectors.teams.conftest import QUICK
    from tests.connectors.teams.peer import TeamsPeer

    async with FakeTeams(pace=Pace(**QUICK)) as fake:
        yield TeamsPeer(fake)


@contextlib.asynccontextmanager
async def web(home: Path) -> AsyncIterator[Any]:
    page = Page()
    yield page
    await page.close()


@contextlib.asynccontextmanager
async def terminal(home: Path) -> AsyncIterator[Any]:
    screen = Screen(home / "bot" / "connectors" / "terminal")
    yield screen
    await screen.close()


@contextlib.asynccontextmanager
async def beside(home: Path, name: str, far: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bot]:
    """A goodbot on that platform whose owner is Ada."""
    for secret, value in far.environ.items():
        monkeypatch.setenv(secret, value)
    (home / "fake").mkdir()
    (home / "fake" / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    given = far.settings
    own = {
        one.name: list(value) if isinstance(value := getattr(given, one.name), tuple) else value
        for one in dataclasses.fields(given)
        if one.default is dataclasses.MISSING or getattr(given, one.name) != one.default
    }
    local = name == "terminal"
    sections = {"http": HttpConfig(port=free_port()), **({} if local else {"connectors": {name: own}})}
    extra = () if local else (importlib.import_module(f"goodbot_connectors.{name}"),)
    async with open_bot(home, extra=extra, sections=sections, terminal=True) as bot:
        far.bot = bot
        far.host = bot.app.connectors.running[name].host
        if far.environ:  # no account of this machine's
            await far.say(await pairing.open_code(bot.store, name, bot.app.clock.now()))
            await eventually(lambda: rows(bot.store, "SELECT 1 FROM grants"))
        yield bot


@dataclasses.dataclass
class Ada:
    """Asks, and says what was wrong."""

    bot: Bot
    far: Any

    async def ask(self, text: str) -> tuple[MessageRef, Turn]:
        before = {post.id for post in await self.far.posts()}
        count = await self.count("turns")
        await self.far.say(text)
        await self.becomes("turns", count + 1)

        async def shown() -> Post | None:
            new = [one for one in await self.far.posts() if one.id not in before and "bad" in one.buttons]
            return new[-1] if new else None

        post = await eventually(shown)
        turn = await self.last()
        return MessageRef(channel=turn.channel, id=post.id), turn

    async def call_bad(self, message: MessageRef) -> None:
        count = await self.count("labels")
        await self.far.press(message, "bad")
        await self.becomes("labels", count + 1)

    async def is_told(self, text: str) -> None:
        async def so() -> bool:
            return any(text in one for one in await self.far.notices())

        await eventually(so)

    async def last(self) -> Turn:
        [(id_,)] = await rows(self.bot.store, "SELECT id FROM turns ORDER BY seq DESC LIMIT 1")
        found = await self.bot.store.read(lambda db: turns.get(db, id_))
        assert found is not None
        return found

    async def count(self, table: str) -> int:
        [(number,)] = await rows(self.bot.store, f"SELECT count(*) FROM {table}")
        return number

    async def becomes(self, table: str, number: int) -> None:
        async def so() -> bool:
            return await self.count(table) == number

        await eventually(so)

    async def system(self) -> str:
        """What the system says before the next answer."""
        _, turn = await self.ask("And now?")
        return "".join(str(one["content"]) for one in turn.messages if one["role"] == "system")


SURFACES: tuple[Callable[[Path], Far], ...] = (telegram, discord, slack, teams, web, terminal)


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
async def test_a_chip_a_reason_and_a_better_answer_reach_the_next_prompt(
    tmp_path: Path, surface: Callable[[Path], Far], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with surface(tmp_path) as far, beside(tmp_path, surface.__name__, far, monkeypatch) as bot:
        ada = Ada(bot, far)
        first, _ = await ada.ask("What is love?")
        await ada.call_bad(first)

        async def offered() -> bool:
            return "again:long" in await far.offers()

        await eventually(offered)
        count = await ada.count("turns")
        await far.press(first, "again:long")
        await ada.becomes("turns", count + 1)
        assert await ada.system() == f'What readers have asked of your answers: "{RULES["long"].text}"'
        await ada.is_told("Noted: shorter answers.")
        for better, text, line, told in (
            (False, "no lists, please", '"no lists, please"', "Noted: your words."),
            (True, "Baby, do not", '"Answer more like this: Baby, do not"', "Noted: more like your answer."),
        ):
            answer, _ = await ada.ask("What is hate?")
            await ada.call_bad(answer)
            count = await ada.count("notes")
            await far.comment(answer, text, better=better)
            await ada.becomes("notes", count + 1)
            assert line in await ada.system()
            await ada.is_told(told)


@contextlib.asynccontextmanager
async def typing(bot: Bot) -> AsyncIterator[Callable[[str], Awaitable[str]]]:
    """What somebody types in `goodbot chat`, and what it shows of that."""
    home = bot.app.config.home
    control = ControlSocket(home)
    control.app = bot.app
    control.ready()
    await control.start()

    def typed(text: str) -> str:
        view = View()
        chat = Conversation(cast("Link", Lines()), socket_path(home, CONTROL_SOCKET), view)
        chat.say(text)
        while chat.busy:
            chat.read(chat.links[1])
        return view.shown[-1]

    try:
        yield lambda text: asyncio.to_thread(typed, text)
    finally:
        await control.stop()


async def test_in_the_terminal_notes_are_read_switched_edited_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with terminal(tmp_path) as far, beside(tmp_path, "terminal", far, monkeypatch) as bot:
        ada = Ada(bot, far)
        answer, _ = await ada.ask("What is love?")
        await ada.call_bad(answer)
        await far.comment(answer, "no lists, please")
        async with typing(bot) as typed:
            shown = await typed("/rl notes")
            assert "no lists, please" in shown
            number = shown.split()[0]
            await typed(f"/rl notes off {number}")
            assert await ada.system() == ""
            await typed(f"/notes on {number}")
            assert '"no lists, please"' in await ada.system()
            await typed(f"/rl notes edit {number} no lists at all")
            assert '"no lists at all"' in await ada.system()
            await typed(f"/rl notes delete {number}")
            assert "no lists" not in await typed("/notes")
            assert await ada.system() == ""


async def test_answers_of_other_programs_are_theirs(tmp_path: Path, unused_tcp_port: int) -> None:
    """What a program brings in was written for its own prompt: nothing is noted, and nothing is said."""
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}))
    async with served(tmp_path, unused_tcp_port) as api:
        turn = await api.me.captured()
        status, said = await api.me.post(
            "/v1/feedback", {"turn": turn, "score": -1, "comment": "too long", "better": "It is four."}
        )
        assert status == 200
        assert "Noted" not in said["text"]
        assert await rows(api.bot.store, "SELECT * FROM notes") == []
