# SPDX-License-Identifier: Apache-2.0
"""B1: reactions and buttons, as each platform sends them, count by its own clock, whatever that clock does.

It stands, jumps and goes back, and so does ours, by which the same person rates on a page. What is later by
the platform's clock, or came later where that stands, counts; else whoever rated is not told that it does.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import Event, OrderKey, RatingEvent, RatingKind
from goodbot.api.labels import Label, LedgerEvent, fold
from goodbot.store import ledger
from goodbot_connectors.discord.normalize import Stamp
from goodbot_connectors.discord.snowflake import Timeline, at
from goodbot_connectors.telegram.update_times import UpdateTimes
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.connectors.discord.test_normalize import NORMALIZER as DISCORD
from tests.connectors.recorded import recordings
from tests.connectors.slack.test_normalize import NORMALIZER as SLACK
from tests.connectors.teams.test_normalize import NORMALIZER as TEAMS
from tests.connectors.telegram.test_normalize import NORMALIZER as TELEGRAM
from tests.core.builders import CHANNEL, OWNER, add_turn, open_bot, rate, retract

START = 1_795_299_999_000
WORDS = {1.0: "Good. ", -1.0: "Bad. "}
NAMES = {1.0: "good", -1.0: "bad"}
JUMPS = st.integers(-300_000, 300_000)
Step = tuple[str, float | None, int, int]
Said = tuple[RatingEvent, bool]
"""And whether it is by the platform's clock."""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reaction", "reaction", "button", "page"]),
        st.sampled_from([1.0, -1.0, None]),  # taken back
        st.one_of(
            st.just(0), st.integers(1, 90_000), st.integers(-300_000, 300_000)
        ),  # of the platform's clock
        st.integers(-300_000, 300_000),  # of ours
    ),
    min_size=2,
    max_size=9,
)


class Platform:
    """One person at one answer: what they do becomes payloads, which become events."""

    def __init__(self, name: str) -> None:
        self.cases = recordings(name)
        self.reaction: float | None = None
        """What stands."""
        self.now, self.ours, self.ids = START, START, count(1)

    def does(self, what: str, value: float | None) -> Iterator[Event]:
        """Nobody takes back a reaction that is not there; a button is pressed again."""
        before, n = self.reaction, next(self.ids)
        if what == "button":
            yield from self.pressed(value or -1.0, n)
        elif before != value:
            self.reaction = value
            yield from self.reacted(before, value, n)

    def case(self, name: str) -> Any:
        found = copy.deepcopy(self.cases[name])
        return found.get("update") or found["payload"]

    def pressed(self, value: float, n: int) -> Sequence[Event]:
        raise NotImplementedError

    def reacted(self, before: float | None, value: float | None, n: int) -> Iterator[Event]:
        """Most platforms let several reactions stand: here the first goes before another comes."""
        for taken, one in ((True, before), (False, value)):
            if one is not None:
                yield from self.changed(one, taken=taken, n=2 * n + taken)

    def changed(self, value: float, *, taken: bool, n: int) -> Sequence[Event]:
        raise NotImplementedError


class Telegram(Platform):
    def __init__(self) -> None:
        super().__init__("telegram")
        self.times = UpdateTimes(START)

    def taken(self, update: Any, n: int) -> Iterator[Event]:
        """As its `Intake` does."""
        update["update_id"] = n
        for event in TELEGRAM.events(update, self.times.since(n, 0.0)):
            time_ms = self.times.fitted(n, event.order.time_ms)
            self.times.note(n, time_ms, 0.0)
            yield replace(event, order=event.order._replace(time_ms=time_ms))

    def pressed(self, value: float, n: int) -> Sequence[Event]:
        update = self.case("presses: good")
        update["callback_query"]["data"] = f"{NAMES[value]}:5f1e0c7a9b3d2468"
        return [*self.taken(update, n)]

    def reacted(self, before: float | None, value: float | None, n: int) -> Iterator[Event]:
        update = self.case("reactions: good")
        emoji = {1.0: "👍", -1.0: "👎"}
        for name, one in (("old_reaction", before), ("new_reaction", value)):
            shown = [{"type": "emoji", "emoji": emoji[one]}] if one else []
            update["message_reaction"][name] = shown
        update["message_reaction"]["date"] = self.now // 1000
        return self.taken(update, n)


class Slack(Platform):
    def __init__(self) -> None:
        super().__init__("slack")

    def ts(self, n: int) -> str:
        """Its last digits tell equal times apart."""
        return f"{self.now // 1000}.{self.now % 1000:03d}{n:03d}"

    def pressed(self, value: float, n: int) -> Sequence[Event]:
        payload = self.case(f"presses: {NAMES[value]}")
        payload["actions"][0]["action_ts"] = self.ts(n)
        return SLACK.events(payload, self.ours)

    def changed(self, value: float, *, taken: bool, n: int) -> Sequence[Event]:
        payload = self.case(f"reactions: {NAMES[value]}")
        payload["event_id"] = f"Ev{n}"
        payload["event"] |= {
            "type": f"reaction_{'removed' if taken else 'added'}",
            "event_ts": self.ts(n // 2),
        }
        return SLACK.events(payload, self.ours)


class Discord(Platform):
    def __init__(self) -> None:
        super().__init__("discord")
        self.timeline = Timeline()

    def pressed(self, value: float, n: int) -> Sequence[Event]:
        payload = self.case("interactions: press, bad")
        payload["id"] = str(at(self.now) + n)
        payload["data"]["custom_id"] = f"gb|5f1e0c7a9b3d2468||{NAMES[value]}"
        self.timeline.seen(payload["id"], self.ours)
        return DISCORD.events("INTERACTION_CREATE", payload, Stamp("", OrderKey(0)))

    def changed(self, value: float, *, taken: bool, n: int) -> Sequence[Event]:
        payload = self.case("reactions: good")
        payload["emoji"]["name"] = {1.0: "👍", -1.0: "👎"}[value]
        name = f"MESSAGE_REACTION_{'REMOVE' if taken else 'ADD'}"
        return DISCORD.events(name, payload, Stamp(f"s:{n}", self.timeline.now(n, self.ours)))


class Teams(Platform):
    def __init__(self) -> None:
        super().__init__("teams")

    def sent(self, activity: Any, n: int) -> Sequence[Event]:
        time = datetime.fromtimestamp(self.now / 1000, UTC).isoformat(timespec="milliseconds")
        return TEAMS.events(activity | {"id": f"f:{n:06x}", "timestamp": time}, self.ours)

    def pressed(self, value: float, n: int) -> Sequence[Event]:
        activity = self.case("presses: feedback, good")
        activity["value"]["actionValue"]["reaction"] = "like" if value > 0 else "dislike"
        return self.sent(activity, n)

    def reacted(self, before: float | None, value: float | None, n: int) -> Iterator[Event]:
        activity = self.case("reactions: changed")
        kinds = {1.0: "like", -1.0: "sad"}
        for name, one in (("reactionsRemoved", before), ("reactionsAdded", value)):
            activity[name] = [{"type": kinds[one]}] if one else []
        yield from self.sent(activity, n)


class Oracle:
    """What was said of an answer, in its order."""

    def __init__(self) -> None:
        self.said: list[Said] = []

    def add(self, event: RatingEvent) -> Label | None:
        """The label then. By the platform's clock a late one comes before later ones."""
        theirs, place = not event.order.ours, len(self.said)
        while theirs and place and self.said[place - 1][1] and self.said[place - 1][0].order > event.order:
            place -= 1
        self.said.insert(place, (event, theirs))
        return fold(
            LedgerEvent(
                event_id=one.event_id, order=OrderKey(n), kind=one.kind, source=one.source, value=one.value
            )
            for n, (one, _) in enumerate(self.said)
        )


def on_a_page(n: int, value: float | None, at_ms: int) -> RatingEvent:
    made = retract(f"page{n}", 0) if value is None else rate(f"page{n}", 0, value, source="page")
    return replace(made, order=OrderKey(at_ms, ours=True))


@pytest.mark.parametrize("platform", [Telegram, Slack, Discord, Teams])
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(histories=st.lists(STEPS, min_size=8, max_size=12))
async def test_b1_what_a_platform_sends_counts_by_its_own_clock(
    platform: Callable[[], Platform], histories: list[list[Step]]
) -> None:
    with tempfile.TemporaryDirectory() as home:
        async with open_bot(Path(home)) as bot:
            for n, steps in enumerate(histories):
                await add_turn(bot.store, turn := f"t{n}")
                there, oracle, before = platform(), Oracle(), None
                for number, (what, value, moves, jumps) in enumerate(steps):
                    there.now, there.ours = there.now + moves, there.ours + jumps
                    page = [on_a_page(number, value, there.ours)]
                    for event in page if what == "page" else there.does(what, value):
                        assert isinstance(event, RatingEvent)
                        made = replace(event, event_id=f"{n} {event.event_id}", user=OWNER, channel=CHANNEL)
                        made = replace(made, message_id=f"m-{turn}", turn="")
                        receipt = await bot.store.write(
                            lambda db, e=made, t=turn: bot.app.ratings.rate(db, e, t)
                        )
                        label = oracle.add(made)
                        stored = await bot.store.read(lambda db, t=turn: ledger.labels(db, t))
                        assert [*stored.values()] == ([label.value] if label else []), (steps, oracle.said)
                        if made.kind is RatingKind.RATE:
                            done = label is not None and label.event_id == made.event_id
                            told = receipt.text.startswith(WORDS[made.value or 0.0])
                            assert told or not done, (receipt.text, steps)
                            assert done or not told or before == made.value, (receipt.text, steps)
                        before = label.value if label else None
