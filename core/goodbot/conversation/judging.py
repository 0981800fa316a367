# SPDX-License-Identifier: Apache-2.0
"""Where nobody rated an answer, a judge may say what came after it tells of it. Off by default.

It looks at what is stored, again and again, so a crash only delays it. Only answers are judged that may be
learnt from, and only by what people wrote who may rate: else whoever may talk would teach.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from goodbot.api.commands import Grant
from goodbot.api.events import Message
from goodbot.api.judge import KEY, Ask, Asks, Judge, Judgement, JudgeSpec, server
from goodbot.api.registry import registered
from goodbot.api.server import BASE, GenerateRequest
from goodbot.api.turns import Turn
from goodbot.base.errors import ServerError, boundary
from goodbot.base.worded import Worded, said_by
from goodbot.config import Config
from goodbot.config.secrets import Secrets, SecretStore
from goodbot.conversation.next_state import NextState, next_state
from goodbot.conversation.parts import AnsweringParts
from goodbot.learning.evaluation.idle import SpareTime
from goodbot.store import judgements, turns

logger = logging.getLogger(__name__)

_SECONDS = 30.0
_LONGEST = 900.0
"""Seconds that a judge has for one answer, whatever it does."""
_AGAIN = 120.0
"""Seconds after which a judge that did not answer is asked again."""
_DAY = 86400.0
"""What is older is not looked at any more."""
_SET = 5.0
"""Seconds by which our clock and the time that has passed differ between two looks, once somebody sets it."""
_MOST = 500
"""Answers at a time."""
_TOKENS = 8
"""Of a vote of our own model, which is one word."""
_TEMPERATURE = 0.6
_DISCOUNT = 0.9
"""With `episodes = "discounted"`: what a step has of what the step after it has."""


class Judging:
    """Judges, closes and credits what is stored."""

    def __init__(self, parts: AnsweringParts) -> None:
        """Raises ConfigError for a judge that there is not, or settings that it does not take."""
        self._parts = parts
        self._config = parts.config.judge
        self._spec = choose(parts.config, parts.plugins.judges()) if self._config.by else None
        self._judge = make(self._spec, parts.config, parts.spare) if self._spec else None
        self._credited: dict[str, int] = {}
        self._since: dict[tuple[str, float], float] = {}
        """Answer → since when nothing has come after it, on the clock that is never set."""
        self._looked: tuple[float, float] | None = None
        """When all was looked at last: by our clock, and on the one that is never set."""
        self._new_since = -math.inf
        """What is new to us was made after this, whatever our clock says: it was set since the last look."""

    async def loop(self) -> None:
        """Until cancelled."""
        while self._judge is not None:
            with boundary(logger, "judging what came after answers"):
                await self.once()
            await self._parts.clock.sleep(_SECONDS)

    async def once(self) -> None:
        """Look at everything once. Raises StoreError."""
        p, now = self._parts, self._parts.clock.now()
        if self._judge is None or self._spec is None or await self._rests(self._spec):
            return
        due = await p.store.read(
            lambda db: judgements.due(db, p.pool, since=now - _DAY, now=now, again=now + _AGAIN, limit=_MOST)
        )
        self._mind_the_clock()
        day_ago = p.clock.monotonic() - _DAY
        self._since = {key: at for key, at in self._since.items() if at > day_ago}
        for turn in due:
            answered = False
            with boundary(logger, "judging an answer"):
                await self._look(turn, self._judge)
                answered = True
            if not answered or await self._rests(self._spec):
                return  # it is not asked about five hundred others now
        if self._config.episodes != "off":
            await self._credit(now - _DAY)

    async def _rests(self, spec: JudgeSpec) -> bool:
        """Whether our own model is needed elsewhere."""
        p = self._parts
        return spec.asks is Asks.OWN and (
            p.presence.away or p.scheduler.training or await p.scheduler.pressure() is not None
        )

    async def _look(self, id_: str, judge: Judge) -> None:
        p, clock = self._parts, self._parts.clock
        turn, found = await self._after(id_)
        if turn is None:
            return
        over = self._waited(turn) > self._limit
        # Who may rate as one of a platform's group is not known until the platform has told.
        if found is None or not p.authorization.may(turn.talker, Grant.RATE):
            if over:
                await p.store.write(lambda db: judgements.close(db, id_, clock.now()))
            return
        now = clock.now()
        if not await p.store.write(lambda db: judgements.begin(db, id_, now=now, again=now + _AGAIN)):
            return
        gave_way = p.spare.gave_way
        try:
            async with asyncio.timeout(_LONGEST):
                said = await judge.judge(found.case(turn))
        except (ServerError, TimeoutError) as error:
            if self._spec and self._spec.asks is Asks.OWN and p.spare.gave_way > gave_way:
                await p.store.write(lambda db: judgements.not_tried(db, id_))  # somebody needed the model
            if isinstance(error, ServerError):
                raise
            raise ServerError("the judge does not come to an end") from None
        await self._settle(id_, said, found.at)

    @property
    def _limit(self) -> float:
        return 60 * self._config.minutes

    def _mind_the_clock(self) -> None:
        """Notice that our clock was set since everything was looked at last."""
        clock, before = self._parts.clock, self._looked
        self._looked = now, passed = clock.now(), clock.monotonic()
        was_set = before is not None and abs((now - before[0]) - (passed - before[1])) > _SET
        self._new_since = before[1] if before is not None and was_set else -math.inf

    def _waited(self, turn: Turn) -> float:
        """Seconds for which something could have come after it, by the time that has passed here since it was
        first looked at: what our clock says then may be said after it was set.
        """
        clock = self._parts.clock
        now = clock.monotonic()
        began = max(self._new_since, now - max(0.0, clock.now() - turn.created_at))
        return now - self._since.setdefault((turn.id, turn.created_at), began)

    async def _settle(self, id_: str, said: Judgement, said_at: float) -> None:
        value = (said.value > 0) - (said.value < 0)  # a plugin's: no judgement is more than one bit
        await self._parts.store.write(
            lambda db: judgements.settle(
                db, id_, self._config.by, said_at=said_at, value=value, votes=said.votes
            )
        )

    async def _after(self, id_: str) -> tuple[Turn | None, NextState | None]:
        store = self._parts.store
        ids = [id_, *await store.read(lambda db: judgements.after(db, id_))]
        found = await store.read(lambda db: turns.some(db, ids))
        turn = found.get(id_)
        if turn is None:
            return None, None
        later = [found[one] for one in ids[1:] if one in found]
        # While its time has not passed here, what stands behind it came in time, whatever clocks say.
        seconds = self._limit if self._waited(turn) > self._limit else math.inf
        return turn, next_state(turn, later, seconds)

    async def _credit(self, since: float) -> None:
        """What an agent's last answer came to counts for its steps before."""
        store, pool = self._parts.store, self._parts.pool
        outcomes = await store.read(lambda db: judgements.outcomes(db, pool, since))
        known = {outcome.turn for outcome in outcomes}
        self._credited = {turn: sign for turn, sign in self._credited.items() if turn in known}
        for outcome in outcomes:
            if self._credited.get(outcome.turn) == outcome.sign:
                continue
            steps = await self._steps(outcome.turn)
            for back, step in enumerate(steps, 1):
                share = _DISCOUNT**back if self._config.episodes == "discounted" else 1.0
                await store.write(
                    lambda db, step=step, value=outcome.sign * share, of=outcome.turn: judgements.credit(
                        db, step, of, value, self._parts.clock.now()
                    )
                )
            self._credited[outcome.turn] = outcome.sign

    async def _steps(self, last: str) -> list[str]:
        """The answers whose tools' results led to this one, the nearest first; none amid an episode."""
        store = self._parts.store
        turn, follows = await self._after(last)
        if turn is None or (follows is not None and follows.by_tool):
            return []
        ids = await store.read(lambda db: judgements.before(db, last))
        found = await store.read(lambda db: turns.some(db, ids))
        steps: list[str] = []
        for id_ in ids:
            one = found.get(id_)
            led = one and next_state(one, [turn], float("inf"))
            if one is not None and led and led.by_tool:
                steps.append(id_)
                turn = one
        return steps


def choose(config: Config, specs: dict[str, JudgeSpec]) -> JudgeSpec:
    """What `[judge] by` names. Raises ConfigError."""
    return registered(specs, config.judge.by, "judge", config.where("judge"), "by")


def make(spec: JudgeSpec, config: Config, spare: SpareTime) -> Judge:
    """The judge of a config that `choose` has seen. Raises ConfigError."""
    module, _, cls = spec.factory.partition(":")
    settings = config.judge_settings(spec.settings)
    made: Judge = getattr(import_module(module), cls)(settings, asking(spec, config, spare))
    return made


def asking(spec: JudgeSpec, config: Config, spare: SpareTime) -> Ask:
    """Whom the judge asks. Raises ConfigError for an address that may not be asked."""
    if spec.asks is not Asks.SERVER:
        return _own(spare) if spec.asks is Asks.OWN else _nobody
    try:
        url = server(config.judge.url, config.judge.model, config.judge.hosts)
    except ValueError as error:
        raise config.where("judge").error(
            "url", Worded("{name} {what}", name="url", what=said_by(error))
        ) from error
    from goodbot.inference.asking import AskedServer  # aiohttp

    key = Secrets((KEY,), SecretStore(config.home).environment([KEY])).get(KEY)
    return AskedServer(url, config.judge.model, key).ask


def _own(spare: SpareTime) -> Ask:
    async def ask(messages: Sequence[Message], seed: int, seconds: float) -> str:
        request = GenerateRequest(
            messages=messages, max_tokens=_TOKENS, temperature=_TEMPERATURE, seed=seed, version=BASE
        )
        return (await spare.answer(request, seconds)).text

    return ask


async def _nobody(*_: Any) -> str:
    raise ServerError("this judge asks nobody")
