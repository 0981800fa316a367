# SPDX-License-Identifier: Apache-2.0
"""What a coding agent shows of goodbot is in the language of its people."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot.api.texts import LANGUAGES, reworded, say
from goodbot_connectors.claude_code.sessions import Session, SessionAnswer, SessionTurn
from goodbot_connectors.claude_code.target import meant, surplus
from goodbot_connectors.codex import replies, session, words
from goodbot_connectors.codex.connector import HINT

from tests.connectors.codex.peer import codex

OTHERS = [language for language in LANGUAGES if language != "en"]


def claude(*turns: SessionTurn) -> Session:
    return Session(id="s", user="me", asked=list(turns))


ANSWER = SessionAnswer(turn="abc123", event_id="e", text="4")
MANY = SessionTurn(
    prompt_id="p", text="2 + 2?", answers=[ANSWER, SessionAnswer(turn="abc124", event_id="f", text="5")]
)


@pytest.mark.parametrize("language", OTHERS)
def test_which_answer_is_meant_is_said_in_it(language: str) -> None:
    for conversation, args in (
        (claude(), ""),
        (claude(MANY), "abc12"),
        (claude(MANY), "def999"),
        (claude(MANY), ""),
    ):
        english, told = meant(conversation, args).why, meant(conversation, args, language).why
        assert english, args
        assert told.partition("\n")[0] != english.partition("\n")[0]
        assert told.partition("\n")[2] == english.partition("\n")[2], "the answers are as they are"
    assert surplus(claude(), "undo", language) != surplus(claude(), "undo")


@pytest.mark.parametrize("language", OTHERS)
def test_why_nothing_can_be_rated_is_said_in_it(language: str) -> None:
    wrong = [words.said(prompt) for prompt in (" /rl reason", " /rl stars 9", " /rl undo it")]
    told = [one.wrong for one in wrong if one]
    for text in (*told, session.RUNNING, session.STOPPED, session.NONE, session.NO_UNDO, replies.HELP, HINT):
        assert reworded(text, language) not in ("", str(text)), text
    assert len(told) == 3
    assert reworded(replies.HELP, language).count("\n") == replies.HELP.count("\n")
    assert " /rl reason TEXT" in reworded(told[0], language)


async def test_codex_shows_it(tmp_path: Path) -> None:
    async with codex(tmp_path) as me:
        me.host.language = "de"
        _, blocked = await me.prompt("+1")
        assert blocked == reworded(session.NONE, "de")
        _, blocked = await me.prompt(" /rl train")
        assert blocked == say("agent_codex_none", "de", name="train")
