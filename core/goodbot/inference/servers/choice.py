# SPDX-License-Identifier: Apache-2.0
"""The configured server: found among the plugins', imported, and made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path

from goodbot.api import address
from goodbot.api.backend import BackendSpec
from goodbot.api.model import ResolvedModel
from goodbot.api.registry import registered
from goodbot.api.server import AdapterFormat, Server, ServerParts, ServerSpec
from goodbot.base.clock import Clock
from goodbot.base.errors import MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.base.worded import Worded, said_by
from goodbot.config import Config
from goodbot.config.secrets import Secrets, SecretStore

NO_ADAPTERS = (
    "it takes no adapters, so nothing that is trained could answer. Let goodbot serve the model "
    '([serving] server = "embedded"), and give other servers whole models with '
    "`goodbot adapters export --fused`"
)
_BY_HAND = {"lmstudio": "LM Studio", "localai": "LocalAI", "tgi": "TGI"}
"""What people look for, and cannot take an adapter while it runs."""
KEY = "GOODBOT_SERVER_KEY"
"""The secret that a server may ask for (vLLM's `--api-key`)."""


def choose(config: Config, specs: Mapping[str, ServerSpec]) -> ServerSpec:
    """What `[serving] server` names. Raises ConfigError, and MissingExtraError if it is not installed."""
    wanted, where = config.serving.server, config.where("serving")
    if wanted not in specs and (by_hand := _BY_HAND.get(wanted.lower().replace("-", ""))):
        cannot = (
            "{server} cannot be used while goodbot learns: {why}. To have it answer, and collect ratings "
            'without learning from them: server = "openai" and its url'
        )
        raise where.error("server", Worded(cannot, server=by_hand, why=Worded(NO_ADAPTERS)))
    spec = registered(specs, wanted, "model server", where, "server")
    if missing_modules(spec.requires):
        raise MissingExtraError(Worded("the {name} server", name=wanted), spec.extra or wanted)
    if config.serving.url and not spec.url:
        none = Worded("the {name} server has no address: leave url out", name=wanted)
        raise where.error("url", none)
    try:
        url_of(config, spec)
    except ValueError as error:
        raise where.error("url", Worded("{name} {what}", name="url", what=said_by(error))) from error
    return spec


def objection(spec: ServerSpec) -> str:
    """Why a training would be for nothing with this server, in one sentence; empty if it would not."""
    if spec.adapters is not AdapterFormat.NONE:
        return ""
    return Worded("no training with {name}: {why}", name=spec.name, why=Worded(NO_ADAPTERS))


def url_of(config: Config, spec: ServerSpec) -> str:
    """Where the server listens, checked; empty for one without an address. Raises ValueError."""
    url = config.serving.url or spec.url
    return address.checked(url, config.serving.hosts) if url else ""


def make(
    spec: ServerSpec,
    config: Config,
    *,
    model: ResolvedModel,
    backend: BackendSpec,
    clock: Clock,
    environ: Mapping[str, str],
    adapters: Path | None = None,
    convert: Callable[[Path, AdapterFormat], Awaitable[Path]],
) -> Server:
    """A driver on a base model, of a config that `choose` has seen; it is told of what lies in `adapters`.

    Raises ConfigError for its settings.
    """
    key = Secrets((KEY,), SecretStore(config.home).environment([KEY])).get(KEY)
    parts = ServerParts(
        model=model,
        backend=backend,
        url=url_of(config, spec),
        clock=clock,
        key=key,
        served_model=config.serving.model,
        home=config.home / "serving" / spec.name,
        environ=environ,
        adapters=adapters or config.home / "adapters",
        path_on_server=config.adapters.path_on_server,
        convert=convert,
        drawn_with=config.serving.drawn_with,
    )
    module, _, cls = spec.factory.partition(":")
    made: Server = getattr(import_module(module), cls)(config.serving_settings(spec.settings), parts)
    return made
