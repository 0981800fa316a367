"""train, pause, resume, off, and to another base model."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from functools import partial

import aiosqlite

from goodbot.commands.base import Call, Command, Result, Services
from goodbot.errors import TrainingError, UsageError
from goodbot.people.authorization import Grant, person
from goodbot.store import access
from goodbot.trainer import Verdict


async def train(call: Call) -> Result:
    s = call.services
    standing = await s.scheduler.standing()
    if standing.available < 2:
        raise UsageError(
            f"{standing.available} ratings are not enough to train on: rate some answers first"
        )
    run = await s.scheduler.start(f"asked for by {person(call.user)}")
    return Result(
        text=f"Training starts on {standing.available} ratings; `status` shows how far it is.",
        data={"ratings": standing.available},
        later=partial(_verdict, run, standing.available) if "wait" in call.args else None,
    )


async def _verdict(run: asyncio.Task[Verdict], ratings: int) -> Result:
    await asyncio.wait([run])  # who waits no longer must not end it
    if run.cancelled():
        raise TrainingError("the training was stopped; its ratings are free again")
    verdict = run.result()
    version = f"v{verdict.version} answers now" if verdict.state == "activated" else verdict.state
    return Result(
        text=f"{version}: {verdict.reason}",
        data={
            "run": verdict.run, "state": verdict.state, "reason": verdict.reason,
            "version": verdict.version, "ratings": ratings,
        },
    )  # fmt: skip


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
    text = f"{call.services.model} answers until {reference} has learnt what it was taught."
    return Result(text=text, later=partial(_switched, call.services, reference, how == "bare"))


async def _switched(services: Services, reference: str, bare: bool) -> Result:
    switched = await services.model_switch.to(reference, bare=bare)
    version = f"v{switched.version}" if switched.version else "the base model"
    text = (
        f"{switched.model} answers from now on ({version}). {switched.reason}"
        if switched.done
        else f"Nothing has changed: {switched.reason}"
    )
    # `started_at` tells the life that says this from the one that takes over.
    data = {
        **asdict(switched), "previous": services.model, "started_at": services.started_at,
    }  # fmt: skip
    return Result(text=text.rstrip(), data=data)


async def pause(call: Call) -> Result:
    await _switch(call, paused="1")
    await call.services.scheduler.stop()
    return await _state(
        call, "Training is paused; ratings are still taken. `resume` lets it go on."
    )


async def off(call: Call) -> Result:
    """One step back to the base model, and one step (`resume`) forward again."""
    await _switch(call, off="1")
    await call.services.scheduler.stop()
    await call.services.registry.refresh()
    return await _state(
        call, "Off: the base model answers and nothing is trained. `resume` brings it all back."
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
    store = call.services.store
    off = bool(await store.read(lambda db: access.switch(db, "off")))
    paused = bool(await store.read(lambda db: access.switch(db, "paused")))
    version = await call.services.registry.wanted()
    return Result(
        text=text,
        data={"off": off, "paused": paused, "training": not (off or paused), "version": version},
    )


async def _switch(call: Call, **switches: str) -> None:
    async def operation(db: aiosqlite.Connection) -> None:
        for name, value in switches.items():
            await access.set_switch(db, name, value)

    await call.services.store.write(operation)


COMMANDS = (
    Command(
        name="train",
        grant=Grant.ADMINISTER,
        run=train,
        needs_server=True,
        summary="train now on all ratings that are not used yet",
    ),
    Command(
        name="pause", grant=Grant.ADMINISTER, run=pause, summary="stop training until `resume`"
    ),
    Command(
        name="resume",
        aliases=("on",),
        grant=Grant.ADMINISTER,
        run=resume,
        summary="undo `pause` and `off`",
    ),
    Command(
        name="off",
        grant=Grant.ADMINISTER,
        run=off,
        summary="the base model answers and nothing is trained",
    ),
    Command(
        name="switch",
        grant=Grant.ADMINISTER,
        run=switch,
        summary="another base model; in a terminal: `goodbot model switch`",
    ),
)
