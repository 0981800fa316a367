# SPDX-License-Identifier: Apache-2.0
"""`train --dry-run`: what a run would do now, in sentences and in numbers. It changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goodbot.api.events import ChannelKind
from goodbot.api.progress import phase
from goodbot.base.errors import UsageError
from goodbot.base.suggest import version_name
from goodbot.commands.base import DETAILS, Call, Result
from goodbot.commands.state import filtered
from goodbot.learning.training.memory_sharing import Sharing, told
from goodbot.store.quarantined import FILTER

FLAG = "--dry-run"


async def dry_run(call: Call) -> Result:
    """`data["trains"]` is False where `train` would have nothing to train on."""
    s = call.services
    if call.event.channel.kind is ChannelKind.SHARED:
        raise UsageError(f"it tells much of others: write `train {FLAG}` to me privately")
    readiness, pressure = await s.scheduler.readiness(), await s.scheduler.pressure()
    standing = await s.scheduler.standing()
    prospect = await s.trainer.dry_run(busy=s.scheduler.training)
    data: dict[str, Any] = {
        "model": s.model.name,
        "learning": s.learning or None,
        **asdict(prospect),
        "trains": prospect.train > 0 and prospect.train + prospect.held_out > 1,
        "training": s.scheduler.training,
        "waiting_for_consent": standing.waiting_for_consent,
        "due": readiness.due,
        "why": readiness.condition.for_owners(),
        "pressure": pressure.for_owners() if pressure else None,
    }
    busy = pressure.for_owners() if pressure and pressure.name != readiness.condition.name else ""
    said = sentences(data, busy) if DETAILS in call.args else summary(data, busy)
    return Result(text="\n".join(said), data=data)


def summary(data: Mapping[str, Any], busy: str = "") -> list[str]:
    """What a person wants to know of it: `sentences` has all the figures."""
    if not data["trains"]:
        return sentences(data, busy)
    lines = [_what({**data, "settings": {}}), _ratings({**data, "replayed": 0, "off_policy": 0})]
    if unused := _unused(data):
        lines.append(f"Not used: {'; '.join(unused)}.")
    if estimate := data["estimate"]:
        memory = told(estimate["peak"] or estimate["memory"]["needed"])
        lines.append(f"It takes about {_seconds(estimate['total']['wall'])}, and about {memory} of memory.")
    else:
        lines.append(data["unknown"])
    return [
        *lines,
        _meanwhile(data["tenancy"]),
        _now(data, busy),
        f"`train {FLAG} {DETAILS}` has all figures.",
    ]


def _ratings_of(count: int) -> str:
    return f"{count} rating{'' if count == 1 else 's'}"


def sentences(data: Mapping[str, Any], busy: str = "") -> list[str]:
    """What `data` says, a line a subject. `busy`: what else the machine is needed for."""
    trains = data["trains"]
    lines = [_what(data)] if trains else ["There is nothing to train on: rate some answers first."]
    if data["train"] or data["held_out"]:
        lines.append(_ratings(data))
    if unused := _unused(data):
        lines.append(f"Not used: {'; '.join(unused)}.")
    if trains:
        if data["learning"]:
            lines.append(f"Learns: {data['learning']}.")
        if data["lora"]:
            lines.append(
                f"LoRA: {data['lora']:,} weights beside the model's {data['parameters']:,}, on "
                f"{data['projections']} attention and MLP projections in {data['layers']} layers."
            )
        lines += _cost(data["estimate"]) if data["estimate"] else [data["unknown"]]
        lines.append(_tenancy(data["tenancy"]))
    lines.append(_now(data, busy))
    return lines


def _what(data: Mapping[str, Any]) -> str:
    start = version_name(data["parent"])
    if data["parent"] and data["estimate"] and data["estimate"].get("start_over"):
        start = f"the base model again, since v{data['parent']} is liked less than that was"
    objective = data["settings"].get("objective")
    by = f" with the objective {objective}" if objective else ""
    if data["interrupted"]:
        return f"The interrupted training of {data['model']} would go on{data['interrupted']}{by}."
    return f"Would train {data['model']}, from {start}{by}."


def _ratings(data: Mapping[str, Any]) -> str:
    again = f" ({data['replayed']} of them once more)" if data["replayed"] else ""
    others = f" Other models wrote {data['off_policy']} of them." if data["off_policy"] else ""
    return (
        f"It learns from {_ratings_of(data['train'])}{again}; {data['held_out']} more are kept to check it, "
        f"and are used next time.{others}"
    )


def _unused(data: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    if data["estimate"] and (too_long := data["estimate"]["too_long"]):
        limit = data["settings"].get("max_sequence_tokens")
        found.append(f"{too_long} of these too long (over {limit} tokens)")
    if data["ties"]:
        found.append(f"{data['ties']} on which opinions are split")
    if data["unheard"]:
        found.append(f"{data['unheard']} whose raters want the opposite of the others")
    if data["waiting_for_consent"]:
        found.append(f"{data['waiting_for_consent']} of private chats until their people type `/rl share on`")
    found.extend(
        f"{one['answers']} set aside by training {one['run']} ({one['reason']}), until `train retry`"
        for one in data["set_aside"]
        if one["kind"] != FILTER
    )
    return [*found, *filtered(data["set_aside"])]


def _cost(estimate: Mapping[str, Any]) -> list[str]:
    cpu, wall = estimate["total"]["cpu"], estimate["total"]["wall"]
    parts = ", ".join(
        f"{phase({'phase': name})} {_seconds(cost['cpu'])}" for name, cost in estimate["parts"].items()
    )
    how = {"measured": "measured on a small trial", "counted": "computed, since one step takes long"}.get(
        estimate["how"], estimate["how"]
    )
    memory = estimate["memory"]
    need = estimate["peak"] or memory["needed"]
    free = f" of {told(memory['free'])} that are free" if memory["free"] else ""
    part = estimate.get("share", 1)
    less = f", and goes {part:.0%} of the usual way, since some raters are outvoted" if part < 1 else ""
    again = "computed again for the gradient" if memory["recompute"] else "kept"
    return [
        f"Steps: {estimate['steps']} at a rate of {estimate['learning_rate']:.1e} or less, each answer "
        f"about {estimate['passes']:.1f} times{less}; "
        f"{estimate['tokens']:,} tokens in all, {estimate['longest']:,} in the longest answer.",
        f"Time: about {_seconds(wall)} ({how}).",
        f"Processor time: about {_seconds(cpu)} ({parts}). It can be {_seconds(estimate['least']['cpu'])} to "
        f"{_seconds(estimate['most']['cpu'])}: the check ends when it is sure.",
        f"Memory: about {told(need)}{free}; {memory['tokens_per_forward']:,} tokens at once, "
        f"activations {again}.",
    ]


def _tenancy(plan: Mapping[str, Any]) -> str:
    """Both peaks, and how they go together."""
    peaks, meanwhile = plan["peaks"], _meanwhile(plan)
    known = {"the model that answers": peaks["serving"], "a training": peaks["training"]}
    parts = [f"{who} about {told(size)}" for who, size in known.items() if size]
    return f"Peaks: {', '.join(parts) or 'not known'}. {plan['why']} {meanwhile}"


def _meanwhile(plan: Mapping[str, Any]) -> str:
    return {
        Sharing.TURNS: "Questions wait meanwhile, and who asks is told.",
        Sharing.TOGETHER: "It answers meanwhile.",
        Sharing.ELSEWHERE: "It answers meanwhile.",
    }[plan["sharing"]]


def _now(data: Mapping[str, Any], busy: str) -> str:
    if data["training"]:
        return "Now: a training is under way; `status` shows how far it is."
    if data["due"]:
        return f"Now: it starts by itself ({data['why']})."
    starts = " `train` starts it all the same." if data["trains"] else ""
    beside = f" The machine: {busy}." if busy else ""
    return f"Now: it does not start by itself: {data['why']}.{beside}{starts}"


def _seconds(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 300 else f"{seconds / 60:.0f} min"
