# SPDX-License-Identifier: Apache-2.0
"""B1, F2: through whatever door somebody rates, what they are told was done is what counts.

One person rates by reaction, button and typed command on a platform with its own clock, on a page and in a
terminal whose clients name a time, by a program, in OpenClaw, and by the command line. They change, take
back, leave out all ratings so far, and let them count again. Every clock lies, stands and goes back, and
goodbot starts anew in the middle. By one platform's clock the later time counts: then that is what is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import goodbot_connectors.api
import goodbot_connectors.openclaw
import goodbot_connectors.web
from goodbot.api.events import Event, OrderKey
from goodbot.base.clock import SystemClock
from goodbot.config import HttpConfig
from goodbot.daemon.connectors import local_owner
from goodbot.daemon.control import execute
from goodbot.store import ledger, people
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.web import normalize
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.connectors.api.daemon import Caller
from tests.connectors.openclaw.conftest import event as of_openclaw
from tests.core.builders import Bot, add_turn, open_bot, rate, retract
from tests.support import free_port

START = 1_800_000_000_000
WORDS = {1.0: "Good. ", -1.0: "Bad. ", None: "Taken back. "}
COMMANDS = {1.0: "good", -1.0: "bad", None: "undo"}
Step = tuple[str, float | None, int, int, int]
[(_, _GRANTS)] = local_owner().items()
ME = f"terminal:{_GRANTS.owners[0]}"


class Lying(SystemClock):
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.ahead = 0

    def now(self) -> float:
        return (START + self.ahead) / 1000


@dataclass
class Doors:
    """Each takes what is said of an answer, and returns what its rater is told."""

    bot: Bot
    program: Caller
    plugin: Caller
    """OpenClaw's."""
    clock: Lying
    ids: Iterator[int]
    origin: str = ""
    """Who the page's person is: where they came from."""
    platform: int = START
    """What the platform's clock shows."""
    claimed: int = START
    """What the clock of a page or of a terminal's client shows."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """By which OpenClaw knows an answer, by its turn."""

    def _id(self) -> str:
        return f"e{next(self.ids)}"

    async def _submitted(self, connector: str, event: Event) -> str:
        [receipt] = await self.bot.app.connectors.running[connector].host.submit([event])
        return receipt.text

    async def reaction(self, turn: str, value: float | None) -> str:
        return await self._by_platform(turn, value, "")

    async def button(self, turn: str, value: float | None) -> str:
        return await self._by_platform(turn, value, "button")

    async def _by_platform(self, turn: str, value: float | None, source: str) -> str:
        made = retract(self._id(), 0, turn)
        if value is not None:
            made = rate(self._id(), 0, value, turn, **({"source": source} if source else {}))
        return await self._submitted("loopback", replace(made, order=OrderKey(self.platform)))

    async def typed(self, turn: str, value: float | None) -> str:
        event = self.bot.chat.typed(COMMANDS[value], turn)
        event = replace(event, event_id=self._id(), order=OrderKey(self.platform))
        told = asyncio.get_running_loop().create_future()
        self.bot.chat._receipts[event.event_id] = told
        await self.bot.chat.host.submit([event])
        return (await told).text

    async def page(self, turn: str, value: float | None) -> str:
        said = {"undo": ""} if value is None else {"press": COMMANDS[value]}
        event = normalize.event(
            {"id": self._id(), "in": "here", "at": self.claimed, "turn": turn, **said},
            user=self.origin,
            alias="a",
            now_ms=int(self.clock.now() * 1000),
        )
        return await self._submitted("web", event)

    async def terminal(self, turn: str, value: float | None) -> str:
        running: Any = self.bot.app.connectors.running["terminal"]
        line = {"rate": int(value or 0), "turn": turn, "at": self.claimed, "id": self._id()}
        return await self._submitted("terminal", running._event(line))

    async def api(self, turn: str, value: float | None) -> str:
        if value is None:
            status, said = await self.program.ask("DELETE", f"/v1/feedback/{turn}")
        else:
            status, said = await self.program.post("/v1/feedback", {"turn": turn, "score": value})
        assert status == 200, said
        return said["text"]

    async def openclaw(self, turn: str, value: float | None) -> str:
        if value is None:
            return (await self._in_openclaw("command", words=f"undo {turn}"))["text"]
        return (await self._in_openclaw("rating", name=self.names[turn], value=int(value)))["text"]

    async def captured_in_openclaw(self) -> str:
        """The turn of an answer."""
        name = self._id()
        asked = [{"role": "user", "content": f"Hello, {name}?"}]
        said = {"messages": asked, "answer": f"Hi, {name}.", "model": "", "trace": ""}
        turn = (await self._in_openclaw("capture", name=name, **said))["turn"]
        self.names[turn] = name
        return turn

    async def _in_openclaw(self, type_: str, **more: Any) -> dict[str, Any]:
        sent = of_openclaw(type_, id=self._id(), **more)
        status, body = await self.plugin.post("/v1/openclaw/events", {"events": [sent]})
        assert status == 200, body
        [receipt] = body["receipts"]
        return receipt

    async def command_line(self, turn: str, value: float | None) -> str:
        return (await execute(self.bot.app, COMMANDS[value], [turn])).text

    async def leave_out(self, since: str) -> None:
        """All ratings so far; `never` lets them count again."""
        for yes in ([], ["yes"]) if since == OLD else ([],):
            await execute(self.bot.app, "rollback", ["since", since, *yes])


OLD, NEVER = "2001-01-01", "never"
OF_A_PLATFORM = ("reaction", "button", "typed", "page", "command_line")
OF_THE_TERMINAL = ("terminal", "page", "command_line")
OF_A_PROGRAM = ("api", "page", "command_line")
OF_OPENCLAW = ("openclaw", "page", "command_line")
ADA = "telegram:default:42"
"""Who rates in OpenClaw, by its own name for them."""
BY_THE_PLATFORM = ("reaction", "button", "typed")
JUMPS = st.integers(-300_000, 300_000)
MOVES = st.one_of(st.just(0), st.integers(1, 90_000), JUMPS)


def history(doors: tuple[str, ...]) -> st.SearchStrategy[list[Step]]:
    """What is said of one answer."""
    return st.lists(
        st.tuples(
            st.sampled_from((*doors, *doors, OLD, NEVER)),
            st.sampled_from([1.0, -1.0, None]),
            JUMPS,  # of our clock, as at a restart
            JUMPS,  # of the clock of a page, or of a terminal's client
            MOVES,  # of the platform's clock
        ),
        min_size=3,
        max_size=10,
    )


@dataclass
class Said:
    """What was said of each answer, and since when it counts."""

    all: dict[str, list[tuple[int, float | None, int]]] = field(
        default_factory=lambda: defaultdict(list[tuple[int, float | None, int]])
    )
    """Its number, what it says, and the platform's time or 0; the last is what counts."""
    since: int = 0
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def add(self, turn: str, value: float | None, at: int) -> bool:
        """By the platform's clock a late one comes before later ones. Whether it is what counts."""
        said, number = self.all[turn], next(self.ids)
        place = len(said)
        while at and place and said[place - 1][2] > at:
            place -= 1
        said.insert(place, (number, value, at))
        return self.counting(turn)[-1][0] == number

    def counting(self, turn: str) -> list[tuple[int, float | None, int]]:
        """Ratings are left out; what took earlier ones back stays."""
        return [one for one in self.all[turn] if one[0] >= self.since or one[1] is None]

    def labels(self, turn: str) -> list[float]:
        """Those that the answer has to have."""
        counting = self.counting(turn)
        return [] if not counting or counting[-1][1] is None else [counting[-1][1]]


@contextlib.asynccontextmanager
async def opened(
    home: Path, port: int, clock: Lying, ids: Iterator[int], names: dict[str, str]
) -> AsyncIterator[Doors]:
    """A goodbot whose person is one and the same everywhere."""
    token = clients.create(home / "bot", "api", "me", admin=True)
    plugin = clients.create(home / "bot", "openclaw", "plugin", admin=True)
    places = {"api": {"owners": ["me"]}, "openclaw": {"owners": [ADA]}, "web": {}}
    sections = {"http": HttpConfig(port=port), "connectors": places}
    async with (
        open_bot(
            home,
            clock=clock,
            terminal=True,
            sections=sections,
            extra=(goodbot_connectors.api, goodbot_connectors.openclaw, goodbot_connectors.web),
        ) as bot,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        accounts = ("loopback:owner", "api:me", f"openclaw:{ADA}")
        pages = [f"web:{one}" for one in (ME, *accounts)]
        for other in (*accounts, *pages):  # as a login links them
            await bot.store.write(lambda db, one=other: people.link(db, ME, one, 1.0))
        callers = Caller(session, token), Caller(session, plugin)
        yield Doors(bot, *callers, clock, ids, names=names)


# Without shrinking: each example opens two goodbots, and a failure shows all steps.
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(history(OF_A_PLATFORM), min_size=4, max_size=6),
    st.lists(history(OF_THE_TERMINAL), min_size=3, max_size=4),
    st.lists(history(OF_A_PROGRAM), min_size=4, max_size=6),
    st.lists(history(OF_OPENCLAW), min_size=2, max_size=3),
)
async def test_b1_f2_through_every_door_what_was_done_counts(
    on_a_platform: list[list[Step]],
    in_a_terminal: list[list[Step]],
    of_a_program: list[list[Step]],
    in_openclaw: list[list[Step]],
) -> None:
    clock, port, said, names = Lying(), free_port(), Said(), dict[str, str]()
    told: list[tuple[str, str, list[Step]]] = []
    """Where the page's person comes from, the answer, what is done."""
    with tempfile.TemporaryDirectory() as place:
        async with opened(Path(place), port, clock, said.ids, names) as doors:
            for number, steps in enumerate(on_a_platform):
                await add_turn(doors.bot.store, turn := f"p{number}")
                told.append(("loopback:owner", turn, steps))
            here: Any = doors.bot.app.connectors.running["terminal"]
            for number, steps in enumerate(in_a_terminal):
                chat = {"channel": here._channel, "talker": here._user}
                await add_turn(doors.bot.store, turn := f"t{number}", **chat)
                told.append((ME, turn, steps))
            for steps in of_a_program:
                told.append(("api:me", await doors.program.captured(), steps))
            for steps in in_openclaw:
                told.append((f"openclaw:{ADA}", await doors.captured_in_openclaw(), steps))
            for doors.origin, turn, steps in told:
                await followed(doors, said, turn, steps[::2])
        async with opened(Path(place), port, clock, said.ids, names) as doors:
            for doors.origin, turn, steps in told:
                await followed(doors, said, turn, steps[1::2])


async def followed(doors: Doors, said: Said, turn: str, steps: list[Step]) -> None:
    """Each step does what it tells, and nothing else."""

    async def labels() -> list[float]:
        return [*(await doors.bot.store.read(lambda db: ledger.labels(db, turn))).values()]

    for door, value, ours, theirs, moves in steps:
        doors.clock.ahead += ours
        doors.platform += moves
        doors.claimed = int(doors.clock.now() * 1000) + theirs
        before = await labels()
        if door in (OLD, NEVER):
            await doors.leave_out(door)
            said.since = next(said.ids) if door == OLD else 0
        else:
            at: Callable[[str, float | None], Awaitable[str]] = getattr(doors, door)
            told = await at(turn, value)
            done = said.add(turn, value, doors.platform if door in BY_THE_PLATFORM else 0)
            nothing = value is None and not before and door in ("typed", "openclaw", "command_line")
            expected = "You have nothing to take back there" if nothing else WORDS[value]
            same = before == [value] or (value is None and not before)
            assert told.startswith(expected) or not (done or nothing), (told, door, value, steps)
            assert done or same or not told.startswith(expected), (told, door, value, steps)
        assert await labels() == said.labels(turn), (door, value, said.all[turn], said.since, steps)
