# SPDX-License-Identifier: Apache-2.0
"""`train --dry-run`: what a run would do now, in sentences and in numbers. It changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from goodbot.api.events import ChannelKind
from goodbot.api.progress import phase
from goodbot.api.sentences import at, version, words
from goodbot.api.texts import beside, commas, figure, joined, pauses, percent, reworded, say, size
from goodbot.commands.base import DETAILS, Call, Result, wrong
from goodbot.commands.state import filtered
from goodbot.learning.training.memory_sharing import Sharing
from goodbot.store.quarantined import FILTER

FLAG = "--dry-run"


async def dry_run(call: Call) -> Result:
    """`data["trains"]` is False where `train` would have nothing to train on."""
    s, language = call.services, call.user.language
    if call.event.channel.kind is ChannelKind.SHARED:
        raise wrong(call.event, "wrong_dry_run")
    readiness, pressure = await s.scheduler.readiness(), await s.scheduler.pressure()
    standing = await s.scheduler.standing()
    prospect = await s.trainer.dry_run(busy=s.scheduler.training)
    data: dict[str, Any] = {
        "model": s.model.name,
        "learning": s.learning or None,
        **asdict(prospect),
        "unknown": words(*prospect.unknown),
        "trains": prospect.train > 0 and prospect.train + prospect.held_out > 1,
        "training": s.scheduler.training,
        "waiting_for_consent": standing.waiting_for_consent,
        "due": readiness.due,
        "why": readiness.condition.for_owners(),
        "pressure": pressure.for_owners() if pressure else None,
    }
    told = {
        **data,
        "unknown": words(*prospect.unknown, language=language),
        "why": readiness.condition.for_owners(language),
        "interrupted": at(prospect.step, prospect.steps, language),
    }
    apart = pressure and pressure.name != readiness.condition.name
    busy = pressure.for_owners(language) if pressure and apart else ""
    said = sentences(told, busy, language) if DETAILS in call.args else summary(told, busy, language)
    return Result(text="\n".join(said), data=data)


def summary(data: Mapping[str, Any], busy: str = "", language: str = "") -> list[str]:
    """What a person wants to know of it: `sentences` has all the figures."""
    if not data["trains"]:
        return sentences(data, busy, language)
    few: dict[str, Any] = {**data, "settings": {}, "replayed": 0, "off_policy": 0}
    lines = [_what(few, language), _ratings(few, language)]
    if unused := _unused(data, language):
        lines.append(say("dry_unused", language, told=pauses(language, *unused)))
    if estimate := data["estimate"]:
        memory = size(estimate["peak"] or estimate["memory"]["needed"], language)
        time = _seconds(estimate["total"]["wall"], language)
        lines.append(say("dry_takes", language, time=time, memory=memory))
    else:
        lines.append(data["unknown"])
    return [
        *lines,
        *_remote(data["remote"], language),
        _meanwhile(data["tenancy"], language),
        _now(data, busy, language),
        say("dry_all", language),
    ]


def sentences(data: Mapping[str, Any], busy: str = "", language: str = "") -> list[str]:
    """What `data` says, a line a subject. `busy`: what else the machine is needed for."""
    trains = data["trains"]
    lines = [_what(data, language) if trains else say("dry_nothing", language)]
    if data["train"] or data["held_out"]:
        lines.append(_ratings(data, language))
    if unused := _unused(data, language):
        lines.append(say("dry_unused", language, told=pauses(language, *unused)))
    if trains:
        if data["learning"]:
            lines.append(say("dry_learning", language, learning=data["learning"]))
        if data["lora"]:
            weights = {name: figure(data[name], language) for name in ("lora", "parameters")}
            where = {name: data[name] for name in ("projections", "layers")}
            lines.append(say("dry_lora", language, **weights, **where))
        lines += _cost(data["estimate"], language) if data["estimate"] else [data["unknown"]]
        lines += _remote(data["remote"], language)
        lines.append(_sharing(data["tenancy"], language))
    lines.append(_now(data, busy, language))
    return lines


def _what(data: Mapping[str, Any], language: str) -> str:
    start = version(data["parent"], language)
    if data["parent"] and data["estimate"] and data["estimate"].get("start_over"):
        start = say("dry_afresh", language, version=data["parent"])
    model, objective = data["model"], data["settings"].get("objective")
    if data["interrupted"]:
        key = "dry_goes_on_by" if objective else "dry_goes_on"
        return say(key, language, model=model, at=data["interrupted"], objective=objective)
    key = "dry_train_by" if objective else "dry_train"
    return say(key, language, model=model, start=start, objective=objective)


def _ratings(data: Mapping[str, Any], language: str) -> str:
    ratings = say("count_ratings", language, count=data["train"])
    if data["replayed"]:
        ratings = beside(ratings, say("dry_once_more", language, count=data["replayed"]), language)
    others = say("dry_others", language, count=data["off_policy"]) if data["off_policy"] else ""
    learns = say("dry_learns", language, ratings=ratings, count=data["held_out"])
    return joined(language, learns, others)


def _unused(data: Mapping[str, Any], language: str) -> list[str]:
    found: list[str] = []
    if data["estimate"] and (too_long := data["estimate"]["too_long"]):
        limit = data["settings"].get("max_sequence_tokens")
        found.append(say("dry_too_long", language, count=too_long, limit=limit))
    for key, name in (
        ("dry_ties", "ties"),
        ("dry_unheard", "unheard"),
        ("dry_unshared", "waiting_for_consent"),
    ):
        if data[name]:
            found.append(say(key, language, count=data[name]))
    for one in data["set_aside"]:
        if one["kind"] != FILTER:
            why = reworded(one["reason"], language)
            found.append(say("dry_aside", language, answers=one["answers"], run=one["run"], reason=why))
    return [*found, *filtered(data["set_aside"], language)]


def _cost(estimate: Mapping[str, Any], language: str) -> list[str]:
    cpu, wall = (_seconds(estimate["total"][name], language) for name in ("cpu", "wall"))
    parts = commas(
        language,
        *(
            f"{phase({'phase': name}, language)} {_seconds(cost['cpu'], language)}"
            for name, cost in estimate["parts"].items()
        ),
    )
    how = estimate["how"]
    how = say(f"dry_{how}", language) if how in ("measured", "counted") else how
    part = estimate.get("share", 1)
    steps = say(
        "dry_steps",
        language,
        steps=estimate["steps"],
        rate=f"{estimate['learning_rate']:.1e}",
        passes=figure(estimate["passes"], language, digits=1),
        tokens=figure(estimate["tokens"], language),
        longest=figure(estimate["longest"], language),
    )
    less = say("dry_less", language, share=percent(part, language)) if part < 1 else ""
    least, most = (_seconds(estimate[name]["cpu"], language) for name in ("least", "most"))
    return [
        joined(language, steps, less),
        say("dry_time", language, time=wall, how=how),
        say("dry_cpu", language, time=cpu, parts=parts, least=least, most=most),
        _memory(estimate, language),
    ]


def _remote(remote: Mapping[str, Any] | None, language: str) -> list[str]:
    """What would go to the server that computes its steps, and for how much."""
    if remote is None:
        return []
    tokens, price = figure(remote["tokens"], language), remote["price"]
    if "workers" in remote:
        sent = say("dry_remote", language, host=remote["host"], tokens=tokens)
        others = commas(language, *(host for host in remote["hosts"] if host != remote["host"]))
        too = say("dry_cluster_hosts", language, hosts=others) if others else ""
        return [joined(language, sent, too), _cluster(remote, language)]
    costs = say("dry_remote_price", language, price=figure(price, language, digits=4)) if price else ""
    sent = say("dry_remote", language, host=remote["host"], tokens=tokens)
    return [joined(language, sent, costs or say("dry_remote_no_price", language))]


def _cluster(remote: Mapping[str, Any], language: str) -> str:
    """Who would share each step there."""
    rows = "–".join(figure(number, language) for number in dict.fromkeys(remote["rows"]))
    share = say("dry_cluster", language, workers=figure(remote["workers"], language), rows=rows)
    if remote["unknown"]:
        return joined(language, share, say("dry_cluster_unknown", language, why=remote["unknown"]))
    there = [
        say(
            "dry_cluster_one",
            language,
            address=one["address"],
            cpus=figure(one["cpu"], language),
            gpus=figure(one["gpu"], language),
        )
        for one in remote["machines"]
    ]
    has = say("dry_cluster_has", language, machines=commas(language, *there))
    unnamed = commas(language, *(one["address"] for one in remote["machines"] if not one["named"]))
    refused = say("dry_cluster_unnamed", language, machines=unnamed) if unnamed else ""
    return joined(language, share, has, refused)


def _memory(estimate: Mapping[str, Any], language: str) -> str:
    memory = estimate["memory"]
    return say(
        "dry_memory_free" if memory["free"] else "dry_memory",
        language,
        memory=size(estimate["peak"] or memory["needed"], language),
        free=size(memory["free"] or 0, language),
        tokens=figure(memory["tokens_per_forward"], language),
        kept=say("dry_recompute" if memory["recompute"] else "dry_kept", language),
    )


def _sharing(plan: Mapping[str, Any], language: str) -> str:
    """Both peaks, and how they go together."""
    peaks = plan["peaks"]
    parts = [
        say(f"dry_peak_{name}", language, memory=size(peaks[name], language))
        for name in ("serving", "training")
        if peaks[name]
    ]
    known = say("dry_peaks", language, told=commas(language, *parts)) if parts else ""
    why = words(*plan["said"], language=language)
    return joined(language, known or say("dry_no_peaks", language), why, _meanwhile(plan, language))


def _meanwhile(plan: Mapping[str, Any], language: str) -> str:
    return say("dry_waits" if plan["sharing"] == Sharing.TURNS else "dry_answers", language)


def _now(data: Mapping[str, Any], busy: str, language: str) -> str:
    if data["training"]:
        return say("dry_underway", language)
    if data["due"]:
        return say("dry_due", language, why=data["why"])
    starts = say("dry_starts", language) if data["trains"] else ""
    machine = say("dry_machine", language, why=busy) if busy else ""
    return joined(language, say("dry_not", language, why=data["why"]), machine, starts)


def _seconds(seconds: float, language: str) -> str:
    if seconds < 10:
        return f"{figure(seconds, language, digits=1)} s"
    return f"{seconds:.0f} s" if seconds < 300 else f"{seconds / 60:.0f} min"
