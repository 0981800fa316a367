# SPDX-License-Identifier: Apache-2.0
"""What Claude Code's hooks come to: captures, ratings and commands."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goodbot.api import sentences
from goodbot.api.commands import find
from goodbot.api.connector import ConnectorHost
from goodbot.api.events import (
    CaptureEvent,
    ChannelRef,
    Message,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    UserRef,
)
from goodbot.api.texts import say
from goodbot.base.errors import GoodbotError

from goodbot_connectors.claude_code import SPEC, sidecar, transcript
from goodbot_connectors.claude_code.config import ClaudeCodeSettings
from goodbot_connectors.claude_code.payloads import (
    EXPANDED,
    LONGEST,
    NOTIFICATION,
    STOPPED,
    SUBMITTED,
    Hook,
    hook,
)
from goodbot_connectors.claude_code.sessions import Session, SessionAnswer, Sessions
from goodbot_connectors.claude_code.target import meant, quote, surplus
from goodbot_connectors.kit.bridge.local import LocalConnector

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

logger = logging.getLogger(__name__)

PATH = "/v1/claude-code/hook"
HINT = "👍 /rl good · 👎 /rl bad"
MODEL = "claude-code"
"""What the answers are by, as far as a hook tells; the capture proxy knows better."""
_VALUES = {"good": 1.0, "bad": -1.0}
_SAYING = {"reason": RatingKind.COMMENT, "better": RatingKind.BETTER}
_LOOKS, _PAUSE = 40, 0.05
"""How often, and at which distance in seconds, a transcript is looked at that is not whole yet."""


class ClaudeCodeConnector(LocalConnector):
    """Everybody who has a token is the person of that name; a session is a thread of theirs."""

    spec = SPEC
    settings: ClaudeCodeSettings

    def __init__(self, host: ConnectorHost, settings: ClaudeCodeSettings) -> None:
        super().__init__(host, settings)
        self._sessions = Sessions(host, settings.keep_days)
        self._progress: dict[str, str] = {}
        self._told: set[str] = set()

    def routes(self) -> Sequence[AbstractRouteDef]:
        from goodbot_connectors.claude_code.endpoint import routes

        return routes(PATH, self.take, self.clients, lambda: self.running)

    async def start(self) -> None:
        await self._sessions.load()
        sidecar.forgive_all(self.host.state_dir, before=self._sessions.oldest)
        await sidecar.refresh(self.host.state_dir, self.host.address)
        await super().start()

    async def forget(self, user: str) -> None:
        self._progress.pop(user, None)
        await self._sessions.forget(user)
        await super().forget(user)

    async def take(self, user: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Do what a hook of this person's says; what Claude Code is answered. Raises no error."""
        called = hook(payload)
        if called is None or not self.running:
            return {}
        try:
            session = await self._sessions.open(user, called.session)
            async with session.lock:
                if sidecar.missed(self.host.state_dir, called.session):
                    await self._lost(session)
                match called.event:
                    case event if event == SUBMITTED:
                        return await self._asked(session, called)
                    case event if event == STOPPED:
                        return await self._answered(session, called)
                    case _:
                        return _blocked(await self._typed(session, called))
        except GoodbotError as error:
            logger.warning("claude_code: %s: %s", called.event, error)
            trouble = say("agent_trouble", self.host.language, why=error)
            return _blocked(trouble) if called.event == EXPANDED else {}

    async def _lost(self, session: Session) -> None:
        """Something was said in a session while we were not there."""
        session.lost()
        if await self._sessions.save(session):
            sidecar.forgive(self.host.state_dir, session.id)

    async def _asked(self, session: Session, called: Hook) -> dict[str, Any]:
        person = not called.prompt.lstrip().startswith(NOTIFICATION)
        session.ask(called.prompt_id, called.prompt, person=person)
        await self._sessions.save(session)
        return {}

    async def _answered(self, session: Session, called: Hook) -> dict[str, Any]:
        """Keep the answer, if it is certain what it answers; a hint, if it can be rated now."""
        seen = await self._seen(session, called)
        prompt = session.prompt(called.prompt_id, seen)[:LONGEST]
        receipt = None
        if prompt and called.answer:
            event = self._capture(session, called, prompt)
            [receipt] = await self.host.submit([event])
        if receipt is not None and receipt.outcome is Outcome.ACCEPTED:
            answer = SessionAnswer(turn=receipt.turn, event_id=receipt.event_id, text=called.answer)
            session.answered(called.prompt_id, prompt, answer)
        elif called.answer and not session.knows(_event_id(called)):
            session.missed(called.prompt_id)
        await self._sessions.save(session)
        return self._shown(session, receipt)

    async def _seen(self, session: Session, called: Hook) -> transcript.TranscriptTurn | None:
        """What the transcript says; where all depends on it, once it has the answer, too."""
        known = session.find(called.prompt_id)
        needed = session.queued or known is None or not known.certain
        for _ in range(_LOOKS):
            seen = await asyncio.to_thread(
                transcript.look, called.transcript, called.session, called.prompt_id, called.answer
            )
            if not needed or (seen is not None and seen.answered):
                return seen
            if not called.transcript or not await asyncio.to_thread(Path(called.transcript).is_file):
                return None
            await self.host.clock.sleep(_PAUSE)
        return None

    async def _older(self, session: Session, called: Hook) -> bool:
        """Whether the transcript has a turn after the last one that we know of."""
        known = frozenset(one.prompt_id for one in session.asked)
        last = session.asked[-1].prompt_id
        for _ in range(_LOOKS):
            found = await asyncio.to_thread(transcript.later, called.transcript, called.session, last, known)
            if found is not None:
                return found
            await self.host.clock.sleep(_PAUSE)  # it is written with a delay
        return True

    def _capture(self, session: Session, called: Hook, prompt: str) -> CaptureEvent:
        digest, event_id = _digest(called), _event_id(called)
        before = session.context(called.prompt_id, self.settings.history)
        messages: list[Message] = []
        for asked, answered in before:
            messages += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
        return CaptureEvent(
            event_id=event_id,
            digest=digest,
            order=self.order(),
            user=self.user(session.user),
            channel=self.channel(session.user, session.id),
            response=called.answer,
            model=MODEL,
            messages=(*messages, {"role": "user", "content": prompt}),
            message_id=event_id,
            trace=f"claude:{session.id}:{digest}",
        )

    def _shown(self, session: Session, receipt: Receipt | None) -> dict[str, Any]:
        """What stands under the answer."""
        lines = self.news(session.user)
        if receipt is not None and receipt.outcome is not Outcome.ACCEPTED:
            if receipt.text and receipt.text not in self._told:
                self._told.add(receipt.text)
                lines.append(receipt.text)
        elif receipt is not None and self.settings.hint:
            progress = self._progress.get(session.user, "")
            lines.append(f"{HINT} · {progress}" if progress else HINT)
        return {"systemMessage": "\n".join(lines)} if lines else {}

    async def _typed(self, session: Session, called: Hook) -> str:
        """Do `/rl WORD ARGS`; a sentence for the person."""
        user, channel = self.user(session.user), self.channel(session.user, session.id)
        command = find(called.word or "help")
        name, args = command.name if command else called.word, called.args
        if command is not None and command.rates:
            return await self._rate(session, called, command.name, user, channel)
        receipt = await self.command(user, channel, name, args, event_id=called.prompt_id)
        return receipt.text or say("agent_done", self.host.language)

    async def _rate(
        self, session: Session, called: Hook, name: str, user: UserRef, channel: ChannelRef
    ) -> str:
        count, args = "", called.args
        if name == "stars":
            count, args = (*args.split(None, 1), "", "")[:2]
        found = meant(session, args, self.host.language)
        if found.answer is not None and not found.named and await self._older(session, called):
            await self._lost(session)
            found = meant(session, args, self.host.language)
        if found.answer is None:
            return found.why
        turn = found.answer.turn
        if name in ("stars", "undo"):
            if found.rest:
                return surplus(session, f"{name} {count}".strip(), self.host.language)
            words = f"{count} {turn}".strip()
            receipt = await self.command(user, channel, name, words, event_id=called.prompt_id)
            return receipt.text
        # Behind `good` and `bad` there may be words, too: what the person thinks of the answer.
        kind = _SAYING.get(name, RatingKind.RATE)
        if kind is not RatingKind.RATE and not found.rest:
            return say("agent_same_line", self.host.language, typed=f"/rl {name}")
        common: dict[str, Any] = {"user": user, "channel": channel, "turn": turn}
        events = [
            RatingEvent(
                **common,
                event_id=called.prompt_id,
                order=self.order(),
                kind=kind,
                source="command",
                value=_VALUES.get(name),
                text="" if kind is RatingKind.RATE else found.rest,
            )
        ]
        if kind is RatingKind.RATE and found.rest:
            events.append(
                RatingEvent(
                    **common,
                    event_id=f"{called.prompt_id}:reason",
                    order=self.order(),
                    kind=RatingKind.COMMENT,
                    source="command",
                    text=found.rest,
                )
            )
        receipt, *_ = await self.host.submit(events)
        if receipt.outcome is not Outcome.ACCEPTED:
            return receipt.text or say("agent_not_counted", self.host.language)
        if counted := sentences.counted(receipt.reasons, receipt.language):
            self._progress[user.id] = counted["words"]
        mark = {"good": "👍 ", "bad": "👎 "}.get(name, "")
        of = next((one for _, one in session.kept() if one.turn == receipt.turn), found.answer)
        return f"{mark}{receipt.text} {quote(of)}"


def _digest(called: Hook) -> str:
    return hashlib.sha256(called.answer.encode()).hexdigest()


def _event_id(called: Hook) -> str:
    """Of an answer: one turn of Claude Code's may end more than once, with other words."""
    return f"{called.prompt_id}:{_digest(called)[:16]}"


def _blocked(reason: str) -> dict[str, Any]:
    """Claude Code shows the reason, and asks no model."""
    return {
        "decision": "block",
        "reason": reason,
        "hookSpecificOutput": {"hookEventName": EXPANDED, "suppressOriginalPrompt": True},
    }
