# SPDX-License-Identifier: Apache-2.0
"""train (stop, retry), pause, resume, and to another base model."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import aiosqlite

from goodbot.access.authorization import person
from goodbot.api.events import ChannelKind
from goodbot.api.sentences import Condition, at, brief, ended, sentence, waits, words
from goodbot.api.sentences import version as name_of
from goodbot.api.texts import commas, explained, joined, say
from goodbot.base.errors import TrainingError, UsageError
from goodbot.commands import confirm
from goodbot.commands.base import DETAILS, Call, Result, wrong
from goodbot.commands.dry_run import FLAG, dry_run
from goodbot.conversation.notifications import LiveMessage
from goodbot.conversation.notifications.owners import news_key
from goodbot.learning.training.outcome import RunOutcome
from goodbot.learning.training.scheduler import CANCELLED
from goodbot.store import news, quarantined, settings
from goodbot.store.progress import RunProgress

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_FEW = "few"
_LOADS = ("processors", "gpu")
"""What makes a training slow, and no more."""


async def train(call: Call) -> Result:
    """Train now, or one of its actions; on few ratings a person is asked first."""
    if action := _ACTIONS.get(" ".join(call.args)):
        return await action(call)
    if unknown := set(call.args) - {FLAG, DETAILS, _FEW, "wait", "yes"}:
        said = min(unknown)[:40]
        raise wrong(call.event, "wrong_train", word=repr(said))
    if FLAG in call.args:  # it takes a while: other commands do not wait for it
        return Result(text="", later=partial(dry_run, call))
    s = call.services
    standing = await s.scheduler.standing()
    waiting = None if s.scheduler.training else await s.trainer.underway()
    ratings = waiting.items if waiting else standing.available
    few = "" if waiting else await _few(call, ratings)
    if _FEW in call.args:
        return Result(text=few, data={"asked": bool(few)})
    if ratings < 2 and s.scheduler.training:
        raise wrong(call.event, "wrong_train_now")
    if ratings < 2:
        raise wrong(call.event, "wrong_train_few", count=ratings)
    # Who waits for the verdict is a program, of which nobody is asked back.
    if few and "wait" not in call.args and not confirm.agreed(call, "train", sure="yes" in call.args):
        label = say("button_train", call.user.language)
        return confirm.ask(call, "train", few, command="train yes", label=label)
    return await _start(call, ratings, waiting.progress if waiting else None)


async def _start(call: Call, ratings: int, goes_on: RunProgress | None) -> Result:
    s, language = call.services, call.user.language
    if full := s.scheduler.disk.missing():
        raise UsageError(sentence(full.for_owners(language), language))
    pressure = await s.scheduler.pressure()
    off, paused = await _is_set(call, "off"), await _is_set(call, "paused")
    switched = waits("off") if off else waits("paused") if paused else None
    against = _causes(language, switched, pressure)
    busy = pressure if pressure and pressure.name in _LOADS else None
    despite = _causes(language, switched, None if busy else pressure)
    although = say("train_although", language, against=despite) if despite else ""
    slow = say("train_slow", language, against=busy.cause(language)) if busy else ""
    run = await s.scheduler.start(news.asked_by(person(call.user)))
    later = None
    if "wait" in call.args:
        later = partial(_verdict, call, run, ratings, against)
    elif not call.direct:
        learns = say("train_learns", language, ratings=ratings)
        if message := await _message(call, commas(language, learns, although)):
            later = partial(_watched, call, run, message)
    begins = say("train_begins", language, ratings=ratings)
    if goes_on:
        begins = say("train_goes_on", language, at=at(goes_on.step, goes_on.steps, language))
    told = ended(commas(language, begins, although), language)
    return Result(
        text=joined(language, told, slow, say("train_status", language)),
        data={"ratings": ratings, "pressure": pressure.for_owners(language) if pressure else None},
        later=later,
    )


def _causes(language: str, *conditions: Condition | None) -> str:
    """What speaks against it, as one clause; empty where nothing does."""
    causes = [one.cause(language) for one in conditions if one]
    if causes[1:]:
        return say("train_both", language, first=causes[0], second=causes[1])
    return "".join(causes)


async def _few(call: Call, ratings: int) -> str:
    """What somebody is asked who has few ratings; empty where there is nothing to ask."""
    needed = await call.services.scheduler.needed()
    if ratings < 2 or ratings >= needed or call.services.scheduler.training:
        return ""
    return say("train_few", call.user.language, ratings=ratings, more=needed - ratings)


async def _verdict(call: Call, run: asyncio.Task[RunOutcome], ratings: int, against: str) -> Result:
    await asyncio.wait([run])  # who waits no longer must not end it
    if call.event.channel.kind is ChannelKind.SHARED:
        return Result(text=await _ending(call, run, private=False))
    language = call.user.language
    if run.cancelled():
        raise TrainingError(say("train_stopped", language))
    verdict = run.result()
    live = verdict.state == "activated"
    version = await _live(call, verdict) if live else say(f"run_{verdict.state}", language)
    ahead = "\n" + say("train_ahead", language, against=against) if against else ""
    return Result(
        text=f"{explained(version, words(*brief(verdict.ending), language=language), language)}{ahead}",
        data={
            "run": verdict.run,
            "state": verdict.state,
            "reason": verdict.reason,
            "version": verdict.version,
            "ratings": ratings,
        },
    )


async def _live(call: Call, verdict: RunOutcome) -> str:
    """Which version answers, and from when on."""
    language, version = call.user.language, verdict.version
    if await call.services.registry.active() != version:
        return say("train_done", language, version=version)  # it waits; the verdict says for what
    if await _is_set(call, "off"):
        return say("train_resumes", language, version=version)
    return say("answers_now", language, name=f"v{version}")


async def _message(call: Call, heading: str) -> LiveMessage | None:
    s = call.services
    channel = call.event.channel
    connector = s.connectors.running.get(channel.connector)
    return await LiveMessage.post(connector, channel, s.clock, heading)


async def _watched(call: Call, run: asyncio.Task[RunOutcome], message: LiveMessage) -> Result:
    """Edit the message until the run has ended and the message says how.

    In a private chat that is what this owner hears of the run; if the last edit fails, the news do.
    """
    s, who = call.services, person(call.user)
    private = call.event.channel.kind is ChannelKind.PRIVATE
    if private:
        s.courier.watching.add(who)
    try:
        await message.follow(run, lambda: s.scheduler.progress)
        verdict = None if run.cancelled() or run.exception() else run.result()
        told = await s.news.text(verdict.run, call.user.language) if verdict and private else ""
        text = told or await _ending(call, run, private=private)
        said = await message.end(text)
        if said and told and verdict:
            key = news_key(verdict.run, who)
            await s.store.write(lambda db: settings.tell_once(db, key))
    finally:
        s.courier.watching.discard(who)
    return Result(text="" if said or told else text)


async def _ending(call: Call, run: asyncio.Task[RunOutcome], *, private: bool) -> str:
    """How a run ended; the reason of a failure is not for a shared channel."""
    language = call.user.language
    if run.cancelled():
        return sentence(say("train_stopped", language), language)
    nothing = say("train_nothing", language)
    if error := run.exception():
        return ended(say("train_not", language, why=error), language) if private else nothing
    verdict = run.result()
    reason = words(*brief(verdict.ending), language=language)
    if verdict.state == "activated":
        waits = await call.services.registry.active() != verdict.version
        live = ended(await _live(call, verdict), language)
        return joined(language, live, reason if waits and private else "")
    return joined(language, nothing, reason if private else "")


async def switch(call: Call) -> Result:
    """`to MODEL` replays the ratings on another base model, `bare MODEL` none; `stop` ends that."""
    language = call.user.language
    if call.user.connector != "terminal":
        raise UsageError(say("switch_here", language))
    how, _, reference = call.event.args.removeprefix("wait ").partition(" ")
    if how == "stop":
        stopped = await call.services.model_switch.stop()
        return Result(
            text=say("switch_ended" if stopped else "switch_none", language), data={"stopped": stopped}
        )
    if how not in ("to", "bare") or not reference:
        raise UsageError(say("switch_which", language))
    text = say("switch_until", language, model=call.services.model.name, other=reference)
    return Result(text=text, later=partial(_switched, call.services, reference, how == "bare", language))


async def _switched(services: Services, reference: str, bare: bool, language: str) -> Result:
    switched = await services.model_switch.to(reference, bare=bare)
    if switched.done:
        version = name_of(switched.version, language)
        now = say("switch_done", language, model=switched.model, version=version)
        text = joined(language, now, switched.reason)
    else:
        text = say("switch_nothing", language, why=switched.reason)
    # `started_at` tells the life that says this from the one that takes over.
    data = {**asdict(switched), "previous": services.model.name, "started_at": services.started_at}
    return Result(text=text, data=data)


async def pause(call: Call) -> Result:
    """Ends the child within a second; what it has done since its last checkpoint is done again."""
    if call.args == ("all",):
        return await off(call)
    if call.args:
        raise wrong(call.event, "wrong_pause")
    await _switch(call, paused="1")
    await call.services.scheduler.suspend()
    waiting = await call.services.trainer.underway()
    language = call.user.language
    where = at(waiting.progress.step, waiting.progress.steps, language) if waiting else ""
    return await _state(call, say("pause_waits" if waiting else "pause_now", language, at=where))


async def cancel(call: Call) -> Result:
    """Drop the training under way, or the one that waits; automatic ones wait for new ratings."""
    if not await call.services.scheduler.stop(CANCELLED):
        return Result(text=say("train_none", call.user.language), data={"cancelled": False})
    call.services.scheduler.wake()
    return Result(text=say("train_dropped", call.user.language), data={"cancelled": True})


async def release(call: Call) -> Result:
    """Let in again what trainings have set aside."""
    s = call.services
    count = await s.store.write(lambda db: quarantined.release(db, s.model.name))
    s.scheduler.wake()
    key = "train_released" if count else "train_released_none"
    return Result(text=say(key, call.user.language, count=count), data={"released": count})


async def off(call: Call) -> Result:
    """One step back to the base model, and one step (`resume`) forward again."""
    await _switch(call, off="1")
    await call.services.scheduler.suspend()
    await call.services.registry.refresh()
    return await _state(call, say("pause_all", call.user.language))


async def resume(call: Call) -> Result:
    await _switch(call, off="", paused="")
    await call.services.registry.refresh()
    call.services.scheduler.wake()
    active, language = await call.services.registry.active(), call.user.language
    return await _state(call, say("pause_over", language, name=name_of(active, language)))


async def _state(call: Call, text: str) -> Result:
    """What these three have come to: who answers, and whether anything trains."""
    off, paused = await _is_set(call, "off"), await _is_set(call, "paused")
    version = await call.services.registry.wanted()
    return Result(
        text=text, data={"off": off, "paused": paused, "training": not (off or paused), "version": version}
    )


async def _is_set(call: Call, switch: str) -> bool:
    return bool(await call.services.store.read(lambda db: settings.switch(db, switch)))


async def _switch(call: Call, **switches: str) -> None:
    async def operation(db: aiosqlite.Connection) -> None:
        for name, value in switches.items():
            await settings.set_switch(db, name, value)

    await call.services.store.write(operation)


_ACTIONS = {"stop": cancel, "retry": release}
