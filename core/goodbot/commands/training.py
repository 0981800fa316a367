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
from goodbot.api.sentences import sentence, waits
from goodbot.base.errors import TrainingError, UsageError
from goodbot.base.suggest import version_name
from goodbot.commands import confirm
from goodbot.commands.base import DETAILS, Call, Result
from goodbot.commands.dry_run import FLAG, dry_run
from goodbot.conversation.notifications import LiveMessage
from goodbot.conversation.notifications.owners import news_key
from goodbot.learning.training.publish import RunOutcome
from goodbot.learning.training.scheduler import CANCELLED
from goodbot.store import news, quarantined, settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_STOPPED = "the training was stopped; `status` says whether it goes on"
_NOTHING = "Nothing has changed."
_FEW = "few"


async def train(call: Call) -> Result:
    """Train now, or one of its actions; on few ratings a person is asked first."""
    if action := _ACTIONS.get(" ".join(call.args)):
        return await action(call)
    if unknown := set(call.args) - {FLAG, DETAILS, _FEW, "wait", "yes"}:
        said = min(unknown)[:40]
        raise UsageError(f"`train` knows no {said!r}: say `train`, `train stop` or `train retry`")
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
        raise UsageError("a training is under way: what is rated now is for the next one")
    if ratings < 2:
        given = "1 rating is" if ratings == 1 else f"{ratings} ratings are"
        raise UsageError(f"{given} not enough to train on: rate some answers first")
    # Who waits for the verdict is a program, of which nobody is asked back.
    if few and "wait" not in call.args and not confirm.agreed(call, "train", sure="yes" in call.args):
        return confirm.ask(call, "train", few, command="train yes", label="Train anyway")
    return await _start(call, ratings, f"goes on{waiting.progress.where}" if waiting else "")


async def _start(call: Call, ratings: int, goes_on: str) -> Result:
    s = call.services
    pressure = await s.scheduler.pressure()
    off, paused = await _is_set(call, "off"), await _is_set(call, "paused")
    switched = waits("off") if off else waits("paused") if paused else None
    against = " and ".join(one.cause() for one in (switched, pressure) if one)
    although = f", although {against}" if against else ""
    run = await s.scheduler.start(news.asked_by(person(call.user)))
    later = None
    if "wait" in call.args:
        later = partial(_verdict, call, run, ratings, against)
    elif not call.direct and (message := await _message(call, f"Learning from {ratings} ratings{although}")):
        later = partial(_watched, call, run, message)
    begins = goes_on or f"starts with {ratings} ratings"
    return Result(
        text=f"Training {begins}{although}. `status` shows how far it is.",
        data={"ratings": ratings, "pressure": pressure.for_owners() if pressure else None},
        later=later,
    )


async def _few(call: Call, ratings: int) -> str:
    """What somebody is asked who has few ratings; empty where there is nothing to ask."""
    needed = await call.services.scheduler.needed()
    if ratings < 2 or ratings >= needed or call.services.scheduler.training:
        return ""
    return (
        f"{ratings} ratings are few: with {needed - ratings} more I learn better what you like. "
        "This training would use them up. Train now anyway?"
    )


async def _verdict(call: Call, run: asyncio.Task[RunOutcome], ratings: int, against: str) -> Result:
    await asyncio.wait([run])  # who waits no longer must not end it
    if call.event.channel.kind is ChannelKind.SHARED:
        return Result(text=await _ending(call, run, private=False))
    if run.cancelled():
        raise TrainingError(_STOPPED)
    verdict = run.result()
    version = await _live(call, verdict) if verdict.state == "activated" else verdict.state
    ahead = f"\n(It went ahead although {against}.)" if against else ""
    return Result(
        text=f"{version}: {verdict.reason}{ahead}",
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
    off = await _is_set(call, "off")
    if await call.services.registry.active() != verdict.version:
        return f"v{verdict.version} is trained"  # it waits; the verdict says for what
    return f"v{verdict.version} answers {'after `resume`' if off else 'now'}"


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
    if run.cancelled():
        return sentence(_STOPPED)
    if error := run.exception():
        return f"No training: {error}." if private else _NOTHING
    verdict = run.result()
    if verdict.state == "activated":
        waits = await call.services.registry.active() != verdict.version
        return f"{await _live(call, verdict)}.{f' {verdict.reason}' if waits and private else ''}"
    return f"{_NOTHING} {verdict.reason}" if private else _NOTHING


async def switch(call: Call) -> Result:
    """`to MODEL` replays the ratings on another base model, `bare MODEL` none; `stop` ends that."""
    if call.user.connector != "terminal":
        raise UsageError("another base model is switched to in a terminal: `goodbot model switch`")
    how, _, reference = call.event.args.removeprefix("wait ").partition(" ")
    if how == "stop":
        stopped = await call.services.model_switch.stop()
        return Result(
            text="The switch was stopped; nothing has changed." if stopped else "No switch runs.",
            data={"stopped": stopped},
        )
    if how not in ("to", "bare") or not reference:
        raise UsageError("say which: `goodbot model switch NAME`")
    text = f"{call.services.model.name} answers until {reference} has learnt what it was taught."
    return Result(text=text, later=partial(_switched, call.services, reference, how == "bare"))


async def _switched(services: Services, reference: str, bare: bool) -> Result:
    switched = await services.model_switch.to(reference, bare=bare)
    version = version_name(switched.version)
    now = f"{switched.model} answers from now on ({version})." if switched.done else "Nothing has changed:"
    text = f"{now} {switched.reason}" if switched.reason else now
    # `started_at` tells the life that says this from the one that takes over.
    data = {**asdict(switched), "previous": services.model.name, "started_at": services.started_at}
    return Result(text=text, data=data)


async def pause(call: Call) -> Result:
    """Ends the child within a second; what it has done since its last checkpoint is done again."""
    if call.args == ("all",):
        return await off(call)
    if call.args:
        raise UsageError("say `pause`, or `pause all`: then the base model answers, too")
    await _switch(call, paused="1")
    await call.services.scheduler.suspend()
    waiting = await call.services.trainer.underway()
    where = waiting.progress.where if waiting else ""
    return await _state(
        call,
        f"Training is paused{where}; ratings are still taken. `resume` lets it go on"
        + (", `train stop` drops it." if waiting else "."),
    )


async def cancel(call: Call) -> Result:
    """Drop the training under way, or the one that waits; automatic ones wait for new ratings."""
    if not await call.services.scheduler.stop(CANCELLED):
        return Result(text="No training is under way.", data={"cancelled": False})
    call.services.scheduler.wake()
    return Result(
        text="The training was dropped and its ratings are free again. `train` starts another; by "
        "itself the next one waits for new ratings.",
        data={"cancelled": True},
    )


async def release(call: Call) -> Result:
    """Let in again what trainings have set aside."""
    s = call.services
    count = await s.store.write(lambda db: quarantined.release(db, s.model.name))
    s.scheduler.wake()
    if not count:
        return Result(text="No answers are left out of training.", data={"released": 0})
    are = "answer trains" if count == 1 else "answers train"
    return Result(text=f"{count} {are} again.", data={"released": count})


async def off(call: Call) -> Result:
    """One step back to the base model, and one step (`resume`) forward again."""
    await _switch(call, off="1")
    await call.services.scheduler.suspend()
    await call.services.registry.refresh()
    return await _state(
        call, "Paused: the base model answers and nothing is trained. `resume` brings it all back."
    )


async def resume(call: Call) -> Result:
    await _switch(call, off="", paused="")
    await call.services.registry.refresh()
    call.services.scheduler.wake()
    active = await call.services.registry.active()
    return await _state(
        call, f"On: {f'v{active}' if active else 'the base model'} answers, and training goes on."
    )


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
