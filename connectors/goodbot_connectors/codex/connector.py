# SPDX-License-Identifier: Apache-2.0
"""The connector: Codex' hooks in, turns and ratings out. Each rating is of one answer of its own session."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from aiohttp import web
from goodbot.api.events import CaptureEvent, ChannelRef, Outcome, RatingEvent, RatingKind
from goodbot.api.sentences import ended
from goodbot.api.texts import reworded, say
from goodbot.base.errors import GoodbotError, StoreError

from goodbot_connectors.codex import SPEC, replies, session, shim, sidecar, threads, words
from goodbot_connectors.codex.session import Session
from goodbot_connectors.codex.sessions import Sessions
from goodbot_connectors.codex.threads import ThreadFinder
from goodbot_connectors.codex.words import PromptCommand
from goodbot_connectors.kit.bridge.clients import ApiClient
from goodbot_connectors.kit.bridge.guard import HttpError, guarded, json_object
from goodbot_connectors.kit.bridge.local import LocalConnector
from goodbot_connectors.kit.fields import Json, string, strings

if TYPE_CHECKING:
    from aiohttp.web import AbstractRouteDef

    from goodbot_connectors.codex.config import CodexSettings

logger = logging.getLogger(__name__)

LARGEST = 8 << 20
"""Bytes of an event: a prompt may be a whole file."""
HINT = "goodbot: rate this answer with +1 or -1"
COMMANDS = ("status", "why")
"""Beside what is about an answer. What only an owner may do is not done from here: programs write prompts,
too, and an agent may start others."""
_KINDS = {"reason": RatingKind.COMMENT, "better": RatingKind.BETTER, "undo": RatingKind.RETRACT}
_QUOTED = 40
_MISSED_DAYS, _DAY = 30, 86_400.0
"""How long it is known of a session, at least, that it spoke while we were not there."""


class CodexConnector(LocalConnector):
    """Whoever has the token is the person at this machine, `me`."""

    spec = SPEC
    settings: CodexSettings

    def __init__(self, host: Any, settings: Any) -> None:
        super().__init__(host, settings)
        self._sessions = Sessions(host, settings.keep_days)
        self._threads = ThreadFinder(lambda: sidecar.codex_home(host.state_dir))
        self._lock = asyncio.Lock()
        """One event after the other: what a rating means depends on what came before it."""

    def routes(self) -> Sequence[AbstractRouteDef]:
        hook = guarded(self._hook, self.clients, largest=LARGEST)
        notify = guarded(self._notify, self.clients, largest=LARGEST)
        return (web.post("/v1/codex/hook", hook), web.post("/v1/codex/notify", notify))

    async def start(self) -> None:
        await self._sessions.start()
        # A session that is still kept is not struck out.
        days = max(_MISSED_DAYS, self.settings.keep_days)
        sidecar.forgive_old(self.host.state_dir, self.host.clock.now() - days * _DAY)
        await sidecar.refresh(self.host.state_dir, self.host.address)
        await super().start()

    async def forget(self, user: str) -> None:
        async with self._lock:
            await self._sessions.forget()
            self._threads.forget()
        await super().forget(user)

    # What the hooks tell

    async def _hook(self, request: web.Request, client: ApiClient) -> web.StreamResponse:
        event = await json_object(request, LARGEST)
        if "agent_id" in event:  # a subagent: its prompts and answers are the agent's own
            return replies.nothing()
        told, turn = _id(event, "session_id"), _id(event, "turn_id")
        name = threads.of(string(event, "transcript_path")) or told
        await self._missed(told, name)
        match string(event, "hook_event_name"):
            case "UserPromptSubmit":
                return await self._prompt(client, name, turn, string(event, "prompt"))
            case "Stop":
                return await self._stopped(client, name, turn, event)
            case _:
                return replies.nothing()

    async def _prompt(self, client: ApiClient, name: str, turn: str, prompt: str) -> web.Response:
        """A prompt for the model is kept until its answer comes; one for us goes no further."""
        said = words.said(prompt)
        if said is not None and not said.rates:
            return replies.block(await self._command(client, name, turn, said))
        async with self._lock:
            known = await self._sessions.get(name)
            if said is None:
                await self._put(name, known.begin(turn, prompt))
                return replies.nothing()
            try:
                return replies.block(await self._rate(client, name, turn, known, said))
            except StoreError as error:
                return replies.block(say("agent_not_rated", self.host.language, why=error))

    async def _stopped(self, client: ApiClient, name: str, turn: str, event: Json) -> web.Response:
        """An answer is there: it becomes a turn, if its prompt is known."""
        response = string(event, "last_assistant_message")
        async with self._lock:
            known = await self._sessions.get(name)
            if turn != known.turn or not (known.running or known.seen(turn)):
                await self._put(name, known.lost(turn))  # `notify` may know what was asked
                return replies.nothing()
            said = known if known.running else known.reopened()
            if not (said.prompts or known.seen(turn)) or not said.messages():
                return replies.nothing()
            kept = await self._capture(client, name, turn, said, response, string(event, "model"))
        if not kept:
            return replies.nothing()
        return replies.say([self._said(HINT) if self.settings.hint else "", *self.news(client.name)])

    # What `notify` tells, where the hooks are not trusted

    async def _notify(self, request: web.Request, client: ApiClient) -> web.StreamResponse:
        event = await json_object(request, LARGEST)
        if event.get("type") != "agent-turn-complete":
            return replies.nothing()
        name, turn = _id(event, "thread-id"), _id(event, "turn-id")
        await self._missed(name, name)
        written = list(strings(event, "input-messages"))
        response = string(event, "last-assistant-message")
        async with self._lock:
            known = await self._sessions.get(name)
            if known.seen(turn):  # the hooks were quicker
                if known.heard != len(written):
                    await self._put(name, replace(known, heard=len(written)))
                return replies.nothing()
            if not written or not await asyncio.to_thread(self._threads.is_a_persons, name):
                return replies.nothing()
            await self._heard(client, name, turn, known, written, response)
        return replies.nothing()

    async def _heard(
        self, client: ApiClient, name: str, turn: str, known: Session, written: list[str], response: str
    ) -> None:
        """A turn that no hook has told of; a rating in it counts, though the model has seen it."""
        fresh = (written[known.heard :] if known.heard else []) or written[-1:]
        said = words.said(fresh[-1])
        if said is not None:
            if said.rates:
                await self._rate(client, name, turn, known, said)
                known = await self._sessions.get(name)
            await self._put(name, replace(known, heard=len(written), turn=turn, answer=""))
            return
        if known.turn != turn or not known.prompts:
            known = replace(known, turn=turn, running=True, prompts=tuple(fresh))
        await self._capture(client, name, turn, replace(known, heard=len(written)), response, "")

    # What becomes of it

    async def _capture(
        self, client: ApiClient, name: str, turn: str, known: Session, response: str, model: str
    ) -> bool:
        """Store an answer; False if there is none to rate then."""
        answer = ""
        if response.strip():
            id_ = known.event(turn, response)
            [receipt] = await self.host.submit(
                [
                    CaptureEvent(
                        event_id=id_,
                        message_id=id_,
                        trace=f"codex:{turn}",
                        order=self.order(),
                        user=self.user(client.name),
                        channel=self._channel(client, name),
                        messages=known.messages(),
                        response=response,
                        model=model or "codex",
                    )
                ]
            )
            if receipt.outcome is not Outcome.ACCEPTED:
                logger.warning("an answer of Codex was not kept: %s", receipt.text)
            answer = receipt.turn
        await self._put(name, known.end(turn, response, answer))
        return bool(answer)

    async def _rate(
        self, client: ApiClient, name: str, turn: str, known: Session, said: PromptCommand
    ) -> str:
        """Do what a rating says of the last answer, and say what came of it; a sentence if it cannot be."""
        undo = said.name == words.UNDO
        wrong = said.wrong or ("" if undo else known.wrong(turn))
        if not wrong and undo and not known.rated:
            wrong = session.NO_UNDO
        if wrong:
            return self._said(wrong)
        target = known.rated if undo else known.answer
        kind = _KINDS.get(said.name, RatingKind.RATE if said.value is not None else RatingKind.RETRACT)
        source = "" if undo else "stars" if said.name == "stars" else "command"
        [receipt] = await self.host.submit(
            [
                RatingEvent(
                    event_id=f"{turn}:{said.name}",
                    order=self.order(),
                    user=self.user(client.name),
                    channel=self._channel(client, name),
                    kind=kind,
                    turn=target,
                    source=source,
                    value=said.value,
                    text=said.args,
                )
            ]
        )
        if receipt.outcome is not Outcome.ACCEPTED:
            return receipt.text or say("agent_uncounted", self.host.language)
        with contextlib.suppress(StoreError):  # it is counted; only its undo would not be known
            await self._put(name, replace(known, rated="" if undo else target))
        return f"{receipt.text} {_quote(known, target)}".strip()

    async def _command(self, client: ApiClient, name: str, turn: str, said: PromptCommand) -> str:
        if said.name == "help":
            return self._said(replies.HELP)
        if said.name not in COMMANDS:
            return say("agent_codex_none", self.host.language, name=said.name[:20])
        event = f"{turn}:{said.name}:{self.order().time_ms}"
        try:
            receipt = await self.command(
                self.user(client.name), self._channel(client, name), said.name, said.args, event_id=event
            )
        except GoodbotError as error:
            return ended(reworded(error, self.host.language), self.host.language)
        return receipt.text

    def _said(self, text: str) -> str:
        """In the language that people here read."""
        return reworded(text, self.host.language)

    async def _missed(self, told: str, name: str) -> None:
        """Know less of a session, once Codex had something to say in it and we were not there."""
        if not sidecar.missed(self.host.state_dir, told):
            return
        async with self._lock:
            if sidecar.missed(self.host.state_dir, told):  # another event may have been quicker
                await self._put(name, (await self._sessions.get(name)).lost())
                sidecar.forgive(self.host.state_dir, told)

    async def _put(self, name: str, known: Session) -> None:
        await self._sessions.put(name, replace(known, at=self.host.clock.now()))

    def _channel(self, client: ApiClient, name: str) -> ChannelRef:
        return self.channel(client.name, name)


def _id(event: Json, key: str) -> str:
    found = string(event, key)
    if not found or len(found) > shim.LONGEST_ID or not found.isascii() or not found.isprintable():
        raise HttpError(400, f"It has no {key}: is that Codex?")
    return found


def _quote(known: Session, target: str) -> str:
    """The beginning of the answer that is meant, so that its person sees that it is the one."""
    if target != known.answer or not known.before or known.before[-1][0] != "assistant":
        return ""
    text = " ".join(known.before[-1][1].split())
    return f"“{text if len(text) <= _QUOTED else text[: _QUOTED - 1] + '…'}”"
