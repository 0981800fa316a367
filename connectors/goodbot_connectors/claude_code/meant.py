"""Which answer `/rl good` means: the last one of its own session, or none at all. Never a guess."""

from __future__ import annotations

from dataclasses import dataclass

from goodbot_connectors.claude_code.sessions import Answer, Asked, Session

_LISTED = 5
_SHORTEST = 4
"""Characters that name an answer."""
NOTHING = (
    "There is no answer in this session that goodbot has kept, so there is nothing to rate. "
    "The next one will be."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Meant:
    """An answer, or why none is meant and what can be done."""

    answer: Answer | None = None
    rest: str = ""
    """The words behind the answer's name."""
    why: str = ""
    named: bool = False
    """Whether the person has named it."""


def meant(session: Session, args: str) -> Meant:
    """The answer that the first word of `args` names, else the last that was shown."""
    word, _, rest = args.partition(" ")
    named = _named(session, word)
    if len(named) == 1:
        return Meant(answer=named[0], rest=rest.strip(), named=True)
    if len(named) > 1:
        return Meant(why=f"{word} names several answers: type more of it.\n{listed(session)}")
    if not any(session.kept()):
        return Meant(why=NOTHING)
    last = session.asked[-1]
    if len(last.answers) == 1 and not last.missed:
        return Meant(answer=last.answers[0], rest=args)
    return Meant(why=f"{_unclear(last)} {_CHOOSE}\n{listed(session)}")


_CHOOSE = "Which of these do you mean?"


def _unclear(last: Asked) -> str:
    if not last.ended:
        return "Your last prompt has no finished answer that goodbot knows of."
    if len(last.answers) + last.missed > 1:
        return "Claude has answered more than once since you last wrote."
    if not last.prompt_id:
        return "goodbot was not there when you last wrote, so it has not kept Claude's last answer."
    return "Claude's last answer was not kept: no prompt of yours is known that it answers."


def listed(session: Session) -> str:
    """What can be rated, newest first, with what to type."""
    lines = [
        f"  /rl good {answer.turn[:6]}  “{_short(asked.text, 30)}” → “{_short(answer.text, 40)}”"
        for asked, answer in session.kept()
    ]
    return "\n".join(lines[:_LISTED])


def quote(answer: Answer) -> str:
    """How an answer begins."""
    return f"“{_short(answer.text, 40)}”"


def _named(session: Session, word: str) -> list[Answer]:
    if len(word) < _SHORTEST:
        return []
    found = {
        answer.turn: answer for _, answer in session.kept() if answer.turn.startswith(word.lower())
    }
    return list(found.values())


def _short(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
