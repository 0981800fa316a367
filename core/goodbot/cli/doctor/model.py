# SPDX-License-Identifier: Apache-2.0
"""What answers and what trains: the backend, the hardware, the model's files, and the memory."""

from __future__ import annotations

import asyncio
import contextlib
import json
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from goodbot.api import marks, model_shape
from goodbot.api.backend import BackendSpec
from goodbot.api.estimate import estimate
from goodbot.api.model import ResolvedModel
from goodbot.api.registry import choose_backend
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.api.texts import beside, explained, pauses, reworded
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import heard, sampling, spawn
from goodbot.base.errors import ConfigError, GoodbotError, MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.base.machine.device import available_memory, physical_memory, place
from goodbot.base.packages import install_line
from goodbot.base.worded import said_by
from goodbot.base.worded_parts import reason_in, reasons_in
from goodbot.cli.doctor import weights
from goodbot.cli.doctor.checks import failed, short, size
from goodbot.inference.models import resolve
from goodbot.inference.models.directory import read_config
from goodbot.inference.models.disk import stored
from goodbot.inference.servers import choice

_CHOOSE = "goodbot model use auto"
_CHILD_SECONDS = 40
_LOOK_SECONDS = _CHILD_SECONDS - 5.0
_MOST = 4 << 20
"""Bytes of what a child may say; what says more is ended, and has said nothing."""
_LOOK = "goodbot_training.process.look"
_ASK = """
import importlib, json, sys
name = sys.argv[1]
importlib.import_module("mlx.core" if name == "mlx" else name)
device = ""
if name == "torch":
    import torch
    if torch.cuda.is_available():
        device = f"CUDA, {torch.cuda.get_device_name(0)}"
    elif torch.backends.mps.is_available():
        device = "Metal"
    else:
        device = "CPU"
elif name == "mlx":
    import mlx.core as mx
    gpu = mx.default_device().type == mx.DeviceType.gpu
    device = ("Metal" if sys.platform == "darwin" else "CUDA") if gpu else "CPU"
print(json.dumps(device))
"""
"""Asked of a child: the daemon and the program import no framework."""


async def backend(examined: Examined) -> Sequence[Check]:
    """Which backend is taken and why, that it can be imported, and what it runs on."""
    wanted, specs = examined.config.training.backend, examined.plugins.backends()
    try:
        spec = choose_backend(specs, wanted)
    except ConfigError:
        return []  # the config's line says it
    except MissingExtraError as error:
        text = phrase("doc_b_packages", name=error.extra)
        return [fail("backend", text, install_line(error.extra))]
    why = phrase("doc_b_wanted" if wanted != "auto" else "doc_b_fastest")
    others = sorted(
        name
        for name, other in specs.items()
        if not (name == spec.name or other.remote or missing_modules(other.requires))
    )
    if wanted == "auto" and not others:
        why = phrase("doc_b_only")
    device, wrong = await _ask(spec, spawn.Cage(seconds=_CHILD_SECONDS))
    if wrong:
        text = phrase("doc_b_broken", name=spec.name, why=wrong)
        return [fail("backend", text, install_line(spec.extra))]
    on = phrase("doc_b_on", name=spec.name, why=why, device=device)
    text = on if device else beside(spec.name, why, here())
    if spec.remote:
        text = phrase("doc_b_remote", text=text, url=examined.config.training.remote.url)
    if device == "CPU" and (card := await _nvidia()):
        if (await _ask(spec, None))[0] not in ("CPU", ""):
            return [warn("backend", phrase("doc_b_caged", text=text, card=card), phrase("doc_b_report"))]
        fix = phrase("doc_b_torch", line=install_line("torch"))
        return [warn("backend", phrase("doc_b_card", text=text, card=card), fix)]
    if device == "CPU" and sys.platform == "darwin" and platform.machine() == "arm64":
        return [warn("backend", phrase("doc_b_mac", text=text), install_line("mlx"))]
    return [ok("backend", text)]


async def _ask(spec: BackendSpec, cage: spawn.Cage | None) -> tuple[str, str]:
    """`(device, what is wrong)`, by importing the backend's framework in a child, locked up as others are."""
    if not spec.requires:
        return "", ""
    code, out, error = await _child(*spawn.python("-c", _ASK, spec.requires[0]), cage=cage)
    if code == 0:
        with contextlib.suppress(ValueError, IndexError):
            return str(json.loads(out.splitlines()[-1])), ""
    lines = error.strip().splitlines() or [phrase("doc_b_ended", code=code)]
    return "", lines[-1][:200]


async def _nvidia() -> str:
    """The first NVIDIA card, by the driver's own program; empty without one."""
    try:
        code, out, _ = await _child("nvidia-smi", "-L", cage=None)
    except OSError:
        return ""
    return out.splitlines()[0].partition(" (UUID")[0] if code == 0 and out else ""


async def _child(*words: str, cage: spawn.Cage | None) -> tuple[int, str, str]:
    process = await spawn.start(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cage=cage,
    )
    try:
        out, error = await heard.all_of(process, most=_MOST)
    except heard.SaidTooMuchError:
        out, error = b"", b""
    finally:
        await heard.end(process)
    return process.returncode or 0, out.decode(errors="replace"), error.decode(errors="replace")


async def model(examined: Examined) -> Sequence[Check]:
    """The configured model's files: there, whole, and those of a chat model."""
    config = examined.config
    try:
        found = _resolved(examined)
    except ConfigError as error:
        if not config.model.path:
            text = phrase("doc_no_model")
            return [fail("model", text, _CHOOSE, exit_code=error.exit_code)]
        located = config.where("model").error("path", said_by(error))
        return [failed("model", located, _CHOOSE)]
    except GoodbotError as error:
        return [failed("model", error, _CHOOSE)]
    wrong = await asyncio.to_thread(weights.problems, found.path)
    if wrong:
        text = explained(short(found.path), pauses(here(), *wrong), here())
        fix = f"goodbot model use {shlex.quote(config.model.path)}" if config.model.path else ""
        return [fail("model", text, fix or phrase("doc_m_again"))]
    text = phrase("doc_m_whole", name=found.name, size=size(stored(found.path)))
    config_json = read_config(found.path)
    if why := _unusable(examined, config_json):
        return [fail("model", pauses(here(), text, why), _CHOOSE)]
    if not found.label and (why := model_shape.doubt(config_json)):
        return [warn("model", pauses(here(), text, why))]
    if found.label:
        return [warn("model", pauses(here(), text, phrase("doc_m_demo")), _CHOOSE)]
    return [ok("model", text)]


async def template(examined: Examined) -> Sequence[Check]:
    """Where turns end that no file says, or what else goodbot has to help the template with.

    Nothing where a declared end stands in the template. Else a child is asked, with the backend's libraries.
    """
    try:
        found = _resolved(examined)
    except GoodbotError:
        return []  # the model's line says it
    if await asyncio.to_thread(weights.problems, found.path):
        return []  # the model's line says it
    if await asyncio.to_thread(weights.ends, found.path):
        return []
    cage = spawn.Cage(reads=[found.path], seconds=_CHILD_SECONDS)
    look = spawn.python("-m", _LOOK, str(found.path))
    told: dict[str, Any] = {}
    try:
        async with asyncio.timeout(_LOOK_SECONDS):
            code, out, _ = await _child(*look, cage=cage)
    except TimeoutError:  # a busy machine is no fault
        text = phrase("doc_t_slow", seconds=f"{_LOOK_SECONDS:g}")
        return [warn("template", text, phrase("doc_t_slow_fix"))]
    with contextlib.suppress(ValueError, IndexError):
        told = json.loads(out.splitlines()[-1]) if code == 0 else {}
    if not told:
        return []  # without a framework there is nothing to ask; the backend's line says it
    if "refused" in told:
        return [fail("template", reworded(reason_in(told, "refused"), here()), _CHOOSE)]
    if helped := reasons_in(told, "helped"):
        text = phrase("doc_t_helped", what=pauses(here(), *(reworded(one, here()) for one in helped)))
        return [warn("template", text, phrase("doc_t_helped_fix"))]
    return []


async def drawn(examined: Examined) -> Sequence[Check]:
    """What answers are drawn with, what of the model's files that leaves out, and whether it thinks."""
    try:
        path, serving = _resolved(examined).path, examined.config.serving
        found = await asyncio.to_thread(sampling.of, path, serving.drawn_with)
        thinks = await asyncio.to_thread(marks.thinks, path, thinking=serving.thinking)
    except GoodbotError:
        return []  # the model's line says it
    if found.notes:
        checks = [warn("sampling", pauses(here(), str(found), *found.notes), phrase("doc_s_fix"))]
    else:
        checks = [ok("sampling", str(found))]
    return [*checks, ok("thinking", thinks)] if thinks else checks


def _unusable(examined: Examined, config: Mapping[str, Any]) -> str:
    """Why the chosen backend cannot load a model of this config, as a clause; empty if it can."""
    training = examined.config.training
    try:
        spec = choose_backend(examined.plugins.backends(), training.backend)
    except GoodbotError:
        return ""  # the backend's own line says it
    return model_shape.unusable(config, spec.name)


def _resolved(examined: Examined) -> ResolvedModel:
    config, shipped = examined.config, examined.plugins.models()
    return resolve(config.model.path, shipped, demo=examined.demo_model)


def _is_served_apart(examined: Examined) -> bool:
    try:
        return bool(choice.choose(examined.config, examined.plugins.servers()).url)
    except GoodbotError:  # the config's line says it
        return False


async def room(examined: Examined) -> Sequence[Check]:
    """Whether the model fits into the memory, once to answer and once to be trained.

    A server of the owner's is one that answers already, here or elsewhere.
    """
    total, free = physical_memory(), await asyncio.to_thread(available_memory)
    have = phrase("doc_r_have", total=size(total), free=size(free))
    try:
        path = _resolved(examined).path
        config = examined.config.training
        spec = choose_backend(examined.plugins.backends(), config.backend)
        shape = model_shape.read(read_config(path))
    except GoodbotError:  # their own lines say it, or the shape is one that nobody can estimate
        return [ok("memory", have)]
    where = await asyncio.to_thread(place, spec.name)
    if where.device == "cuda":
        total = free = where.memory
        have = phrase("doc_r_gpu", free=size(free))
    held = stored(path)
    fits = estimate(shape, replace(where, memory=total), held)
    apart = _is_served_apart(examined)
    if apart:
        fits = estimate(shape, replace(where, memory=total + fits.serving), held)
    running = apart or examined.daemon is not None  # it holds its share already
    now = estimate(shape, replace(where, memory=free + running * fits.serving), held)
    trained = phrase("doc_r_trained", usual=size(fits.usual), long=size(fits.training))
    both = phrase("doc_r_both", have=have, serving=size(fits.serving), trained=trained)
    text = phrase("doc_r_training", have=have, trained=trained) if apart else both
    if fits.serving > total and not apart:
        return [fail("memory", text, _CHOOSE)]
    if not fits.fits:
        return [warn("memory", explained(text, phrase("doc_r_small"), here()), _CHOOSE)]
    if not now.fits:
        return [warn("memory", explained(text, phrase("doc_r_busy"), here()), phrase("doc_r_busy_fix"))]
    return [ok("memory", text)]


PROBES = (
    Probe(name="backend", run=backend, seconds=_CHILD_SECONDS),
    Probe(name="model", run=model, seconds=30.0),
    Probe(name="template", run=template, seconds=_CHILD_SECONDS),
    Probe(name="sampling", run=drawn),
    Probe(name="memory", run=room),
)
