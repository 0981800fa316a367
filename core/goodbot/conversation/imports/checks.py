# SPDX-License-Identifier: Apache-2.0
"""A record of a file as an answer that can be stored. Pure.

What stands in it is what people wrote, whoever hands it over: it is held to the same sizes as what programs
report (`capture_rules`), keys are masked, and what a database cannot take is replaced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from goodbot.api.completions import with_form
from goodbot.api.events import (
    CaptureEvent,
    ChannelKind,
    ChannelRef,
    OrderKey,
    RatingEvent,
    RatingKind,
    UserRef,
)
from goodbot.api.judge import JUDGE
from goodbot.api.plain import PROGRAM
from goodbot.api.sentences import words
from goodbot.api.turns import Turn
from goodbot.base.redact import redact
from goodbot.base.sampling import Filters
from goodbot.base.text import clean
from goodbot.conversation import capture_rules, sanitize
from goodbot.conversation.imports import fields
from goodbot.conversation.imports.fields import Unfit
from goodbot.store import codec
from goodbot.store.importing import ACCOUNT, ImportedAnswer, ImportedChoice
from goodbot.store.retries import Retry

_EARLIEST = 1.0
_HOTTEST = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Here:
    """The goodbot that an answer is brought into."""

    me: str
    """Who said what a record names nobody for, `connector:id`."""
    model: str
    vocabulary: int
    """How many token ids that model has, 0: not known."""
    scope: str
    now: float


def checked(record: Mapping[str, Any], here: Here) -> ImportedAnswer:
    """The answer that a record is.

    Raises Unfit.
    """
    try:
        return _checked(record, here)
    except Unfit:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise Unfit(f"it is no answer as goodbot exports one ({type(error).__name__}: {error})") from None


def _checked(record: Mapping[str, Any], here: Here) -> ImportedAnswer:
    me = here.me
    at = min(max(fields.number(record.get("at", here.now)), _EARLIEST), here.now)
    id_ = fields.identifier(record["id"], "id")
    where = _where(record, me)
    talker = UserRef(
        connector=where.connector,
        account=ACCOUNT,
        id=fields.identifier(record.get("talker"), "talker", me.partition(":")[2]),
    )
    own = not record.get("answered_by") and record.get("model") == here.model and not record.get("version")
    event = CaptureEvent(
        event_id=id_,
        order=OrderKey(int(at * 1000)),
        user=talker,
        channel=where,
        messages=tuple(record["messages"]),
        response=fields.text(record["answer"]),
        model=_by(record),
        version=0 if own else None,
        temperature=fields.number(record.get("temperature", 1.0)),
        filters=Filters.parse(record.get("filters") or {}),
        thought=fields.text(record.get("thought", "")),
        thought_tokens=fields.whole(record.get("thought_tokens", 0)),
        prompt_tokens=fields.wholes(record.get("prompt_tokens", ())),
        tokens=fields.wholes(record.get("tokens", ())),
        logprobs=fields.numbers(record.get("logprobs", ())),
        lifts=fields.numbers(record.get("lifts", ())),
    )
    if (refused := sanitize.refused(event)) is not None:
        raise Unfit(words(*refused.reasons))
    event = sanitize.storable(event)
    turn = capture_rules.turn_of(event, base=here.model, scope=here.scope, now=at, version=event.version)
    turn = _as_it_was(turn, record, id_)
    asked = turn.question
    if asked["role"] in PROGRAM or not str(asked["content"]).strip():
        raise Unfit("its question is empty")
    if own or record.get("adapter"):  # it may be learnt from by its tokens
        turn = turn.read_by(here.vocabulary)
    return ImportedAnswer(
        turn=turn,
        trainable=bool(record.get("trainable", True)) and bool(turn.response.strip()),
        adapter=fields.identifier(record.get("adapter"), "adapter", ""),
        retry=_retry(record, turn, at),
        ratings=[*_ratings(record, turn, me), *_remarks(record, turn, me)],
        choices=[_choice(one, here.now) for one in fields.listed(record.get("choices", ()))],
    )


def _as_it_was(turn: Turn, record: Mapping[str, Any], id_: str) -> Turn:
    context = tuple(
        (fields.identifier(one, "context"), fields.identifier(who, "context"))
        for one, who in record.get("context") or ()
    )
    if 2 * len(context) >= len(turn.messages):
        raise Unfit("it names more earlier exchanges than it has messages")
    return replace(
        turn,
        id=id_,
        messages=with_form(turn.messages, _form(record)),
        context=context,
        origin="captured" if record.get("origin") == "captured" else "goodbot",
    )


def _form(record: Mapping[str, Any]) -> str:
    form = fields.text(record.get("form") or "")
    if len(form) > capture_rules.LONGEST:
        raise Unfit("its form is too long")
    return redact(clean(form))


def _by(record: Mapping[str, Any]) -> str:
    """What wrote it, as we call it: a number of a version says nothing here."""
    model, version = fields.text(record.get("model", "")), fields.whole(record.get("version", 0))
    return fields.text(record.get("answered_by") or "") or (f"{model} v{version}" if version else model)


def _where(record: Mapping[str, Any], me: str) -> ChannelRef:
    kind = ChannelKind(record.get("channel", ChannelKind.PRIVATE))
    if kind is ChannelKind.ENCRYPTED:
        raise Unfit("it was said in an encrypted chat")
    return ChannelRef(
        connector=fields.identifier(record.get("connector"), "connector", me.partition(":")[0]),
        account=ACCOUNT,
        id=fields.identifier(record.get("place"), "place", ACCOUNT),
        kind=kind,
        thread=fields.identifier(record.get("thread"), "thread", ""),
    )


def _retry(record: Mapping[str, Any], turn: Turn, at: float) -> Retry | None:
    if not (instead_of := fields.identifier(record.get("instead_of"), "instead_of", "")):
        return None
    who = f"{turn.talker.connector}:{turn.talker.id}"
    return Retry(
        turn=turn.id,
        instead_of=instead_of,
        depth=min(max(1, fields.whole(record.get("depth", 1))), max(1, (len(turn.messages) - 1) // 2)),
        hint=fields.identifier(record.get("hint"), "hint", ""),
        asked_by=who,
        asked=OrderKey(int(at * 1000)),
    )


def _ratings(record: Mapping[str, Any], turn: Turn, me: str) -> list[RatingEvent]:
    found: list[RatingEvent] = []
    for who, opinion in fields.pairs(record.get("ratings") or {}):
        both = cast("list[Any]", opinion) if isinstance(opinion, list) else [opinion]
        thumb, *stars = both
        for name, source, said in (
            ("thumb", "import", thumb),
            *(("stars", "stars:import", one) for one in stars),
        ):
            value = fields.number(said)
            if not -1 <= value <= 1 or len(stars) > 1:
                raise Unfit("a rating lies between -1 and 1")
            found.append(_event(turn, who or me, RatingKind.RATE, name, source=source, value=value))
    if len({one.event_id for one in found}) < len(found):
        raise Unfit("it is rated twice by one person")
    return found


def _remarks(record: Mapping[str, Any], turn: Turn, me: str) -> list[RatingEvent]:
    found: list[RatingEvent] = []
    for number, one in enumerate(fields.listed(record.get("remarks", ()))):
        kind = RatingKind(one["kind"])
        if kind not in (RatingKind.COMMENT, RatingKind.BETTER):
            raise Unfit("a remark is a comment or a better answer")
        text = redact(clean(fields.text(one["text"])))
        if (wrong := sanitize.unfit(text)) is not None:
            raise Unfit(words(wrong))
        who = fields.identifier(one.get("rater"), "rater", me)
        found.append(_event(turn, who, kind, f"{number:04}", text=text))
    return found


def _event(turn: Turn, who: str, kind: RatingKind, name: str, **said: Any) -> RatingEvent:
    connector, _, id_ = fields.identifier(who, "rater").partition(":")
    if not id_ or connector == JUDGE:
        raise Unfit(f"{who!r} is no person: a rater is CONNECTOR:ID")
    return RatingEvent(
        event_id=f"{turn.id}:{who}:{kind.value}:{name}",
        order=OrderKey(int(turn.created_at * 1000), name),
        user=UserRef(connector=connector, account=ACCOUNT, id=id_),
        channel=turn.channel,
        turn=turn.id,
        kind=kind,
        **said,
    )


def _choice(choice: Mapping[str, Any], now: float) -> ImportedChoice:
    old, new = (_answer(one) for one in choice["answers"])
    preferred = choice["preferred"]
    if preferred is not None and preferred not in (old["version"], new["version"]):
        raise Unfit("a choice prefers one of its two answers")
    if not 0 <= (temperature := fields.number(choice["temperature"])) <= _HOTTEST:
        raise Unfit(f"a temperature lies between 0 and {_HOTTEST}")
    return ImportedChoice(
        answers=(old, new),
        preferred=preferred,
        by=fields.identifier(choice["by"], "by"),
        at=min(max(fields.number(choice["at"]), _EARLIEST), now),
        prompt_tokens=fields.wholes(choice.get("prompt_tokens", ())),
        temperature=temperature,
        filters=codec.dump_filters(Filters.parse(choice.get("filters") or {})),
        seed=fields.whole(choice.get("seed", 0)),
    )


def _answer(one: Mapping[str, Any]) -> dict[str, Any]:
    text = fields.text(one["text"])
    if len(text) > capture_rules.LONGEST:
        raise Unfit("one of two compared answers is too long")
    masked = redact(clean(text))
    numbers: dict[str, Any] = {
        "tokens": fields.wholes(one.get("tokens", ())),
        "logprobs": fields.numbers(one.get("logprobs", ())),
        "lifts": fields.numbers(one.get("lifts", ())),
    }
    kept = numbers if masked == text else dict.fromkeys(numbers, ())
    return {"version": fields.whole(one["version"]), "text": masked, **kept}
