# SPDX-License-Identifier: Apache-2.0
"""From a model that a server offers to the weights that goodbot can train.

A server's copy cannot be trained: it is quantized, or packed, or in memory that is not ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from goodbot.api.server import ServerSpec
from goodbot.api.survey import FoundServer, ListedModel, Survey
from goodbot.base.errors import ConfigError, UsageError
from goodbot.base.worded import Worded
from goodbot.inference.models import catalogue, servers, serving
from goodbot.inference.models.directory import hub_name
from goodbot.inference.servers.plugin import SPECS


class TrainableWeights(NamedTuple):
    """What can be trained."""

    source: str
    """A directory or a hub name."""
    note: str = ""
    """Sentences that tell of the server; empty where none is meant."""
    serving: Mapping[str, str] = {}
    """`[serving]` with which the server goes on answering; empty where it takes no adapters."""


def source(wanted: str, specs: Collection[ServerSpec] = SPECS) -> TrainableWeights:
    """The weights for what a person wrote; `specs` are the drivers that there are.

    Raises GoodbotError where none are known.
    """
    kind, slash, name = wanted.partition("/")
    if wanted.startswith(("http://", "https://")):
        return _at(wanted, specs)
    survey = servers.surveys(specs).get(kind) if slash else None
    if survey is not None and survey.priority:
        return _named(survey, name, specs)
    entry = catalogue.find(wanted)
    if hub_name(wanted) is not None:
        return TrainableWeights(wanted)
    running = _offering(servers.discover(specs=specs), wanted)
    if running is not None:
        return weights(*running, specs)
    return TrainableWeights(entry.name if entry else wanted)


def weights(
    server: FoundServer, model: ListedModel, specs: Collection[ServerSpec] = SPECS
) -> TrainableWeights:
    """The weights of a served model, and what taking them means. Raises ConfigError where none are known."""
    found = _weights(model)
    if not found:
        known = (catalogue.find(name) for name in servers.origin(server, model.name))
        found = next((entry.name for entry in known if entry), "")
    if not found and model.parent:
        parent = next((m for m in server.models if m.name == model.parent), None)
        found = _weights(parent or ListedModel(name=model.parent))
    if not found:
        unknown = (
            "no weights are known that could be trained for {server}'s {model}: what it serves is a packed "
            "copy. Name the model that it was made from: `goodbot model use OWNER/NAME`"
        )
        raise ConfigError(Worded(unknown, server=server.title, model=model.name))
    note = f" ({model.note})" if model.note else ""
    memory = f", beside the {model.bytes / 1e9:.1f} GB of its copy" if model.bytes else ""
    derived = f" What {model.name} adds to {model.parent} does not come along." if model.parent else ""
    proposed = serving.proposed(server, model.name, specs)
    return TrainableWeights(
        found,
        f"{server.title} serves a copy of {model.name}{note} that cannot be trained. These are the "
        f"same model's weights; goodbot trains them, and holds them in memory itself{memory}."
        f"{derived} {_goes_on(server, proposed)}",
        proposed,
    )


def _goes_on(server: FoundServer, proposed: Mapping[str, str]) -> str:
    """How the server may go on answering."""
    if proposed:
        return (
            f"{server.title} can go on answering instead, with each version put into it: "
            f"{serving.written(proposed)}."
        )
    return server.survey.otherwise(server)


def _weights(model: ListedModel) -> str:
    for name in (model.root, model.name):
        if Path(name).is_absolute() and Path(name).is_dir():
            return name
    for name in (model.root, model.name, Path(model.root).name):
        if name and (entry := catalogue.find(name)):
            return entry.name
    # vLLM and mlx_lm.server load hub names themselves. A GGUF or quantized repository is refused
    # later, by what it holds.
    return model.root if hub_name(model.root) else ""


def _at(url: str, specs: Collection[ServerSpec]) -> TrainableWeights:
    address = servers.checked(url)
    found = servers.discover([address], specs, named=True)
    if not found:
        silent = "no model server answers at {place}: start it, and try again"
        raise ConfigError(Worded(silent, place=address))
    [server] = found
    if len(server.models) == 1:
        return weights(server, server.models[0], specs)
    names = ", ".join(f"{server.kind}/{model.name}" for model in server.models[:8]) or Worded("nothing")
    several = "{server} offers {names}: say which one to use"
    raise UsageError(Worded(several, server=server.title, names=names))


def _named(survey: Survey, name: str, specs: Collection[ServerSpec]) -> TrainableWeights:
    title = survey.title
    running = [server for server in servers.discover(specs=specs) if server.kind == survey.kind]
    if not running:  # it may be busy
        there = servers.discover(servers.usual(known=[survey]), specs, named=True)
        running = [server for server in there if server.kind == survey.kind]
    if found := _offering(running, name):
        return weights(*found, specs)
    if running:
        names = ", ".join(model.name for server in running for model in server.models[:8])
        other = "{server} does not offer {name}; it offers {names}"
        names = names or Worded("nothing")
        raise UsageError(Worded(other, server=title, name=repr(name), names=names))
    if entry := catalogue.find(name):
        note = f"{title} does not run; {entry.name} are the weights of its {name}."
        return TrainableWeights(entry.name, note)
    silent = "{server} does not answer on its usual port: start it, and try again"
    raise ConfigError(Worded(silent, server=title))


def _offering(found: list[FoundServer], name: str) -> tuple[FoundServer, ListedModel] | None:
    for wanted in (name, f"{name}:latest"):
        for server in found:
            for model in server.models:
                if model.name == wanted:
                    return server, model
    return None
