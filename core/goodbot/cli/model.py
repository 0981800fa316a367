# SPDX-License-Identifier: Apache-2.0
"""`goodbot model`: what is here to answer with, and `goodbot model use`: take one of them.

What is proposed, found and downloaded is in `goodbot.inference.models`; here it is shown and asked about.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goodbot import config
from goodbot.api import control
from goodbot.api.estimate import MOST, ModelEstimate
from goodbot.api.progress import progress_line
from goodbot.api.sentences import clause, sentence
from goodbot.api.texts import beside, commas, figure
from goodbot.api.texts.terminal import here, phrase, rephrased
from goodbot.base.columns import padded, table, wide
from goodbot.base.errors import ConfigError, GoodbotError, UsageError
from goodbot.base.printing import print_answer, say
from goodbot.cli.asking import agrees
from goodbot.config.file import ConfigFile
from goodbot.config.layout import DATABASE
from goodbot.inference.models import choose
from goodbot.inference.models.directory import DEMO
from goodbot.inference.models.obtain import Obtained, obtain
from goodbot.inference.models.proposal import Proposal

if TYPE_CHECKING:
    from goodbot.api.plugins import PluginHost
    from goodbot.api.server import ServerSpec


class StoppedError(GoodbotError):
    """Ctrl-C while something was coming."""

    exit_code = 130


def main(arguments: argparse.Namespace) -> int:
    """List, use or switch; 1 when the person says no."""
    if arguments.action == "switch":
        from goodbot.cli import switch

        return switch.main(arguments)
    if arguments.action == "list":
        if arguments.name:
            raise UsageError(phrase("model_take", name=arguments.name))
        from goodbot.cli import model_list

        return model_list.main(arguments)
    return _use(arguments)


def fetch(arguments: argparse.Namespace) -> str:
    """Bring the weights that `arguments.name` means; what `[model] path` would hold.

    Shows the cost and asks first. Raises GoodbotError, also when the person says no.
    """
    names = backends(config.load(arguments.home, arguments.config))
    proposal = proposed(arguments, names[:1])  # a switch stays on the backend
    if proposal.download:
        if not arguments.json:
            _say(described(proposal))
        if not agrees(phrase("model_ask_download"), yes=arguments.yes):
            raise UsageError(phrase("model_nothing"))
    return _obtained(proposal, arguments).reference


def proposed(arguments: argparse.Namespace, names: Sequence[str]) -> Proposal:
    """What `arguments.name` stands for, with its cost on these backends. Raises GoodbotError."""
    if arguments.name == "auto":
        found = choose.propose(arguments.home, names)
    else:
        drivers = model_servers(config.load(arguments.home, arguments.config))
        found = choose.choose(arguments.name, arguments.home, names[0], drivers=drivers)
    if found.unusable:
        raise ConfigError(phrase("setup_model_unusable", name=found.name, why=rephrased(found.unusable)))
    return found


def backends(settings: config.Config) -> list[str]:
    """The training backends that may be used, the preferred one first. Raises GoodbotError."""
    from goodbot.api.registry import automatic_backends, choose_backend

    specs = _plugins(settings).backends()
    chosen = choose_backend(specs, settings.training.backend)
    if settings.training.backend != "auto":
        return [chosen.name]
    return [spec.name for spec in automatic_backends(specs)]


def model_servers(settings: config.Config) -> Collection[ServerSpec]:
    """The drivers of model servers that there are, those of plugins too."""
    return _plugins(settings).servers().values()


def _plugins(settings: config.Config) -> PluginHost:
    from goodbot.api.plugins import PluginHost

    plugins = PluginHost()
    plugins.load_entry_points(settings.plugins.enable)
    return plugins


def _use(arguments: argparse.Namespace) -> int:
    if not arguments.name:
        raise UsageError(phrase("model_which"))
    file = ConfigFile(arguments.home, arguments.config)
    before = file.get("model.path")
    if arguments.name == DEMO:
        return _use_demo(arguments, file)
    settings = config.load(arguments.home, arguments.config)
    proposal = proposed(arguments, backends(settings))
    if arguments.json and not arguments.yes:
        print_answer({"data": {**_data(proposal), "taken": False}}, as_json=True)
        return 0
    if not arguments.json:
        _say(described(proposal))
        if note := left_behind(arguments.home, before, proposal):
            _say(note)
    question = phrase("model_ask_both" if proposal.download else "model_ask")
    if not agrees(question, yes=arguments.yes):
        _say(sentence(phrase("model_nothing"), here()))
        return 1
    ask = choose.answering(proposal, file.get("serving.server"), model_servers(settings))
    goes_on = bool(ask) and not arguments.yes and agrees(ask, yes=False)
    got = _obtained(proposal, arguments)
    choose.settle(file, proposal, got)
    if goes_on:
        choose.go_on_answering(file, proposal.serving)
    file.save()
    text = "\n".join(_after(arguments, got))
    data = {**_data(proposal), "taken": True, "path": str(got.path), "reference": got.reference}
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0


def _use_demo(arguments: argparse.Namespace, file: ConfigFile) -> int:
    """The tiny model comes with goodbot: there is nothing to look up, to download or to fit."""
    taken = not arguments.json or arguments.yes
    if not arguments.json and not agrees(phrase("model_demo_ask"), yes=arguments.yes):
        _say(phrase("not_changed"))
        return 1
    if taken:
        file.set("model.path", DEMO)
        file.save()
    text = phrase("model_demo", path=repr(DEMO))
    print_answer({"text": text, "data": {"name": DEMO, "taken": taken}}, as_json=arguments.json)
    return 0


def _obtained(proposal: Proposal, arguments: argparse.Namespace) -> Obtained:
    with progress_line(quiet=arguments.json) as progress:
        try:
            return obtain(proposal.source, arguments.home, progress=progress)
        except KeyboardInterrupt:
            raise StoppedError(phrase("model_stopped")) from None


def _after(arguments: argparse.Namespace, got: Obtained) -> list[str]:
    lines = [phrase("model_will", name=got.name, path=repr(got.reference))]
    try:
        status = control.call(arguments.home, "status", [])
    except GoodbotError:
        status = None
    if status is None:
        lines.append(phrase("model_run"))
    else:
        restart = _restart(arguments.home, status["data"].get("pid"))
        lines.append(phrase("model_anew", command=restart))
    return lines


def _restart(home: Path, pid: object) -> str:
    """How the running goodbot is started anew, as a command."""
    from goodbot.cli import service

    try:
        status = service.status(home)
    except GoodbotError:
        return phrase("model_kill", pid=pid)
    if status.active and status.manager == "systemd":
        return f"`systemctl --user restart {status.name}`"
    if status.active and status.manager == "launchd":
        return f"`launchctl kickstart -k gui/{os.geteuid()}/{status.name}`"
    return phrase("model_kill", pid=pid)


def left_behind(home: Path, before: object, proposal: Proposal) -> str:
    """What does not come along from the model that is configured now; empty where nothing is lost.

    It is said before the question: once the config names a model there is nothing to switch to.
    """
    if not before or before == proposal.source or not (home / DATABASE).exists():
        return ""
    return phrase("model_stays", name=before, source=shlex.quote(proposal.source))


def described(proposal: Proposal) -> str:
    """A proposal for people: a few lines, then the others that fit."""
    cost = proposal.estimate
    size = _count(proposal.parameters) if proposal.parameters else ""
    on = phrase(f"model_on_{'cpu' if proposal.device == 'cpu' else 'gpu'}", backend=proposal.backend)
    gated = phrase("model_gated", licence=proposal.licence)
    rows = {
        "model_download": _download(proposal),
        "model_licence": gated if proposal.gated else proposal.licence,
        "model_memory": _memory(cost),
    }
    if cost is not None:
        times = {"answer": seconds(cost.answer), "training": seconds(cost.round)}
        rows["model_speed"] = phrase("model_takes", **times)
    lines = [beside(f"{proposal.name} ", commas(here(), size, on), here())]
    lines += table({f"  {phrase(name)}  ": text for name, text in rows.items()}, least=13)
    if cost is not None and not cost.fits:
        lines.append(f"  {phrase('model_large')}")
    elif cost is not None and cost.tokens < MOST:
        lines.append(f"  {phrase('model_turns', tokens=cost.tokens)}")
    if proposal.doubt:
        lines.append(f"  {phrase('model_doubt', why=rephrased(proposal.doubt))}")
    if proposal.why:
        lines += ["", f"{clause(proposal.why)}."]
    return "\n".join([*lines, *_table(proposal)])


def _memory(cost: ModelEstimate | None) -> str:
    if cost is None:
        return phrase("model_no_estimate")
    sizes = {"serving": cost.serving, "usual": cost.usual, "most": cost.training, "limit": cost.limit}
    return phrase("model_needs", **{name: gigabytes(count) for name, count in sizes.items()})


def _download(proposal: Proposal) -> str:
    if not proposal.download:
        return phrase("model_here")
    return phrase("model_room", size=gigabytes(proposal.download), free=gigabytes(proposal.disk))


def _table(proposal: Proposal) -> list[str]:
    if len(proposal.options) < 2:
        return []
    names = ("model_head_name", "model_download", "model_memory", "model_head_answer", "model_head_training")
    rows = [[*map(phrase, names), ""]]
    for option in proposal.options:
        cost = option.estimate
        sizes = (gigabytes(option.bytes), gigabytes(cost.serving + cost.usual))
        gated = phrase("model_gated_word") if option.gated else ""
        licence = commas(here(), option.licence, gated)
        rows.append([option.name, *sizes, seconds(cost.answer), seconds(cost.round), licence])
    return ["", phrase("model_all"), *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    """One line of the table; numbers stand to the right."""
    name, *numbers, licence = cells
    columns = [" " * (width - wide(cell)) + cell for width, cell in zip((9, 8, 9, 9), numbers, strict=True)]
    return f"  {padded(name, 38)} {' '.join(columns)}  {licence}".rstrip()


def _count(number: int) -> str:
    if number >= 1e9:
        return phrase("model_billions", count=figure(number / 1e9, here(), digits=1))
    return phrase("model_millions", count=f"{number / 1e6:.3g}")


def gigabytes(count: float) -> str:
    """Bytes for people."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def seconds(count: float) -> str:
    """A duration for people, rounded as an estimate deserves."""
    if count < 90:
        return f"{max(1, round(count))} s"
    return f"{round(count / 60)} min" if count < 5400 else f"{count / 3600:.1f} h"


def _data(proposal: Proposal) -> dict[str, Any]:
    return dataclasses.asdict(proposal)


def _say(text: str) -> None:
    say(text, file=sys.stderr, flush=True)
