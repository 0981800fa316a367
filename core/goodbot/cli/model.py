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
from goodbot.api.estimate import MOST
from goodbot.api.progress import progress_line
from goodbot.api.sentences import clause
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
            raise UsageError(f"type `goodbot model use {arguments.name}` to take it")
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
        if not agrees("Download it?", yes=arguments.yes):
            raise UsageError("nothing was downloaded and nothing was changed")
    return _obtained(proposal, arguments).reference


def proposed(arguments: argparse.Namespace, names: Sequence[str]) -> Proposal:
    """What `arguments.name` stands for, with its cost on these backends. Raises GoodbotError."""
    if arguments.name == "auto":
        found = choose.propose(arguments.home, names)
    else:
        drivers = model_servers(config.load(arguments.home, arguments.config))
        found = choose.choose(arguments.name, arguments.home, names[0], drivers=drivers)
    if found.unusable:
        raise ConfigError(f"goodbot cannot take {found.name}: {found.unusable}")
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
        raise UsageError(
            "say which: `goodbot model use auto`, a name in the hub, a directory or a server's model"
        )
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
    question = "Download it and use it?" if proposal.download else "Use it?"
    if not agrees(question, yes=arguments.yes):
        _say("Nothing was downloaded and nothing was changed.")
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
    if not arguments.json and not agrees("Use the tiny demo model?", yes=arguments.yes):
        _say("Nothing was changed.")
        return 1
    if taken:
        file.set("model.path", DEMO)
        file.save()
    text = f"The tiny demo model will answer: [model] path = {DEMO!r}"
    print_answer({"text": text, "data": {"name": DEMO, "taken": taken}}, as_json=arguments.json)
    return 0


def _obtained(proposal: Proposal, arguments: argparse.Namespace) -> Obtained:
    with progress_line(quiet=arguments.json) as progress:
        try:
            return obtain(proposal.source, arguments.home, progress=progress)
        except KeyboardInterrupt:
            raise StoppedError(
                "stopped, and nothing was changed. What has arrived is kept: the same command goes "
                "on from there"
            ) from None


def _after(arguments: argparse.Namespace, got: Obtained) -> list[str]:
    lines = [f"{got.name} will answer: [model] path = {got.reference!r}"]
    try:
        status = control.call(arguments.home, "status", [], lambda _: None)
    except GoodbotError:
        status = None
    if status is None:
        lines.append("`goodbot run` starts it.")
    else:
        restart = _restart(arguments.home, status["data"].get("pid"))
        lines.append(f"The running goodbot takes it when it starts anew: {restart}")
    return lines


def _restart(home: Path, pid: object) -> str:
    """How the running goodbot is started anew, as a command."""
    from goodbot.cli import service

    try:
        status = service.status(home)
    except GoodbotError:
        return f"`kill {pid}`, then `goodbot run`"
    if status.active and status.manager == "systemd":
        return f"`systemctl --user restart {status.name}`"
    if status.active and status.manager == "launchd":
        return f"`launchctl kickstart -k gui/{os.geteuid()}/{status.name}`"
    return f"`kill {pid}`, then `goodbot run`"


def left_behind(home: Path, before: object, proposal: Proposal) -> str:
    """What does not come along from the model that is configured now; empty where nothing is lost.

    It is said before the question: once the config names a model there is nothing to switch to.
    """
    if not before or before == proposal.source or not (home / DATABASE).exists():
        return ""
    return (
        f"What was learnt on {before} stays with it. To take your ratings along, say no here and "
        f"then `goodbot model switch {shlex.quote(proposal.source)}`."
    )


def described(proposal: Proposal) -> str:
    """A proposal for people: a few lines, then the others that fit."""
    cost = proposal.estimate
    size = f"{_count(proposal.parameters)} parameters, " if proposal.parameters else ""
    lines = [
        f"{proposal.name}  ({size}{proposal.backend} on {_DEVICES[proposal.device]})",
        f"  {_download(proposal)}",
        f"  licence    {proposal.licence}{', gated: it needs a token' if proposal.gated else ''}",
    ]
    if cost is None:
        lines.append("  memory     not known for this architecture")
    else:
        lines += [
            f"  memory     {gigabytes(cost.serving)} to serve + {gigabytes(cost.usual)} to train "
            f"({gigabytes(cost.training)} with long turns), of {gigabytes(cost.limit)} that may be used",
            f"  speed      about {seconds(cost.answer)} an answer, about {seconds(cost.round)} a "
            "training on 40 ratings of short questions",
        ]
        if not cost.fits:
            lines.append("  It does not fit: training may be stopped for lack of memory.")
        elif cost.tokens < MOST:
            lines.append(f"  It learns from turns of up to {cost.tokens} tokens here.")
    if proposal.doubt:
        lines.append(f"  Training may go wrong: {proposal.doubt}.")
    if proposal.why:
        lines += ["", f"{clause(proposal.why)}."]
    return "\n".join([*lines, *_table(proposal)])


_DEVICES = {"cpu": "the processor", "cuda": "the GPU", "metal": "the GPU"}


def _download(proposal: Proposal) -> str:
    if not proposal.download:
        return "download   nothing: it is on this disk"
    return f"download   {gigabytes(proposal.download)}; {gigabytes(proposal.disk)} are free on the disk"


def _table(proposal: Proposal) -> list[str]:
    if len(proposal.options) < 2:
        return []
    rows = ["", "All that fit:"]
    rows.append(f"  {'model':38} {'download':>9} {'memory':>8} {'answer':>9} {'training':>9}")
    for option in proposal.options:
        cost = option.estimate
        rows.append(
            f"  {option.name:38} {gigabytes(option.bytes):>9} "
            f"{gigabytes(cost.serving + cost.usual):>8} {seconds(cost.answer):>9} "
            f"{seconds(cost.round):>9}  {option.licence}{', gated' if option.gated else ''}"
        )
    return rows


def _count(number: int) -> str:
    return f"{number / 1e9:.1f} billion" if number >= 1e9 else f"{number / 1e6:.3g} million"


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
