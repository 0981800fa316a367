# SPDX-License-Identifier: Apache-2.0
"""docs/getting-started.md, done as it says: its commands are typed word for word into a shell.

The shell is a real one on a pseudo-terminal, in an empty home, with pip, goodbot's wheel and a model; only
Telegram and what pip would download are on this machine. The answers of the dialogue are those that
the page shows, and every line that the page shows must appear.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from goodbot.testing.connector_base import eventually

from tests.architecture.source import ROOT
from tests.cli.screens import CTRL_C, Screen
from tests.connectors.telegram.peer import SECRET, TelegramPeer, people, serve
from tests.end_to_end.newcomer import clone, shop, stock, surroundings
from tests.end_to_end.telegram import Person
from tests.support import require

PAGE = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
INSTALL, SET_UP, LOOK, LEAVE, SCRIPT = re.findall(r"```console\n(.*?)```", PAGE, flags=re.S)
PROMPT = re.compile(r"(Your choice \[.*?\]:|Install them now\? \[Y/n\]:|Token .*:)(.*)")
CODE = re.compile(r"[A-Z0-9]{4}-[A-Z0-9]{4}")


def play(window: Screen, block: str, source: Path) -> None:
    """Type a block's commands, wait for what it shows, and give the answers that it gives."""
    for line in block.splitlines():
        text = " ".join(line.split())
        if text in ("", "…"):
            continue
        if text.startswith("$ "):
            window.type(text[2:] + "\r")
            if "\n…" not in block:  # nothing is shown: it must come to a good end
                window.type('echo "ended with $?"\r')
                window.sees("ended with 0", seconds=120)
            if "-m venv" in text:
                stock(source / ".venv")
        elif asked := PROMPT.fullmatch(text):
            window.sees(asked[1], seconds=120)
            typed = SECRET if asked[1].startswith("Token") else asked[2].strip()
            window.type(typed + "\r")
        else:
            window.sees(*CODE.split(text))


@pytest.fixture
async def peer() -> AsyncIterator[TelegramPeer]:
    require("telegram")
    require("torch")
    with serve() as server:
        async with people(*server) as peer:
            yield peer


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_a_newcomer_does_what_the_page_says(peer: TelegramPeer, tmp_path: Path) -> None:
    home = tmp_path / "ada"
    (home / ".goodbot").mkdir(mode=0o700, parents=True)
    # Where Telegram is, in this test; everything else is the newcomer's own.
    config = f'[connectors.telegram]\napi_base = "{peer.settings.api_base}"\n'
    (home / ".goodbot" / "config.toml").write_text(config)
    environ = surroundings(home, shop(tmp_path / "wheels"))
    shell = {"home": home, "command": ["bash", "--norc", "--noprofile"], **environ}

    source = await asyncio.to_thread(clone, tmp_path / "source")
    with Screen(**shell) as window, Screen(**shell) as another:
        window.type(f"cd {source}\r")
        await asyncio.to_thread(play, window, INSTALL, source)
        began, keys = time.monotonic(), window.keys
        await asyncio.to_thread(play, window, SET_UP, source)
        await asyncio.to_thread(window.sees, "Ctrl-C stops.")
        command = SET_UP.split("\n")[0].removeprefix("$ ") + "\r"
        typed = window.keys - keys - len(command) - len(SECRET)
        assert f"**{typed} keystrokes**" in PAGE

        ada = Person(peer, "ada")
        [code] = set(CODE.findall(window.text))
        assert "this bot is private" in (await ada.ask("Hello?")).text.lower()
        assert "You are my owner now" in (await ada.ask(code.lower())).text
        await asyncio.to_thread(window.sees, "paired: you are its owner")
        answer = await ada.ask("What is the capital of France?")
        assert "Paris" in answer.text
        await ada.press(answer, "good")
        told = await eventually(lambda: peer.notices("ada"))
        took = time.monotonic() - began
        assert told[0].startswith("Good. 1 of 40 ratings (39 to go).")
        print(f"\ninit to the first rated answer: {took:.0f} s, {typed} keystrokes and a token")

        another.type(f"cd {source}\r")
        activate = INSTALL.splitlines()[1]
        await asyncio.to_thread(play, another, f"{activate}\n{LOOK}", source)
        assert "1 of 40" in another.text
        await asyncio.to_thread(play, another, LEAVE, source)
        window.type(CTRL_C)
        await asyncio.to_thread(window.sees, "ada$")
        await asyncio.to_thread(play, another, SCRIPT, source)
        assert SECRET not in window.raw + another.raw
