# SPDX-License-Identifier: Apache-2.0
"""Who is told what, in which order, and what happens where nobody takes it.

The database is the queue: of each receiver a mark is kept, and it moves once the receiver has said that it
has what comes next. So nothing is lost, and what is forgotten meanwhile is not sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from goodbot.api.feature import Feature, FeatureHost, Happened, HappenedWanted
from goodbot.api.hookspecs import hookimpl
from goodbot.base.clock import growing, woken
from goodbot.base.errors import ConfigError, GoodbotError, StoreError, UsageError, unexpected
from goodbot.base.suggest import instead
from goodbot.features.webhooks.plugin import KEY, Receiver
from goodbot.features.webhooks.sending import post, signature

logger = logging.getLogger(__name__)

_SHORTEST = 16
"""Characters of the secret."""
_LOOK_SECONDS = 60.0
_LONGEST = 3600.0
"""Between two tries."""
_TOLD_AFTER = 3 * 86400.0
_STATE = "state"


@dataclass(kw_only=True, slots=True)
class _State:
    """What is kept of a receiver."""

    mark: str = ""
    delivered_at: float | None = None
    failing_since: float | None = None
    error: str = ""


class Webhooks(Feature):
    """All receivers; each has a task of its own, so none waits for another."""

    def __init__(self, host: FeatureHost, settings: Any) -> None:
        super().__init__(host, settings)
        secret = host.secrets.get(KEY).reveal()
        if len(secret) < _SHORTEST:
            raise ConfigError(f"{KEY} is too short: take {_SHORTEST} characters or more, at random")
        self._deliveries = {
            name: Deliveries(name, receiver, secret, host, self._keep)
            for name, receiver in settings.to.items()
        }

    async def run(self) -> None:
        """Send, until cancelled."""
        kept: Mapping[str, Any] = json.loads(await self.host.get(_STATE) or "{}")
        known = {field.name for field in fields(_State)}
        async with asyncio.TaskGroup() as tasks:
            for name, one in self._deliveries.items():
                one.state = _State(**{key: of for key, of in kept.get(name, {}).items() if key in known})
                tasks.create_task(one.run(), name=f"webhook {name}")

    @hookimpl
    def on_rating(self) -> None:
        self._wake()

    @hookimpl
    def on_training_finished(self) -> None:
        self._wake()

    @hookimpl
    def on_adapter_activated(self) -> None:
        self._wake()

    async def asked(self, words: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
        match list(words):
            case ["list"]:
                told = [await one.told() for one in self._deliveries.values()]
                lines = [line for line, _ in told] or ["There is no receiver: docs/webhooks.md shows one."]
                return "\n".join(lines), {"receivers": [data for _, data in told]}
            case ["key", name]:
                key = self._named(name).key
                return key, {"key": key}
            case ["test", name]:
                await self._named(name).ping()
                return f"{name} has taken a ping.", {"delivered": True}
            case ["skip", name]:
                left = await self._named(name).skip()
                told = f"{name} is not told of this {left.kind} of {_when(left.at)}: {left.id}"
                return told, {"skipped": {"id": left.id, "type": left.kind, "time": left.at}}
            case _:
                raise UsageError("type `goodbot webhooks`, or test, key or skip and the name of a receiver")

    def _named(self, name: str) -> Deliveries:
        if name not in self._deliveries:
            raise UsageError(f"no receiver is named {name!r}; {instead(name, self._deliveries)}")
        return self._deliveries[name]

    def _wake(self) -> None:
        for one in self._deliveries.values():
            one.news.set()

    async def _keep(self) -> None:
        states = {name: asdict(one.state) for name, one in self._deliveries.items()}
        await self.host.set(_STATE, json.dumps(states))


class Deliveries:
    """What one receiver is told."""

    def __init__(
        self,
        name: str,
        receiver: Receiver,
        secret: str,
        host: FeatureHost,
        keep: Callable[[], Awaitable[None]],
    ) -> None:
        self._name, self._receiver, self._host, self._keep = name, receiver, host, keep
        self.key = derived(secret, name)
        self._people = derived(secret, f"{name} person")  # no receiver has it: none can try ids with it
        self._wanted = HappenedWanted(
            kinds=receiver.events, private_chats=receiver.private_chats, words=receiver.words
        )
        self.state, self._saved = _State(), _State()
        self.news, self._again = asyncio.Event(), asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Send one after the other; what is not taken is tried again, and what comes behind it waits."""
        tries, clock = 0, self._host.clock
        while True:
            self.news.clear()
            self._again.clear()
            try:
                async with self._one_at_a_time:
                    more = await self._step()
            except Exception as error:
                with contextlib.suppress(Exception):  # what cannot be kept now is kept later
                    await self._failed(error)
                await woken(self._again, clock, growing(tries, most=_LONGEST))
                tries += 1
                continue
            tries = 0
            if not more:
                await woken(self.news, clock, _LOOK_SECONDS)

    async def ping(self) -> None:
        """Send what tells nothing; where it is taken, what waits is tried at once. Raises GoodbotError."""
        now = self._host.clock.now()
        await self._send(Happened(id=uuid.uuid4().hex, kind="ping", at=now, data={}))
        self._again.set()

    async def skip(self) -> Happened:
        """Go on behind what the receiver did not take: what that was. Raises GoodbotError."""
        async with self._one_at_a_time:
            left, mark = await self._host.happened(self._wanted, self.state.mark)
            if left is None or not self.state.failing_since:
                raise UsageError(f"{self._name} has refused nothing, so nothing is skipped")
            await self._passed(mark)
        self._again.set()
        return left

    async def told(self) -> tuple[str, Mapping[str, Any]]:
        """How it goes, in words and for programs."""
        state, host = self.state, urlsplit(self._receiver.url).netloc
        waiting = await self._host.waiting(self._wanted, state.mark)
        last = f"last taken {_when(state.delivered_at)}" if state.delivered_at else "nothing taken yet"
        line = f"{self._name}: {host}, {', '.join(self._receiver.events)}; {last}; {waiting} waiting"
        if state.failing_since:
            line += f"; fails since {_when(state.failing_since)}: {state.error}"
        data = {**asdict(state), "name": self._name, "host": host, "waiting": waiting}
        return line, {name: one for name, one in data.items() if name != "mark"}

    async def _step(self) -> bool:
        """Send the next thing, if there is one: whether there was."""
        await self._save()
        happened, mark = await self._host.happened(self._wanted, self.state.mark)
        if happened:
            await self._send(happened)
            self.state.delivered_at = self._host.clock.now()
        await self._passed(mark)
        return happened is not None

    async def _passed(self, mark: str) -> None:
        self.state.mark, self.state.failing_since, self.state.error = mark, None, ""
        self._host.trouble(self._name, "")
        await self._save()

    async def _send(self, happened: Happened) -> None:
        data = dict(happened.data)
        if who := data.get("person"):
            data["person"] = f"person-{derived(self._people, who)[:16]}"
        time = datetime.fromtimestamp(happened.at, UTC).isoformat(timespec="milliseconds")
        told = {"id": happened.id, "type": happened.kind, "time": time, "data": data}
        body = json.dumps(told, ensure_ascii=False).encode(errors="replace")
        signed = signature(self.key, int(self._host.clock.now()), body)
        await post(self._receiver, happened.id, body, signed)

    async def _failed(self, error: Exception) -> None:
        if isinstance(error, StoreError):  # not the receiver's fault
            return
        why = str(error) if isinstance(error, GoodbotError) else unexpected(error)
        if not isinstance(error, GoodbotError):
            logger.error("the webhook %s has failed: %s", self._name, why)
        now, state = self._host.clock.now(), self.state
        state.failing_since, state.error = min(state.failing_since or now, now), why
        if now - state.failing_since >= _TOLD_AFTER:
            self._host.trouble(self._name, f"nothing has been taken for 3 days: {why}")
        await self._save()

    async def _save(self) -> None:
        if self.state != self._saved:
            await self._keep()
            self._saved = replace(self.state)


def derived(secret: str, name: str) -> str:
    """What is made of a secret for one purpose: nobody gets from it to the secret, or to another's."""
    return hmac.new(secret.encode(), name.encode(), hashlib.sha256).hexdigest()


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
