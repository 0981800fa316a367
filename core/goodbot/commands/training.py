"""train, pause, resume, off."""

from __future__ import annotations

import aiosqlite

from goodbot.authorization import Grant, person
from goodbot.commands.base import Call, Command, Result
from goodbot.errors import UsageError
from goodbot.store import access


async def train(call: Call) -> Result:
    s = call.services
    standing = await s.scheduler.standing()
    if standing.available < 2:
        raise UsageError(
            f"{standing.available} ratings are not enough to train on: rate some answers first"
        )
    task = await s.scheduler.start(f"asked for by {person(call.user)}")
    if "wait" not in call.args:
        return Result(
            text=f"Training starts on {standing.available} ratings; `status` shows how far it is.",
            data={"ratings": standing.available},
        )
    verdict = await task
    version = f"v{verdict.version} answers now" if verdict.state == "activated" else verdict.state
    return Result(
        text=f"{version}: {verdict.reason}",
        data={
            "run": verdict.run, "state": verdict.state, "reason": verdict.reason,
            "version": verdict.version, "ratings": standing.available,
        },
    )  # fmt: skip


async def pause(call: Call) -> Result:
    await _switch(call, paused="1")
    await call.services.scheduler.stop()
    return Result(text="Training is paused; ratings are still taken. `resume` lets it go on.")


async def off(call: Call) -> Result:
    """One step back to the base model, and one step (`resume`) forward again."""
    await _switch(call, off="1")
    await call.services.scheduler.stop()
    await call.services.registry.refresh()
    return Result(
        text="Off: the base model answers and nothing is trained. `resume` brings it all back."
    )


async def resume(call: Call) -> Result:
    await _switch(call, off="", paused="")
    await call.services.registry.refresh()
    call.services.scheduler.wake()
    active = await call.services.registry.active()
    return Result(
        text=f"On: {f'v{active}' if active else 'the base model'} answers, and training goes on."
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
)
