# SPDX-License-Identifier: Apache-2.0
"""Which answer `/rl good` means: the last one of its own session, or none at all. Never a guess."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.texts import joined, say

from goodbot_connectors.claude_code.sessions import Session, SessionAnswer, SessionTurn

_LISTED = 5
_SHORTEST = 4
"""Characters that name an answer."""
_WHOLE = 6
"""Characters of a name as it is shown."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """An answer, or why none is meant and what can be done."""

    answer: SessionAnswer | None = None
    rest: str = ""
    """The words behind the answer's name."""
    why: str = ""
    named: bool = False
    """Whether the person has named it."""


def meant(session: Session, args: str, language: str = "") -> Meant:
    """The answer that the first word of `args` names, else the last that was shown."""
    word, rest = (*args.split(None, 1), "", "")[:2]
    named = _named(session, word)
    if len(named) == 1:
        return Meant(answer=named[0], rest=rest.strip(), named=True)
    if len(named) > 1:
        return Meant(why=f"{say('agent_several', language, word=word)}\n{listed(session)}")
    if not any(session.kept()):
        return Meant(why=say("agent_nothing", language))
    if _is_name(word):
        return Meant(why=f"{say('agent_unknown', language, word=word)}\n{listed(session)}")
    last = session.asked[-1]
    if len(last.answers) == 1 and not last.missed:
        return Meant(answer=last.answers[0], rest=args)
    which = joined(language, say(_unclear(last), language), say("agent_which", language))
    return Meant(why=f"{which}\n{listed(session)}")


def _unclear(last: SessionTurn) -> str:
    """The key of the text that says why."""
    if not last.ended:
        return "agent_unfinished"
    if len(last.answers) + last.missed > 1:
        return "agent_twice"
    return "agent_prompt" if last.prompt_id else "agent_away"


def listed(session: Session) -> str:
    """What can be rated, newest first, with what to type."""
    lines = [
        f"  /rl good {answer.turn[:_WHOLE]}  “{_short(asked.text, 30)}” → “{_short(answer.text, 40)}”"
        for asked, answer in session.kept()
    ]
    return "\n".join(lines[:_LISTED])


def surplus(session: Session, typed: str, language: str = "") -> str:
    """Why words behind a command that takes none are not passed over: they may be a mistyped name."""
    return f"{say('agent_surplus', language, typed=typed)}\n{listed(session)}"


def quote(answer: SessionAnswer) -> str:
    """How an answer begins."""
    return f"“{_short(answer.text, 40)}”"


def _is_name(word: str) -> bool:
    """Whether it is an answer's name rather than a word of a reason: mistyped, or of an older answer."""
    digits = sum(one in "0123456789" for one in word)
    return len(word) >= _WHOLE and digits > 0 and all(one in "0123456789abcdef" for one in word.lower())


def _named(session: Session, word: str) -> list[SessionAnswer]:
    if len(word) < _SHORTEST:
        return []
    found = {answer.turn: answer for _, answer in session.kept() if answer.turn.startswith(word.lower())}
    return list(found.values())


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
