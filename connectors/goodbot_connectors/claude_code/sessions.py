# SPDX-License-Identifier: Apache-2.0
"""What was asked and answered in the sessions of Claude Code: which answer is meant, over restarts.

One durable value a session, of a few thousand characters; the sessions that were used last are kept.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from goodbot.api.connector import ConnectorHost
from goodbot.base.errors import StoreError
from goodbot.base.redact import redact, redact_beginning

from goodbot_connectors.claude_code.transcript import TranscriptTurn
from goodbot_connectors.kit.fields import Json, as_json, items, string

logger = logging.getLogger(__name__)

MOST = 40
"""Sessions; of older ones the last answer can be rated in goodbot's own pages."""
_EXCHANGES = 16
"""Of one session."""
_KEPT = 2_000
"""Characters of an earlier prompt or answer, as context for the next."""
_WAITING = 64_000
"""Characters of a prompt that waits for its answer; a longer one is read in the transcript then."""
_INDEX = "sessions"
_DAY = 86_400.0
_HOUR = 3_600.0


@dataclass(kw_only=True, slots=True)
class SessionAnswer:
    """One that was kept."""

    turn: str
    event_id: str
    text: str


@dataclass(kw_only=True, slots=True)
class SessionTurn:
    """One turn of Claude Code's."""

    prompt_id: str
    text: str
    certain: bool = True
    """Whether `text` is what this turn answers, by the hooks alone."""
    ended: bool = False
    answers: list[SessionAnswer] = field(default_factory=list[SessionAnswer])
    missed: int = 0
    """Answers that were shown and not kept: to work in the background, to `!` commands."""
    at: float = math.inf
    """When it was first stored, in seconds since the epoch; infinite before that."""


@dataclass(kw_only=True)
class Session:
    """One conversation of one person. Change it while `lock` is held, then `Sessions.save` it."""

    id: str
    user: str
    asked: list[SessionTurn] = field(default_factory=list[SessionTurn])
    queued: bool = False
    """Whether prompts have had to queue: from then on hooks alone do not tell which one is answered."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    forgotten: bool = False
    """Whether its person has asked for that while somebody held it: it is stored no more."""

    def find(self, prompt_id: str) -> SessionTurn | None:
        """The turn of this id."""
        return next((one for one in reversed(self.asked) if one.prompt_id == prompt_id), None)

    def ask(self, prompt_id: str, text: str, *, person: bool) -> None:
        """Somebody has written this; `person`: not Claude Code itself."""
        known = self.find(prompt_id)
        if known is not None:
            self.queued = True
            return
        whole = len(text) <= _WAITING
        text = redact(text) if person and whole else ""
        certain = whole and not self.queued
        self._add(SessionTurn(prompt_id=prompt_id, text=text, certain=certain))

    def prompt(self, prompt_id: str, seen: TranscriptTurn | None) -> str:
        """What the turn answers, "" when that is not certain or no person asked; see `TranscriptTurn`."""
        known = self.find(prompt_id)
        said = known.text if known is not None and known.certain else ""
        if seen is None:
            return said if not self.queued else ""
        text = seen.text if seen.queued or not said or not seen.text else said
        return "\n\n".join([text, *seen.during]) if seen.text else ""

    def answered(self, prompt_id: str, prompt: str, answer: SessionAnswer) -> None:
        """It was kept."""
        known = self._ended(prompt_id)
        known.text = redact_beginning(prompt, _KEPT)
        answer.text = redact_beginning(answer.text, _KEPT)
        if all(one.event_id != answer.event_id for one in known.answers):
            known.answers.append(answer)

    def missed(self, prompt_id: str) -> None:
        """An answer was shown that was not kept."""
        known = self._ended(prompt_id)
        known.text = known.text[:_KEPT]
        known.missed += 1

    def lost(self) -> None:
        """Something was said here that we have not heard: what was the last is so no more."""
        for one in self.asked:
            one.certain = one.certain and one.ended  # more may have been written in it
        if not self.asked or self.asked[-1].prompt_id:
            self._add(SessionTurn(prompt_id="", text="", ended=True, missed=1))

    def prune(self, before: float) -> bool:
        """Drop what is older; whether anything was."""
        count = len(self.asked)
        self.asked = [one for one in self.asked if one.at >= before]
        return len(self.asked) < count

    def context(self, prompt_id: str, most: int) -> list[tuple[str, str]]:
        """The kept exchanges before a turn, oldest first: prompt and answer."""
        before: list[tuple[str, str]] = []
        for one in self.asked:
            if one.prompt_id == prompt_id:
                break
            if one.answers and one.text:
                before.append((one.text, one.answers[-1].text))
        return before[-most:] if most else []

    def kept(self) -> Iterator[tuple[SessionTurn, SessionAnswer]]:
        """All answers that can be rated, newest first."""
        for one in reversed(self.asked):
            for answer in reversed(one.answers):
                yield one, answer

    def knows(self, event_id: str) -> bool:
        """Whether this answer was kept before."""
        return any(answer.event_id == event_id for _, answer in self.kept())

    def _ended(self, prompt_id: str) -> SessionTurn:
        known = self.find(prompt_id) or self._add(SessionTurn(prompt_id=prompt_id, text=""))
        known.ended = True
        return known

    def _add(self, asked: SessionTurn) -> SessionTurn:
        self.asked = [*self.asked, asked][-_EXCHANGES:]
        return asked


class Sessions:
    """All of them, read when they are asked for; nothing in them is older than `days`."""

    def __init__(self, host: ConnectorHost, days: float) -> None:
        self._host, self._days = host, days
        self._order: dict[str, float] = {}
        """By user and session, those last used last: when the oldest of what is kept was said, at most."""
        self._open: dict[str, Session] = {}
        self._swept = -math.inf

    @property
    def oldest(self) -> float:
        """What was said before then is not kept, in seconds since the epoch; 0 while the clock is odd."""
        return self._host.clock.now() - self._days * _DAY if self._host.steady else 0.0

    async def load(self) -> None:
        """Read which there are. Raises StoreError."""
        kept = as_json(json.loads(await self._host.get(_INDEX) or "{}"))
        self._order = {key: float(at) if isinstance(at, int | float) else 0.0 for key, at in kept.items()}
        await self._sweep()

    async def open(self, user: str, id_: str) -> Session:
        """A session of a person's; another person's of the same id is none of theirs."""
        key = f"{user} {id_}"
        if key not in self._open:
            stored = as_json(json.loads(await self._host.get(_key(key)) or "{}"))
            if key not in self._open:  # nobody else has read it meanwhile
                self._open[key] = _session(id_, user, stored)
        self._open[key].prune(self.oldest)
        return self._open[key]

    async def save(self, session: Session) -> bool:
        """Store it; what cannot be stored (False) is known until the next restart."""
        if session.forgotten:
            return True
        key = f"{session.user} {session.id}"
        session.prune(self.oldest)
        try:
            await self._put(key, session)
            if session.forgotten:  # meanwhile
                return True
            if next(reversed(self._order), "") != key:
                self._order.pop(key, None)
                self._order[key] = min((one.at for one in session.asked), default=0.0)
                for old in list(self._order)[:-MOST]:
                    await self._drop(old)
                await self._store()
            if self._host.clock.monotonic() - self._swept > _HOUR:
                await self._sweep()
        except StoreError as error:
            logger.warning("claude_code: what was asked was not stored: %s", error)
            return False
        return True

    async def forget(self, user: str) -> None:
        """Drop all that a person has said, unsaved too. Raises StoreError; then it is to be called again."""
        keys = dict.fromkeys([*self._order, *self._open])
        mine = [key for key in keys if key.rpartition(" ")[0] == user]
        for key in mine:  # before the first wait: a hook that holds one stores nothing old
            self._order.setdefault(key, 0.0)
            session = self._open.pop(key, None)
            if session is not None:
                session.asked, session.queued, session.forgotten = [], False, True
        for key in mine:
            await self._drop(key)
        if mine:
            await self._store()

    async def _put(self, key: str, session: Session) -> None:
        for one in session.asked:
            one.at = min(one.at, self._host.clock.now())
        value = {"asked": [asdict(one) for one in session.asked], "queued": session.queued}
        await self._host.set(_key(key), json.dumps(value, separators=(",", ":")))

    async def _sweep(self) -> None:
        """Drop what has become too old in sessions that nobody uses.

        What is from a time to come was said before our clock was set back: it is stored as of now.
        """
        self._swept = self._host.clock.monotonic()
        before, now = dict(self._order), self._host.clock.now()
        for key in [key for key, at in before.items() if not self.oldest <= at <= now]:
            user, _, id_ = key.rpartition(" ")
            session = await self.open(user, id_)
            if session.lock.locked():
                continue  # it is used, and pruned when it is saved
            if session.asked:
                await self._put(key, session)
                self._order[key] = min(one.at for one in session.asked)
            else:
                await self._drop(key)
        if self._order != before:
            await self._store()

    async def _drop(self, key: str) -> None:
        await self._host.set(_key(key), "")
        self._order.pop(key, None)
        self._open.pop(key, None)

    async def _store(self) -> None:
        value = json.dumps(self._order, separators=(",", ":")) if self._order else ""
        await self._host.set(_INDEX, value)


def _key(key: str) -> str:
    return f"session {key}"


def _session(id_: str, user: str, json_: Json) -> Session:
    asked = [
        SessionTurn(
            prompt_id=string(one, "prompt_id"),
            text=string(one, "text"),
            certain=one.get("certain") is True,
            ended=one.get("ended") is True,
            missed=int(one.get("missed") or 0),
            at=float(one.get("at") or 0),
            answers=[
                SessionAnswer(**{name: string(answer, name) for name in ("turn", "event_id", "text")})
                for answer in items(one, "answers")
            ],
        )
        for one in items(json_, "asked")
    ]
    return Session(id=id_, user=user, asked=asked, queued=json_.get("queued") is True)
