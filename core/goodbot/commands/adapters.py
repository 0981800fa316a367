"""adapters, rollback, reset."""

from __future__ import annotations

from dataclasses import asdict

from goodbot.commands import confirm
from goodbot.commands.base import Call, Command, Result
from goodbot.commands.quarantine import reset, since
from goodbot.errors import AdapterError, UsageError
from goodbot.people.authorization import Grant


async def adapters(call: Call) -> Result:
    registry = call.services.registry
    active = await registry.active()
    rows = await registry.rows()
    lines = [
        f"{'*' if row.version == active else ' '} v{row.version}"
        f"  from {f'v{row.parent}' if row.parent else 'base'}"
        f"  {row.sha256[:12]}  {row.tainted}".rstrip()
        for row in rows
    ]
    lines.insert(0, f"{' ' if active else '*'} base  {call.services.model}")
    data = {
        "active": active,
        "adapters": [asdict(row) for row in rows],
        "directory": str(registry.root),
    }
    return Result(text="\n".join(lines), data=data)


async def rollback(call: Call) -> Result:
    """To the parent of what answers now, to a version, to the base model, or to a day."""
    if call.args[:1] == ("since",):
        return await since(call, call.args[1:])
    registry = call.services.registry
    active = await registry.active()
    sure = call.args[-1:] == ("yes",)
    args = call.args[:-1] if sure else call.args
    if not args:
        if not active:
            raise UsageError("the base model answers already: there is nothing to roll back")
        target = await registry.clean_ancestor((await registry.row(active)).parent)
    else:
        word = args[0].removeprefix("v")
        if word != "base" and not (word.isascii() and word.isdecimal() and len(word) < 10):
            raise UsageError("say which: `rollback`, `rollback 3` or `rollback base`")
        target = 0 if word == "base" else int(word)
        if target and (row := await registry.row(target)).tainted:
            raise AdapterError(f"v{target} is not to be used: {row.tainted}")
    name = f"v{target}" if target else "the base model"
    what = f"rollback from {active} to {target}"
    if not confirm.agreed(call, what, sure=sure):
        now = f"v{active}" if active else "the base model"
        return confirm.ask(
            call, what, f"This lets {name} answer in place of {now}.",
            command=f"rollback {target or 'base'} yes", label="Yes, roll back",
        )  # fmt: skip
    await call.services.scheduler.stop()
    if not await registry.activate(target, expected=active):
        raise AdapterError(
            "another version became active meanwhile: look at `adapters` and try again"
        )
    return Result(
        text=f"{name} answers now. The ratings behind what was rolled back stay used.",
        data={"version": target, "previous": active},
    )


COMMANDS = (
    Command(
        name="adapters",
        grant=Grant.ADMINISTER,
        run=adapters,
        summary="all versions and where they come from",
    ),
    Command(
        name="rollback",
        grant=Grant.ADMINISTER,
        run=rollback,
        needs_server=True,
        summary="back to an earlier version, or to base",
        usage="[VERSION|base|since DATE]",
    ),
    Command(
        name="reset",
        grant=Grant.ADMINISTER,
        run=reset,
        needs_server=True,
        summary="begin anew: the base model, and none of the ratings so far",
    ),
)
