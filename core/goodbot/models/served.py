"""From a model that a server offers to the weights that goodbot can train.

A server's copy cannot be trained: it is quantized, or packed, or in memory that is not ours.
"""

from __future__ import annotations

from pathlib import Path

from goodbot.errors import ConfigError, UsageError
from goodbot.models import catalogue, servers
from goodbot.models.directory import hub_name
from goodbot.models.servers import FoundServer, ServedModel


def source(wanted: str) -> tuple[str, str]:
    """`(a directory or a hub name, a sentence)` for what a person wrote.

    The sentence tells of the server, and is empty where none is meant. Raises GoodbotError where
    no weights are known.
    """
    kind, slash, name = wanted.partition("/")
    if wanted.startswith(("http://", "https://")):
        return _at(wanted)
    if slash and kind in servers.TITLES and kind != "openai":
        return _named(kind, name)
    entry = catalogue.find(wanted)
    if hub_name(wanted) is not None:
        return wanted, ""
    running = _offering(servers.discover(), wanted)
    if running is not None:
        return weights(*running)
    return (entry.name, "") if entry else (wanted, "")


def weights(server: FoundServer, model: ServedModel) -> tuple[str, str]:
    """The weights of a served model, and a sentence on what taking them means.

    Raises ConfigError where none are known.
    """
    found = _weights(model)
    if not found:
        known = (catalogue.find(name) for name in servers.origin(server, model.name))
        found = next((entry.name for entry in known if entry), "")
    if not found and model.parent:
        parent = next((m for m in server.models if m.name == model.parent), None)
        found = _weights(parent or ServedModel(name=model.parent))
    if not found:
        raise ConfigError(
            f"no weights are known that could be trained for {server.title}'s {model.name}: what it "
            "serves is a packed copy. Name the model that it was made from: "
            "`goodbot model use OWNER/NAME`"
        )
    note = f" ({model.note})" if model.note else ""
    memory = f", beside the {model.bytes / 1e9:.1f} GB of its copy" if model.bytes else ""
    derived = (
        f" What {model.name} adds to {model.parent} does not come along." if model.parent else ""
    )
    return found, (
        f"{server.title} serves a copy of {model.name}{note} that cannot be trained. These are the "
        f"same model's weights; goodbot holds them in memory itself{memory}, until it can put "
        f"adapters into {server.title}.{derived}"
    )


def _weights(model: ServedModel) -> str:
    for name in (model.root, model.name):
        if Path(name).is_absolute() and Path(name).is_dir():
            return name
    for name in (model.root, model.name, Path(model.root).name):
        if name and (entry := catalogue.find(name)):
            return entry.name
    # vLLM and mlx_lm.server load hub names themselves. A GGUF or quantized repository is refused
    # later, by what it holds.
    return model.root if hub_name(model.root) else ""


def _at(url: str) -> tuple[str, str]:
    address = servers.checked(url)
    found = servers.discover([address])
    if not found:
        raise ConfigError(f"no model server answers at {address}: start it, and try again")
    [server] = found
    if len(server.models) == 1:
        return weights(server, server.models[0])
    names = ", ".join(f"{server.kind}/{model.name}" for model in server.models[:8]) or "nothing"
    raise UsageError(f"{server.title} offers {names}: say which one to use")


def _named(kind: str, name: str) -> tuple[str, str]:
    title = servers.TITLES[kind]
    running = [server for server in servers.discover() if server.kind == kind]
    if found := _offering(running, name):
        return weights(*found)
    if running:
        names = ", ".join(model.name for server in running for model in server.models[:8])
        raise UsageError(f"{title} does not offer {name!r}; it offers {names or 'nothing'}")
    if entry := catalogue.find(name):
        return entry.name, f"{title} does not run; {entry.name} are the weights of its {name}."
    raise ConfigError(f"{title} does not answer on its usual port: start it, and try again")


def _offering(found: list[FoundServer], name: str) -> tuple[FoundServer, ServedModel] | None:
    for wanted in (name, f"{name}:latest"):
        for server in found:
            for model in server.models:
                if model.name == wanted:
                    return server, model
    return None
