# SPDX-License-Identifier: Apache-2.0
"""Many people with several tabs each, all at once."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

from goodbot.api.events import MessageEvent, RatingEvent
from goodbot.testing.connector_base import eventually

from tests.connectors.web.peer import Browser
from tests.connectors.web.scripted import Scripted, scripted
from tests.support import patience

PEOPLE, TABS, QUESTIONS = 12, 3, 5


async def test_everybody_gets_their_own_in_every_tab(tmp_path: Path) -> None:
    async with scripted(tmp_path) as bot:
        await asyncio.gather(*(one(bot, f"person{number}") for number in range(PEOPLE)))
        assert bot.failures == []
        asked = [event for event in bot.events if isinstance(event, MessageEvent)]
        rated = [event for event in bot.events if isinstance(event, RatingEvent)]
        assert len(asked) == len(rated) == PEOPLE * QUESTIONS
        assert all(event.text.startswith(event.user.id) for event in asked)
        assert len({event.turn for event in rated}) == PEOPLE * QUESTIONS


async def one(bot: Scripted, name: str) -> None:
    """Somebody opens tabs, asks in one of two conversations, and rates each answer in some tab."""
    bot.codes[f"code of {name}"] = name
    async with contextlib.AsyncExitStack() as closing:
        tabs = [
            await closing.enter_async_context(contextlib.aclosing(Browser(bot.address))) for _ in range(TABS)
        ]
        await in_tabs(bot, name, tabs)


async def in_tabs(bot: Scripted, name: str, tabs: list[Browser]) -> None:
    first = tabs[0]
    await first.log_in(f"code of {name}")
    for tab in tabs[1:]:
        tab.http.cookie_jar.update_cookies({cookie.key: cookie.value for cookie in first.http.cookie_jar})
        tab.open()
        await asyncio.wait_for(tab.listening.wait(), patience(20))
    for number in range(QUESTIONS):
        place = f"talk{number % 2}"
        text = f"{name} asks {number}"
        tabs[number % TABS].put({"id": f"q{number}", "in": place, "say": text})
        answer = [await whole(tab, f"a-q{number}") for tab in tabs]
        assert all(entry["text"] == f"You said: {text}" for entry in answer), "in every tab"
        press = {"press": "good", "turn": answer[0]["turn"], "message": answer[0]["id"]}
        tabs[(number + 1) % TABS].put({"id": f"r{number}", "in": place, **press})
        for tab in tabs:
            await heard(tab, lambda f, e=answer[0]: f.get("turn") == e["turn"] and "said" in f)
    everything = json.dumps([tab.frames for tab in tabs])
    others = {f"person{number}" for number in range(PEOPLE)} - {name}
    assert f"{name} asks" in everything
    assert not any(f"{other} asks" in everything for other in others)


async def whole(tab: Browser, id_: str) -> dict[str, Any]:
    """An answer, once it can be rated."""

    def is_it(frame: dict[str, Any]) -> bool:
        entry = frame.get("entry", {})
        return entry.get("id") == id_ and bool(entry["turn"])

    return (await heard(tab, is_it))["entry"]


async def heard(tab: Browser, like: Any) -> dict[str, Any]:
    async def found() -> list[dict[str, Any]]:
        return [frame for frame in tab.frames if like(frame)]

    return (await eventually(found, 30))[-1]
