# SPDX-License-Identifier: Apache-2.0
"""Choosing a model: what a name, a directory or a server stands for, and what it would cost here.

Nothing here asks, prints or downloads weights. `propose` is `auto`; `choose` takes everything that a
person may write; `settle` writes the choice into the config.
"""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from goodbot.api import model_shape
from goodbot.api.estimate import FEWEST, MOST, SLOWEST, ModelEstimate, estimate
from goodbot.api.server import ServerSpec
from goodbot.api.texts import commas, pauses
from goodbot.api.texts.terminal import here, phrase
from goodbot.base.errors import ConfigError, GoodbotError, UsageError
from goodbot.base.machine.device import Device, place
from goodbot.base.packages import install_line
from goodbot.config.file import ConfigFile
from goodbot.inference.models import catalogue, disk, served, servers, serving
from goodbot.inference.models.directory import cache_folder, hub_cache, hub_name, read_config, resolve
from goodbot.inference.models.obtain import Obtained, complete, token
from goodbot.inference.models.proposal import ModelOption, Proposal
from goodbot.inference.servers.plugin import SPECS

_LIMITS = ("tokens_per_forward", "max_sequence_tokens")
"""Of `[training.settings]`: what the memory of a training grows with."""


def propose(home: Path, backends: Sequence[str], *, memory: int | None = None) -> Proposal:
    """The largest model of the catalogue that can be trained here and answers soon enough.

    `backends` are the names of those that may be used, the preferred one first; `memory` in bytes
    replaces what the machine has. Raises GoodbotError when none fits or the hub cannot be asked.
    """
    places = [place(name, memory=memory) for name in backends]
    options = [
        _option(entry, where)
        for entry in catalogue.entries()
        for where in places
        if not model_shape.unusable(entry.config, where.backend)
    ]
    fitting = [option for option in options if option.estimate.fits]
    quick = [option for option in fitting if option.estimate.answer <= SLOWEST]
    free = [option for option in quick if not option.gated]
    if not free:
        raise ConfigError(_nothing(options, fitting))
    best = max(free, key=lambda option: (option.parameters, -option.estimate.answer))
    where = next(one for one in places if one.backend == best.backend)
    found = choose(best.name, home, best.backend, memory=memory)
    shown = {option.name: option for option in fitting if option.backend == best.backend}
    return replace(
        found,
        why=_reason(best, options, where),
        name_backend=best.backend != backends[0],
        options=tuple(sorted(shown.values(), key=lambda option: -option.parameters)),
    )


def choose(
    wanted: str,
    home: Path,
    backend: str,
    *,
    memory: int | None = None,
    drivers: Collection[ServerSpec] = SPECS,
) -> Proposal:
    """What a person wrote: a directory, a name in the hub, a server's model, or its bare name.

    Asks the hub for a model that is not on this disk, and servers on this machine; downloads no
    weights. Raises GoodbotError with what to do.
    """
    meant = served.TrainableWeights(wanted)
    if not Path(wanted).expanduser().is_dir():
        meant = served.source(wanted, drivers)
    wanted = meant.source
    where = place(backend, memory=memory)
    if Path(wanted).expanduser().is_dir():
        found = resolve(wanted, {}, demo=False)
        proposal = _local(str(found.path), found.name, found.path, where)
    else:
        hub = hub_name(wanted)
        if hub is None:
            raise UsageError(_unknown(wanted))
        stored = complete(*hub)
        proposal = (
            _local(f"{hub[0]}@{stored.name}", hub[0], stored, where) if stored else _remote(*hub, home, where)
        )
    return replace(proposal, why=meant.note, serving=meant.serving)


def settle(file: ConfigFile, proposal: Proposal, got: Obtained) -> None:
    """Set the model in a config file, and what its training needs on this machine. Saves nothing."""
    file.set("model.path", got.reference)
    if proposal.name_backend and file.get("training.backend") in (None, "auto"):
        file.set("training.backend", proposal.backend)
    before = {key: file.get(f"training.settings.{key}") for key in _LIMITS}
    for key, tokens in limits(proposal.estimate, before).items():
        file.set(f"training.settings.{key}", tokens)


def answering(proposal: Proposal, server: object, drivers: Collection[ServerSpec] = SPECS) -> str:
    """The question whether the named server shall go on answering; empty where it cannot, or does.

    `server` is what `[serving] server` says now.
    """
    if server not in (None, "embedded") or not serving.ready(proposal.serving, drivers):
        return ""
    title = servers.surveys(drivers)[proposal.serving["server"]].title
    return phrase("model_goes_on", title=title)


def go_on_answering(file: ConfigFile, values: Mapping[str, str]) -> None:
    """Set `[serving]` to a server that goes on answering, if any. Saves nothing."""
    for key, value in values.items():
        file.set(f"serving.{key}", value)


def limits(cost: ModelEstimate | None, settings: Mapping[str, object]) -> dict[str, int]:
    """Those of `settings` that must be lowered for a training to stay in this machine's memory.

    A model that does not fit gets the lowest ones: it may work where the estimate is too high.
    """
    if cost is None or cost.tokens >= MOST:
        return {}
    most = cost.tokens or FEWEST
    return {
        key: most
        for key in _LIMITS
        if key in settings and not (isinstance(now := settings[key], int) and now <= most)
    }


def cost(path: Path, backend: str) -> ModelEstimate | None:
    """What weights on this disk would take of this machine; its seconds mean nothing."""
    where = place(backend, measure=False)
    return _cost(read_config(path), where, disk.stored(path))[1]


def _option(entry: catalogue.CatalogueEntry, where: Device) -> ModelOption:
    return ModelOption(
        name=entry.name,
        parameters=entry.parameters,
        bytes=entry.bytes,
        licence=entry.licence,
        gated=entry.gated,
        backend=where.backend,
        estimate=estimate(entry.architecture, where, entry.bytes),
    )


def _local(source: str, name: str, path: Path, where: Device) -> Proposal:
    entry = catalogue.find(name) if hub_name(name) else None
    return _proposal(
        read_config(path),
        where,
        disk.stored(path),
        source=source,
        name=name,
        download=0,
        disk=shutil.disk_usage(path).free,
        licence=entry.licence if entry else "see its model card",
        gated=False,
    )


def _remote(repo: str, commit: str, home: Path, where: Device) -> Proposal:
    from goodbot.inference.models import hub, transfer

    secret = token(home)
    model = hub.describe(repo, commit, secret)
    entry = catalogue.find(repo)
    # A gated model's config cannot be read without a token; the catalogue may know it.
    try:
        config = hub.config(model, secret)
    except GoodbotError:
        if entry is None or entry.name != repo or not model.gated or secret:
            raise
        config = entry.config
    return _proposal(
        config,
        where,
        model.weights,
        source=f"{repo}@{model.commit}",
        name=repo,
        download=transfer.missing(model, cache_folder(repo)),
        disk=shutil.disk_usage(_existing(hub_cache())).free,
        licence=model.licence,
        gated=model.gated,
    )


def _proposal(config: Mapping[str, Any], where: Device, stored: int, **known: Any) -> Proposal:
    parameters, cost = _cost(config, where, stored)
    return Proposal(
        backend=where.backend,
        device=where.device,
        parameters=parameters,
        estimate=cost,
        unusable=model_shape.unusable(config, where.backend),
        doubt=model_shape.doubt(config),
        **known,
    )


def _cost(config: object, where: Device, stored: int) -> tuple[int, ModelEstimate | None]:
    try:
        shape = model_shape.read(config)  # pyright: ignore[reportArgumentType]
    except ConfigError:
        return 0, None
    return shape.parameters, estimate(shape, where, stored)


def _existing(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _reason(best: ModelOption, options: Sequence[ModelOption], where: Device) -> str:
    larger = [o for o in options if o.parameters > best.parameters and o.backend == best.backend]
    fitting = [o for o in larger if o.estimate.fits]
    slow = [o for o in fitting if o.estimate.answer > SLOWEST]
    virtues = [phrase("model_fits", memory=f"{where.memory / 1e9:.0f}")]
    if any(o.gated for o in fitting if o not in slow):
        virtues.append(phrase("model_open"))
    if slow:
        virtues.append(phrase("model_quick", seconds=f"{SLOWEST:.0f}"))
    reason = phrase("model_largest", name=best.name, how=commas(here(), *virtues))
    if slow:
        name, seconds = slow[0].name.rpartition("/")[2], f"{slow[0].estimate.answer:.0f}"
        reason = pauses(here(), reason, phrase("model_slow", name=name, seconds=seconds))
    return reason


def _nothing(options: Sequence[ModelOption], fitting: Sequence[ModelOption]) -> str:
    """Why no model of the catalogue is proposed, and what to do."""
    if not options:
        return phrase("model_no_backend")
    if fitting:
        least = min(fitting, key=lambda option: option.estimate.answer)
        advice = _faster() if least.backend == "mlx" else phrase("model_name_one")
        times = {"limit": f"{SLOWEST:.0f}", "seconds": f"{least.estimate.answer:.0f}"}
        return phrase("model_none_quick", name=least.name, advice=advice, **times)
    least = min(options, key=lambda option: option.estimate.serving + option.estimate.training)
    needed = (least.estimate.serving + least.estimate.training) / 1e9
    sizes = {"needed": f"{needed:.1f}", "limit": f"{least.estimate.limit / 1e9:.1f}"}
    return phrase("model_none_fits", name=least.name, **sizes)


def _faster() -> str:
    return phrase("model_mlx_slow", line=install_line("torch"))


def _unknown(wanted: str) -> str:
    names = [entry.name for entry in catalogue.entries()]
    short = {name.rpartition("/")[2].lower(): name for name in names}
    near = difflib.get_close_matches(wanted.lower(), [*short], n=1, cutoff=0.5)
    hint = phrase("instead_near", name=short[near[0]]) if near else phrase("model_lists")
    return phrase("model_unknown", name=repr(wanted[:80]), hint=hint)
