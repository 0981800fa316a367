# SPDX-License-Identifier: Apache-2.0
"""Gateway sessions: what each bot's connection is told, and what it would be told again."""

from __future__ import annotations

import secrets
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from goodbot.base.clock import Clock

from goodbot_fakes.discord import contents, intents, payloads, permissions
from goodbot_fakes.discord.application import Application
from goodbot_fakes.discord.records import Channel
from goodbot_fakes.discord.world import World

Json = dict[str, Any]

RESUMABLE_SECONDS = 120.0
"""For how long after its connection a session can be resumed here. Discord names no figure."""
_BUFFER = 20_000


@dataclass(kw_only=True, eq=False)
class GatewaySession:
    """One identified bot. `socket` takes frames while it is connected."""

    id: str
    intents: int
    socket: Any = None
    """A `gateway.GatewaySocket`; None while nobody is connected."""
    sequence: int = 0
    told: deque[Json] = field(default_factory=lambda: deque[Json](maxlen=_BUFFER))
    """Dispatches that a RESUME replays."""
    lost_at: float = 0.0

    def dispatch(self, event: str, payload: Json) -> Json:
        """Tell now, and be ready to tell again."""
        self.sequence += 1
        frame: Json = {"op": 0, "s": self.sequence, "t": event, "d": payload}
        self.told.append(frame)
        if self.socket is not None:
            self.socket.put(frame)
        return frame


class GatewaySessions:
    """All sessions of one application."""

    def __init__(self, world: World, application: Application, clock: Clock) -> None:
        self.log: list[Json] = []
        """Every dispatch so far, to whichever session."""
        self._world, self._application, self._clock = world, application, clock
        self._known: dict[str, GatewaySession] = {}
        world.listener = self.happened

    @property
    def all(self) -> list[GatewaySession]:
        return list(self._known.values())

    def open(self, wanted: int) -> GatewaySession:
        """A new session, told READY and the servers that it may see."""
        session = GatewaySession(id=secrets.token_hex(16), intents=wanted)
        self._known[session.id] = session
        return session

    def greet(self, session: GatewaySession, resume_url: str) -> None:
        """READY, then a GUILD_CREATE for each server."""
        world = self._world
        self._tell(
            session,
            "READY",
            {
                "v": 10,
                "user": payloads.user(world.bot) | {"verified": True, "mfa_enabled": False},
                "guilds": [{"id": id_, "unavailable": True} for id_ in world.guilds],
                "session_id": session.id,
                "session_type": "normal",
                "private_channels": [],
                "resume_gateway_url": resume_url,
                "relationships": [],
                "presences": [],
                "application": {"id": self._application.id, "flags": self._application.flags},
            },
        )
        if session.intents & intents.GUILDS:
            for guild in world.guilds.values():
                self._tell(session, "GUILD_CREATE", world.whole_guild(guild))

    def resume(self, session_id: str, sequence: int) -> tuple[GatewaySession, list[Json]] | None:
        """The session and what it has missed; None where it is too late or never was."""
        session = self._known.get(session_id)
        if session is None or sequence > session.sequence:
            return None
        gone = session.socket is None and self._clock.monotonic() - session.lost_at
        missed = [frame for frame in session.told if frame["s"] > sequence]
        if (gone and gone > RESUMABLE_SECONDS) or len(missed) < session.sequence - sequence:
            self.forget(session)
            return None
        return session, missed

    def lost(self, session: GatewaySession) -> None:
        """Its connection is gone; events wait for a RESUME."""
        session.socket, session.lost_at = None, self._clock.monotonic()

    def forget(self, session: GatewaySession) -> None:
        """It cannot be resumed any more."""
        self._known.pop(session.id, None)

    def happened(self, event: str, payload: Json, channel: Channel | None) -> None:
        """Tell every session that wants to know and may."""
        if channel is not None and not self._sees(channel):
            return
        private = channel is not None and channel.private
        needed = intents.needed(event, private=private)
        for session in self.all:
            if needed & session.intents == needed:
                self._tell(session, event, self._readable(session, event, payload, private))

    def _sees(self, channel: Channel) -> bool:
        return bool(self._world.rights(channel) & permissions.VIEW_CHANNEL)

    def _readable(self, session: GatewaySession, event: str, payload: Json, private: bool) -> Json:
        if event not in ("MESSAGE_CREATE", "MESSAGE_UPDATE"):
            return payload
        return contents.readable(
            payload,
            bot=self._world.bot.id,
            private=private,
            allowed=bool(session.intents & intents.MESSAGE_CONTENT),
        )

    def _tell(self, session: GatewaySession, event: str, payload: Json) -> None:
        self.log.append(session.dispatch(event, payload))
