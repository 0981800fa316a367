# SPDX-License-Identifier: Apache-2.0
"""B1, F2: through whatever door somebody rates, what they are told was done is what counts.

One person rates by reaction, button and typed command on a platform with its own clock, on a page and in a
terminal whose clients name a time, by a program, in OpenClaw, Claude Code and Codex, and by the command
line. They change, take back, say what was wrong or better, choose in blind questions, leave out all ratings
so far, and let them count again. Every clock lies, stands and goes back, and goodbot starts anew in the
middle. By one platform's clock the later time counts: then that is what is told. (A chip asks for another
answer: `tests/core/test_retry_clocks.py`.)
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
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import goodbot_connectors.api
import goodbot_connectors.claude_code
import goodbot_connectors.codex
import goodbot_connectors.openclaw
import goodbot_connectors.web
from goodbot.api.events import Event, OrderKey
from goodbot.base.clock import SystemClock
from goodbot.config import HttpConfig
from goodbot.daemon.connectors import local_owner
from goodbot.daemon.control import execute
from goodbot.learning.evaluation import blind
from goodbot.store import feedback, ledger, people
from goodbot.store.comparisons import Pair
from goodbot.testing.host import RecordingHost
from goodbot_connectors.claude_code.connector import PATH as CLAUDE_CODE
from goodbot_connectors.codex.session import NO_UNDO
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.web import normalize
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.connectors.api.daemon import Caller
from tests.connectors.claude_code.peer import payload as of_claude_code
from tests.connectors.codex.peer import Codex
from tests.connectors.openclaw.conftest import event as of_openclaw
from tests.core.builders import Bot, add_turn, open_bot, rate, retract, rows
from tests.core.learning.evaluation.asking import asked_untrained
from tests.support import free_port

CONNECTORS = (
    goodbot_connectors.api,
    goodbot_connectors.claude_code,
    goodbot_connectors.codex,
    goodbot_connectors.openclaw,
    goodbot_connectors.web,
)
START = 1_800_000_000_000
WORDS = {
    1.0: "Good. ",
    -1.0: "Bad. ",
    None: "Taken back. ",
    "reason": "Your reason is kept. ",
    "better": "Your better answer is kept. ",
}
COMMANDS = {1.0: "good", -1.0: "bad", None: "undo"}
Value = float | str | None
"""A rating, words, or what takes both back."""
Step = tuple[str, Value, int, int, int]
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
    hooks: Caller
    """Claude Code's."""
    agent: Codex
    clock: Lying
    ids: Iterator[int]
    origin: str = ""
    """Who the page's person is: where they came from."""
    platform: int = START
    """What the platform's clock shows."""
    claimed: int = START
    """What the clock of a page or of a terminal's client shows."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """By which OpenClaw knows an answer, and the session of Codex that it is the answer of, by its turn."""

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
        return await self.command("typed", COMMANDS[value], turn)

    async def page(self, turn: str, value: float | None) -> str:
        said = {"undo": ""} if value is None else {"press": COMMANDS[value]}
        return await self._on_the_page(turn, said)

    async def _on_the_page(self, turn: str, said: dict[str, str]) -> str:
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
            return await self.command("openclaw", "undo", turn)
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

    async def claude_code(self, turn: str, value: float | None) -> str:
        said = await self.command("claude_code", COMMANDS[value], turn)
        return said.removeprefix("👍 ").removeprefix("👎 ")

    async def captured_in_claude_code(self) -> str:
        """The turn of an answer."""
        name = self._id()
        await self._hooked("UserPromptSubmit", name, prompt=f"Hello, {name}?")
        await self._hooked("Stop", name, last_assistant_message=f"Claude says: {name}.")
        return await self._answered(f"Claude says: {name}.")

    async def _hooked(self, event: str, name: str, **more: str) -> dict[str, Any]:
        status, body = await self.hooks.post(CLAUDE_CODE, of_claude_code(event, name, **more))
        assert status == 200, body
        return body

    async def codex(self, turn: str, value: float | None) -> str:
        return await self._prompted(turn, {1.0: "+1", -1.0: "-1", None: " /rl undo"}[value])

    async def captured_in_codex(self) -> str:
        """The turn of an answer."""
        name = self._id()
        await self.agent.ask(f"Hello, {name}?", f"Codex says: {name}.", session=name)
        turn = await self._answered(f"Codex says: {name}.")
        self.names[turn] = name
        return turn

    async def _prompted(self, turn: str, prompt: str) -> str:
        _, said = await self.agent.prompt(prompt, session=self.names[turn], turn=self._id())
        return said

    async def _answered(self, response: str) -> str:
        [(turn,)] = await rows(self.bot.store, "SELECT id FROM turns WHERE response = ?", (response,))
        return turn

    async def command_line(self, turn: str, value: float | None) -> str:
        return await self.command("command_line", COMMANDS[value], turn)

    async def write(self, door: str, turn: str, words: str) -> str:
        """What was wrong, or what would have been better: the first of the words says which."""
        kind = words.split()[0]
        match door:
            case "page":
                return await self._on_the_page(turn, {"comment" if kind == "reason" else kind: words})
            case "api":
                said = {"turn": turn, "comment" if kind == "reason" else kind: words}
                status, body = await self.program.post("/v1/feedback", said)
                assert status == 200, body
                return body["text"]
            case "codex":
                return await self._prompted(turn, f" /rl {kind} {words}")
            case _:
                return await self.command(door, kind, f"{turn} {words}")

    async def command(self, door: str, name: str, args: str) -> str:
        """`/rl NAME ARGS`, typed there."""
        match door:
            case "typed":
                event = self.bot.chat.typed(name, args)
                event = replace(event, event_id=self._id(), order=OrderKey(self.platform))
                told = asyncio.get_running_loop().create_future()
                self.bot.chat._receipts[event.event_id] = told
                await self.bot.chat.host.submit([event])
                return (await told).text
            case "openclaw":
                return (await self._in_openclaw("command", words=f"{name} {args}"))["text"]
            case "claude_code":
                called = {"command_name": "rl", "command_args": f"{name} {args}"}
                return (await self._hooked("UserPromptExpansion", self._id(), **called))["reason"]
            case _:
                return (await execute(self.bot.app, name, args.split())).text

    async def leave_out(self, since: str) -> None:
        """All ratings so far; `never` lets them count again."""
        for yes in ([], ["yes"]) if since == OLD else ([],):
            await execute(self.bot.app, "rollback", ["since", since, *yes])


OLD, NEVER = "2001-01-01", "never"
OF_A_PLATFORM = ("reaction", "button", "typed", "page", "command_line")
OF_THE_TERMINAL = ("terminal", "page", "command_line")
OF_A_PROGRAM = ("api", "page", "command_line")
OF_OPENCLAW = ("openclaw", "page", "command_line")
OF_CLAUDE_CODE = ("claude_code", "page", "command_line")
OF_CODEX = ("codex", "page", "command_line")
COMPARING = ("typed", "claude_code", "command_line")
ADA = "telegram:default:42"
"""Who rates in OpenClaw, by its own name for them."""
BY_THE_PLATFORM = ("reaction", "button", "typed")
WRITES = {"reaction": "typed", "button": "typed", "terminal": "page"}
"""Where words are typed instead."""
SAY_NOTHING = ("typed", "openclaw", "claude_code", "command_line")
"""They tell that there was nothing to take back."""
SAYINGS = (1.0, -1.0, None, 1.0, -1.0, None, "reason", "better")
CHOICES = ("a", "b", "same", "skip", "undo")
COMPARED = 2
"""Questions that are answered; the others keep the comparison open."""
JUMPS = st.integers(-300_000, 300_000)
MOVES = st.one_of(st.just(0), st.integers(1, 90_000), JUMPS)


def history(doors: tuple[str, ...], sayings: tuple[Value, ...] = SAYINGS) -> st.SearchStrategy[list[Step]]:
    """What is said of one answer."""
    return st.lists(
        st.tuples(
            st.sampled_from((*doors, *doors, OLD, NEVER)),
            st.sampled_from(sayings),
            JUMPS,  # of our clock, as at a restart
            JUMPS,  # of the clock of a page, or of a terminal's client; of a choice, in which question
            MOVES,  # of the platform's clock
        ),
        min_size=3,
        max_size=10,
    )


@dataclass
class Said:
    """What was said of each answer, and since when it counts."""

    all: dict[str, list[tuple[int, Value, int]]] = field(
        default_factory=lambda: defaultdict(list[tuple[int, Value, int]])
    )
    """Its number, what it says, and the platform's time or 0; the last rating is what counts."""
    since: int = 0
    ids: Iterator[int] = field(default_factory=lambda: count(1))
    chosen: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """In blind questions: which pair, and for what; the last is taken back first."""

    def add(self, turn: str, value: Value, at: int) -> bool:
        """By the platform's clock a late one comes before later ones. Whether it is what counts."""
        said, number = self.all[turn], next(self.ids)
        place = len(said)
        while at and place and said[place - 1][2] > at:
            place -= 1
        said.insert(place, (number, value, at))
        return value in self.words(turn) if isinstance(value, str) else self.counting(turn)[-1][0] == number

    def counting(self, turn: str) -> list[tuple[int, float | None, int]]:
        """Ratings are left out; what took earlier ones back stays."""
        rated = [(number, value, at) for number, value, at in self.all[turn] if not isinstance(value, str)]
        return [one for one in rated if one[0] >= self.since or one[1] is None]

    def labels(self, turn: str) -> list[float]:
        """Those that the answer has to have."""
        counting = self.counting(turn)
        return [] if not counting or counting[-1][1] is None else [counting[-1][1]]

    def words(self, turn: str) -> list[str]:
        """What was typed at it, and neither taken back nor left out."""
        kept: list[str] = []
        for number, value, _ in self.all[turn]:
            if value is None:
                kept.clear()
            elif isinstance(value, str) and number >= self.since:
                kept.append(value)
        return kept


@contextlib.asynccontextmanager
async def opened(
    home: Path, port: int, clock: Lying, ids: Iterator[int], names: dict[str, str]
) -> AsyncIterator[Doors]:
    """A goodbot whose person is one and the same everywhere."""
    token = clients.create(home / "bot", "api", "me", admin=True)
    plugin = clients.create(home / "bot", "openclaw", "plugin", admin=True)
    hooks, agent = (clients.create(home / "bot", one, "me") for one in ("claude_code", "codex"))
    mine = {one: {"owners": ["me"]} for one in ("api", "claude_code", "codex")}
    places = {**mine, "openclaw": {"owners": [ADA]}, "web": {}}
    sections = {"http": HttpConfig(port=port), "connectors": places}
    async with (
        open_bot(home, clock=clock, terminal=True, sections=sections, extra=CONNECTORS) as bot,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session,
    ):
        accounts = ("loopback:owner", "api:me", f"openclaw:{ADA}", "claude_code:me", "codex:me")
        pages = [f"web:{one}" for one in (ME, *accounts)]
        for other in (*accounts, *pages):  # as a login links them
            await bot.store.write(lambda db, one=other: people.link(db, ME, one, 1.0))
        callers = (Caller(session, one) for one in (token, plugin, hooks))
        host = cast("RecordingHost", SimpleNamespace(address=""))  # the session knows the address
        yield Doors(bot, *callers, Codex(host, agent, session), clock, ids, names=names)


# Without shrinking: each example opens two goodbots, and a failure shows all steps.
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(history(OF_A_PLATFORM), min_size=4, max_size=5),
    st.lists(history(OF_THE_TERMINAL), min_size=3, max_size=4),
    st.lists(history(OF_A_PROGRAM), min_size=3, max_size=4),
    st.lists(history(OF_OPENCLAW), min_size=2, max_size=3),
    st.lists(history(OF_CLAUDE_CODE), min_size=1, max_size=2),
    st.lists(history(OF_CODEX), min_size=1, max_size=2),
    history(COMPARING, CHOICES),
)
async def test_b1_f2_through_every_door_what_was_done_counts(
    on_a_platform: list[list[Step]],
    in_a_terminal: list[list[Step]],
    of_a_program: list[list[Step]],
    in_openclaw: list[list[Step]],
    in_claude_code: list[list[Step]],
    in_codex: list[list[Step]],
    in_questions: list[Step],
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
            for steps in in_claude_code:
                told.append(("claude_code:me", await doors.captured_in_claude_code(), steps))
            for steps in in_codex:
                told.append(("codex:me", await doors.captured_in_codex(), steps))
            await asked_untrained(doors.bot)
            for doors.origin, turn, steps in told:
                await followed(doors, said, turn, steps[::2])
            await chosen(doors, said, in_questions[::2])
        async with opened(Path(place), port, clock, said.ids, names) as doors:
            for doors.origin, turn, steps in told:
                await followed(doors, said, turn, steps[1::2])
            await chosen(doors, said, in_questions[1::2])


async def labels(doors: Doors, turn: str) -> list[Any]:
    return [*(await doors.bot.store.read(lambda db: ledger.labels(db, turn))).values()]


async def words(doors: Doors, turn: str) -> list[str]:
    return [one.text for one in await doors.bot.store.read(lambda db: feedback.remarks(db, [turn]))]


async def moved(doors: Doors, said: Said, door: str, ours: int, theirs: int, moves: int) -> bool:
    """All clocks are set, then perhaps ratings are left out, or count again: then that is all."""
    doors.clock.ahead += ours
    doors.platform += moves
    doors.claimed = int(doors.clock.now() * 1000) + theirs
    if door not in (OLD, NEVER):
        return False
    await doors.leave_out(door)
    said.since = next(said.ids) if door == OLD else 0
    return True


async def followed(doors: Doors, said: Said, turn: str, steps: list[Step]) -> None:
    """Each step does what it tells, and nothing else."""
    for door, value, *clocks in steps:
        if not await moved(doors, said, door, *clocks):
            if isinstance(value, str):
                await written(doors, said, turn, WRITES.get(door, door), value)
            else:
                await rated(doors, said, turn, door, value)
        about = (door, value, said.all[turn], said.since, steps)
        assert await labels(doors, turn) == said.labels(turn), about
        assert await words(doors, turn) == said.words(turn), about


async def written(doors: Doors, said: Said, turn: str, door: str, kind: str) -> None:
    text = f"{kind} {next(said.ids)}"
    told = await doors.write(door, turn, text)
    kept = said.add(turn, text, doors.platform if door in BY_THE_PLATFORM else 0)
    assert told.startswith(WORDS[kind]) is kept, (told, door, kind, said.all[turn])


async def rated(doors: Doors, said: Said, turn: str, door: str, value: float | None) -> None:
    before, typed = await labels(doors, turn), said.words(turn)
    at: Callable[[str, float | None], Awaitable[str]] = getattr(doors, door)
    told = await at(turn, value)
    if told == NO_UNDO:  # it is told that nothing is done: Codex takes back what was said in its own session
        assert value is None
        return
    done = said.add(turn, value, doors.platform if door in BY_THE_PLATFORM else 0)
    nothing = value is None and not before and said.words(turn) == typed and door in SAY_NOTHING
    expected = "You have nothing to take back there" if nothing else WORDS[value]
    same = before == [value] or (value is None and not before)
    about = (told, door, value, said.all[turn])
    assert told.startswith(expected) or not (done or nothing), about
    assert done or same or not told.startswith(expected), about


async def chosen(doors: Doors, said: Said, steps: list[Step]) -> None:
    """In blind questions: what is told as noted is what both answers are called, until it is taken back."""
    ask = doors.bot.app.ab_test
    question = await ask.current()
    assert question is not None
    for door, word, ours, which, moves in steps:
        pairs = (await ask.pairs(question, ME))[:COMPARED]
        if not await moved(doors, said, door, ours, which, moves):
            await compared(doors, said, door, str(word), pairs[which % COMPARED])
        known = dict(said.chosen)
        pairs = (await ask.pairs(question, ME))[:COMPARED]
        assert [one.choice for one in pairs] == [known.get(one.id, "") for one in pairs], steps
        for turn in (f"pair-{one.id}-{answer}" for one in pairs for answer in ("old", "new")):
            assert await labels(doors, turn) == said.labels(turn), (door, word, said.all[turn], steps)


async def compared(doors: Doors, said: Said, door: str, word: str, pair: Pair) -> None:
    undoable = [one for one in said.chosen if one[1] != "skip"]
    if word == "undo" and not undoable:
        return
    args = word if word == "undo" else f"{pair.id} {word}"
    told = await doors.command(door, "compare", args)
    if word == "undo":
        assert told.startswith("Your last choice is taken back.")
        said.chosen.remove(undoable[-1])
        for answer in ("old", "new"):
            said.add(f"pair-{undoable[-1][0]}-{answer}", None, 0)
    elif pair.choice:
        assert told.startswith("That question is closed.")
    else:
        assert told.startswith("Noted.")
        said.chosen.append((pair.id, choice := blind.choice(pair, word)))
        for answer in ("old", "new") if choice in ("old", "new") else ():
            said.add(f"pair-{pair.id}-{answer}", 1.0 if answer == choice else -1.0, 0)
