# SPDX-License-Identifier: Apache-2.0
"""compare: the blind question that is open, a choice, or two versions side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.commands import Grant
from goodbot.api.connector import Capability
from goodbot.api.events import ChannelKind, OrderKey, RatingEvent, RatingKind
from goodbot.api.sentences import version
from goodbot.api.texts import joined, reworded, say
from goodbot.api.turns import CHOICE
from goodbot.commands.base import Call, Result, wrong
from goodbot.learning.evaluation import blind, side_by_side
from goodbot.store import choices, comparisons, news, settings
from goodbot.store.comparisons import Comparison, Pair

if TYPE_CHECKING:
    from goodbot.commands.services import Services


async def compare(call: Call) -> Result:
    if call.event.channel.kind is not ChannelKind.PRIVATE:
        raise wrong(call.event, "wrong_compare_private")
    words = call.event.args.split(maxsplit=2)
    call = await _about(call, words)
    if len(words) == 3 and (versions := named_versions(words[0], words[1])) is not None:
        return Result(text="", later=partial(_side_by_side, call, versions, words[2]))
    match [word.casefold() for word in words]:
        case []:
            return await _question(call)
        case [word] if word in blind.WORDS:
            return await _chosen(call, word)
        case ["undo"]:
            return await _taken_back(call)
        case [number, word] if word in blind.WORDS and _is_number(number):
            return await _chosen(call, word, int(number))
        case _:
            raise wrong(call.event, "wrong_compare")


async def _side_by_side(call: Call, versions: tuple[int, int], words: str) -> Result:
    """Told later: other commands do not wait for the model."""
    language = call.user.language
    answers = await call.services.side_by_side.ask(versions, words, language)
    data = {"answers": [{"version": one.version, "text": one.text} for one in answers]}
    return Result(text=side_by_side.shown(answers, language), data=data)


async def _about(call: Call, words: Sequence[str]) -> Call:
    """The call as one about the question of an owner's own versions, where that is meant or waits alone."""
    s = call.services
    key = await s.scopes.answering(call.event.channel, call.user)
    if not s.authorization.may(call.user, Grant.ADMINISTER) or not await s.own_questions.asks(key):
        return call
    own = replace(call, services=replace(s, ab_test=s.own_questions.of(key)))
    (_, pairs), (_, theirs) = await _pairs(call), await _pairs(own)
    if words and _is_number(words[0]):
        return own if any(pair.id == int(words[0]) for pair in theirs) else call
    return call if any(not pair.choice for pair in pairs) or all(pair.choice for pair in theirs) else own


async def _pairs(call: Call) -> tuple[Comparison | None, list[Pair]]:
    """The open question, and this person's pairs of it."""
    ab_test = call.services.ab_test
    found = await ab_test.current()
    return found, list(await ab_test.pairs(found, person(call.user))) if found else []


async def _question(call: Call, said: str = "") -> Result:
    """The first pair that has no choice yet, after what there is to say of the last one."""
    found, pairs = await _pairs(call)
    language = call.user.language
    waiting = next((pair for pair in pairs if not pair.choice), None)
    if found is None or waiting is None:
        why = _why_not(found, pairs, await later(call.services, found, language), language)
        return Result(text=joined(language, said, why), data={"question": None})
    seen = _seen(call, waiting)
    await call.services.store.write(lambda db: settings.tell_once(db, seen))
    opening = said or call.services.ab_test.who.invitation(found, language)
    first, second = blind.answers(waiting)
    data: dict[str, Any] = {
        "question": {
            "id": waiting.id,
            "prompt": waiting.question,
            "a": first,
            "b": second,
            "number": pairs.index(waiting) + 1,
            "of": len(pairs),
            "choices": list(blind.WORDS),
        }
    }
    asks = blind.question(pairs, waiting, language)
    return Result(text=f"{opening}\n\n{asks}", offer=blind.buttons(waiting, language), data=data)


def _seen(call: Call, pair: Pair) -> str:
    """The note that this account was shown a pair."""
    return f"asked {pair.id} {person(call.user)}"


async def _knows(call: Call, found: Comparison, pairs: list[Pair], pair: Pair) -> bool:
    """Whether this account was shown the pair: here, or in the invitation to the first one.

    What has no buttons fetches its news with its next request: that an invitation waits there says nothing.
    """
    s, keys = call.services, [_seen(call, pair)]
    connector = s.connectors.running.get(call.user.connector)
    if pair is pairs[0] and connector and Capability.BUTTONS in connector.spec.capabilities:
        keys.append(comparisons.invited(found, person(call.user)))
    return any([await s.store.read(lambda db, k=key: news.told(db, k)) for key in keys])


async def later(s: Services, found: Comparison | None, language: str = "") -> str:
    """Why nobody writes the answers of the open question now; empty: somebody does, or they are there."""
    if found is None or found.state != "preparing":
        return ""
    if await s.ab_test.rests():
        return say("later_resume", language)
    if not s.server.healthy():
        return say("later_model", language)
    if pressure := await s.scheduler.pressure():
        return pressure.for_owners(language)
    number, why = s.ab_test.unasked or (0, "")
    return reworded(why, language) if number == found.id else ""


def _why_not(found: Comparison | None, pairs: list[Pair], later: str, language: str) -> str:
    """Why this person is asked nothing now."""
    if found is None:
        return say("compare_none", language)
    if found.state == "preparing":
        key = "compare_unwritten" if later else "compare_writing"
        return say(key, language, name=version(found.new, language), why=later)
    if pairs:
        return say("compare_done", language, name=version(found.new, language))
    return say("compare_others", language, name=version(found.new, language, begins=True))


async def _chosen(call: Call, word: str, number: int | None = None) -> Result:
    ab_test, language = call.services.ab_test, call.user.language
    found, pairs = await _pairs(call)
    pair = next((p for p in pairs if (p.id == number if number is not None else not p.choice)), None)
    given = number is not None  # a press, or who names the pair, has it before their eyes
    if found and pair and not (given or await _knows(call, found, pairs, pair)):
        return await _question(call, say("compare_look", language, word=word))
    if pair is None or not await _chose(call, pair, word):
        return await _question(call, say("compare_closed", language))
    noted = say("noted", language)
    outcome = await ab_test.decide(told=person(call.user), language=language)
    if outcome is not None:
        return Result(text=joined(language, noted, outcome), data={"question": None, "outcome": outcome})
    _, pairs = await _pairs(call)
    rests = all(pair.choice for pair in pairs) and await ab_test.rests()
    return await _question(call, joined(language, noted, say("compare_rests", language) if rests else ""))


async def _chose(call: Call, pair: Pair, word: str) -> bool:
    """Keep a choice, and what it says of the two answers; False when it is too late."""
    s, choice = call.services, blind.choice(pair, word)
    teaches = s.authorization.may(call.user, Grant.RATE)  # who may not, still says what answers them

    async def operation(db: aiosqlite.Connection) -> bool:
        now = s.clock.now()
        if not await comparisons.choose(db, pair, choice, person(call.user), now):
            return False
        for turn, value in await choices.answers(db, pair, choice, now) if teaches else ():
            await s.ratings.chosen(db, _rating(call, turn, RatingKind.RATE, value))
        return True

    return await s.store.write(operation)


async def _taken_back(call: Call) -> Result:
    """The last choice of this person says nothing more."""
    s = call.services
    accounts = await s.ab_test.accounts(person(call.user))
    owner = s.authorization.may(call.user, Grant.ADMINISTER)
    scope = "" if owner else s.ab_test.pool.scope

    async def operation(db: aiosqlite.Connection) -> int | None:
        pair = await choices.take_back(db, accounts, scope)
        for turn in await choices.of(db, pair) if pair else ():
            # Without a source: it was perhaps chosen from another account of this person.
            await s.ratings.chosen(db, _rating(call, turn, RatingKind.RETRACT, source=""))
        return pair

    if await s.store.write(operation) is None:
        raise wrong(call.event, "wrong_compare_undo")
    s.scheduler.wake()  # a version may have learnt from it
    return await _question(call, say("compare_undone", call.user.language))


def _rating(
    call: Call, turn: str, kind: RatingKind, value: float | None = None, source: str = CHOICE
) -> RatingEvent:
    """By our clock: a choice counts in the order in which it came, whatever the platform's clock shows."""
    made = call.rating(turn, kind, event_id=f"{call.event.event_id} {turn}", source=source, value=value)
    return replace(made, order=OrderKey(int(call.services.clock.now() * 1000), ours=True))


def named_versions(first: str, second: str) -> tuple[int, int] | None:
    """The two that are named as `6`, `v6` or `base`; None where these are no versions."""
    found = [_version(first), _version(second)]
    return (found[0], found[1]) if found[0] is not None and found[1] is not None else None


def _version(word: str) -> int | None:
    word = word.casefold()
    if word == "base":
        return 0
    number = word.removeprefix("v")
    return int(number) if _is_number(number) else None


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) < 10
