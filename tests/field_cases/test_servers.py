# SPDX-License-Identifier: Apache-2.0
"""F6, F7: model servers with the manners of real ones, through the driver and through `goodbot chat`."""

from __future__ import annotations

import contextlib
import gzip
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from goodbot.api.server import Generated, GenerateRequest
from goodbot.base.errors import ServerError
from goodbot.inference.servers.openai import OpenAIServer

from tests.cli.program import need_backend
from tests.cli.setting_up import far_side
from tests.cli.terminal import Person
from tests.core.inference.servers.remote import parts, started
from tests.core.inference.servers.test_manners import error, no_system, strict
from tests.core.inference.servers.test_thinking import chunk, events, serving

PATH = "/v1/chat/completions"
SAID = chunk({"content": "Green."})
STOP, CUT = chunk({}, "stop"), chunk({}, "length")
ROLE = chunk({"role": "assistant", "content": ""})
CALL = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
HARMONY = "<|channel|>analysis<|message|>User asks.<|end|><|start|>assistant<|channel|>final<|message|>"
NAMED = b"".join(events(chunk({"content": "Grün 🌱"}), STOP)).replace(b"\n", b"\r\n")
STREAMS: dict[str, tuple[Sequence[bytes], tuple[str, str, str]]] = {
    "plain": (events(SAID, STOP), ("Green.", "", "stop")),
    "a thought apart": (
        events(ROLE, chunk({"reasoning_content": "Hmm."}), SAID, STOP),
        ("Green.", "Hmm.", "stop"),
    ),
    "a thought apart, cut": (
        events(
            chunk({"role": "assistant", "content": None}),
            *(chunk({"reasoning_content": word}) for word in ("The ", "user ", "asks")),
            CUT,
        ),
        ("", "The user asks", "length"),
    ),
    "a thought in the text": (
        events(
            ROLE,
            chunk({"content": "<think>\nThe user asks about grass."}),
            chunk({"content": "\n</think>\n\nGreen."}),
            STOP,
        ),
        ("Green.", "The user asks about grass.", "stop"),
    ),
    "a thought that the template opens": (
        events(chunk({"content": "The user asks about grass.\n</think>\n\nGreen."}), STOP),
        ("Green.", "The user asks about grass.", "stop"),
    ),
    "harmony's marks": (
        events(chunk({"content": f"{HARMONY}Green."}), STOP),
        ("Green.", "User asks.", "stop"),
    ),
    "empty": (events(ROLE, STOP), ("", "", "stop")),
    "parts": (events(chunk({"content": [{"type": "text", "text": "Green."}]}), STOP), ("Green.", "", "stop")),
    "usage is null, and last": (
        events({"choices": [], "usage": None}, SAID, STOP, {"choices": [], "usage": {"total_tokens": 3}}),
        ("Green.", "", "stop"),
    ),
    "events with names, ids and comments": (
        [b"event: message\r\nid: 1\r\nretry: 5\r\n: ping\r\n\r\n", NAMED],
        ("Grün 🌱", "", "stop"),
    ),
    # Siblings.
    "a thought in Arabic": (
        events(chunk({"content": "<think>السؤال عن العشب</think>أخضر."}), STOP),
        ("أخضر.", "السؤال عن العشب", "stop"),
    ),
    "a thought in the text, cut": (
        events(chunk({"content": "<think>\nThe user asks"}), CUT),
        ("", "The user asks", "length"),
    ),
    "no finish, but an end": (events(SAID), ("Green.", "", "stop")),
    "a name of the role in each piece": (
        events(*(chunk({"role": "assistant", "content": word}) for word in ("Gre", "en.")), STOP),
        ("Green.", "", "stop"),
    ),
}


async def asked(url: str) -> Generated:
    request = GenerateRequest(
        messages=[
            {"role": "system", "content": "Be terse."},
            {"role": "user", "content": "What colour is grass?"},
        ],
        max_tokens=64,
        temperature=0.7,
        seed=1,
    )
    async with started(OpenAIServer(None, parts(url))) as driver:
        *_, last = [piece async for piece in driver.generate(request)]
    assert isinstance(last, Generated)
    return last


@pytest.mark.parametrize("name", STREAMS)
async def test_f6_the_answer_is_what_is_meant_for_people(name: str) -> None:
    lines, expected = STREAMS[name]
    async with serving(lines, PATH) as url:
        told = await asked(url)
    assert (told.text, told.thought, told.finish) == expected


async def test_f6_a_call_that_nobody_asked_for_is_no_words() -> None:
    made = chunk({"role": "assistant", "content": None, "tool_calls": [CALL]})
    async with serving(events(made, chunk({}, "tool_calls")), PATH) as url:
        assert (await asked(url)).text == ""


def packed(_: dict[str, Any]) -> web.Response:
    headers = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}
    return web.Response(body=gzip.compress(b"".join(events(SAID, STOP))), headers=headers)


async def test_f6_a_stream_that_comes_compressed_is_read() -> None:
    async with strict(packed) as server:
        assert (await asked(server.url)).text == "Green."


def loading(_: dict[str, Any]) -> web.Response:
    told = {"code": 503, "message": "Loading model", "type": "unavailable_error"}
    return web.json_response({"error": told}, status=503)


def wrong_inside(_: dict[str, Any]) -> web.Response:
    return web.json_response({"error": "Model is loading"})


def page(_: dict[str, Any]) -> web.Response:
    return web.Response(text="<html>502 Bad Gateway</html>", content_type="text/html")


def nothing(_: dict[str, Any]) -> web.Response:
    return web.Response(body=b"", content_type="text/event-stream")


@pytest.mark.parametrize(
    ("refuses", "words"),
    [
        (loading, "Loading model"),
        (wrong_inside, "Model is loading"),
        (page, ""),
        # Siblings.
        (nothing, "broke its answer off"),
        (lambda _: error("CUDA out of memory", 500), "CUDA out of memory"),
    ],
)
async def test_f7_what_is_no_answer_is_one_sentence(refuses: Any, words: str) -> None:
    async with strict(refuses) as server:
        with pytest.raises(ServerError) as told:
            await asked(server.url)
    assert words in str(told.value)
    assert "<html>" not in str(told.value)
    assert "\n" not in str(told.value)


CONFIG = """\
[model]
path = "demo"
[serving]
server = "openai"
url = "{url}"
system_prompt = "Be terse."
"""


THOUGHT = "<think>\nThe user asks about grass. I must not tell them that I find this dull."


def thinks_inline(_: dict[str, Any]) -> web.Response:
    return streamed(chunk({"content": THOUGHT}), chunk({"content": "\n</think>\n\nGreen."}), STOP)


def thinks_until_cut(_: dict[str, Any]) -> web.Response:
    return streamed(*(chunk({"reasoning_content": "hm "}) for _ in range(20)), CUT)


def streamed(*chunks: Any) -> web.Response:
    return web.Response(body=b"".join(events(*chunks)), content_type="text/event-stream")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("manner", "shown", "stored"),
    [
        (thinks_inline, "Green.", "Green."),
        (thinks_until_cut, "I thought until", ""),
        (no_system, "Green.", "Green."),
    ],
)
def test_f6_f7_whoever_chats_sees_the_answer_or_why_there_is_none(
    manner: Any, shown: str, stored: str, tmp_path: Path
) -> None:
    need_backend()
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with far_side(lambda: strict(manner)) as far, contextlib.ExitStack() as stack:
        (home / "config.toml").write_text(CONFIG.format(url=far.there.url))
        ada = stack.enter_context(Person(home, "chat"))
        ada.sees("type a message")
        ada.type("What colour is grass?\r")
        screen = ada.sees(shown)
        ada.sees("g good" if stored else shown)
        assert "dull" not in screen
        assert "<think>" not in screen
        assert "not running" not in screen
        ada.press("\x04")
        assert ada.ends() == 0
    with contextlib.closing(sqlite3.connect(home / "goodbot.db")) as db:
        assert db.execute("SELECT response FROM turns").fetchall() == [(stored,)]
