# SPDX-License-Identifier: Apache-2.0
"""The feature `webhooks`, for the plugin host: its settings, its command, what the doctor says of it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from goodbot.api.feature import FeatureSpec
from goodbot.api.hookspecs import hookimpl
from goodbot.api.setup import Check, Examined, Probe, ok, warn
from goodbot.base.addresses import require_url

NAME = "webhooks"
KEY = "GOODBOT_WEBHOOKS_KEY"
"""The secret from which each receiver's own is made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Receiver:
    """Who is told: a section `[features.webhooks.to.NAME]`."""

    url: str = ""
    events: tuple[Literal["rating", "training", "version"], ...] = ("rating", "training", "version")
    local: bool = False
    private_chats: bool = False
    words: bool = False

    def __post_init__(self) -> None:
        require_url(self.url, local=self.local)
        if not self.events:
            raise ValueError('events is empty: name some of "rating", "training" and "version"')


@dataclass(frozen=True, kw_only=True, slots=True)
class WebhooksSettings:
    """The section `[features.webhooks]`."""

    to: Mapping[str, Receiver] = field(default_factory=dict[str, Receiver])
    """Who is told, each under a name of your own: `[features.webhooks.to.NAME]`."""

    def __post_init__(self) -> None:
        for name in self.to:
            if not name.replace("-", "_").isidentifier():
                raise ValueError(f"{name!r} cannot be a receiver's name: take letters, digits, - and _")


@hookimpl
def register_feature() -> FeatureSpec:
    return FeatureSpec(
        name=NAME,
        factory="goodbot.features.webhooks.outbox:Webhooks",
        settings=WebhooksSettings,
        secrets=(KEY,),
        requires=("aiohttp",),
    )


@hookimpl
def register_commands(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add `goodbot webhooks`."""
    parser = subparsers.add_parser(
        NAME, help="which programs are told what happens, and whether they take it"
    )
    parser.set_defaults(group="people", run="goodbot.features.webhooks.cli:main")
    parser.add_argument("deed", nargs="?", choices=("list", "test", "key", "skip"), default="list")
    parser.add_argument("name", nargs="?", help="test, key or skip: of which receiver")
    parser.add_argument("--json", action="store_true", help="one JSON object")


@hookimpl
def register_probe() -> Probe:
    return Probe(name=NAME, run=_probe)


async def _probe(examined: Examined) -> Sequence[Check]:
    """What the running goodbot says of each receiver."""
    if NAME not in examined.config.features or examined.daemon is None:
        return []
    parts: Mapping[str, str] = examined.daemon.get("connectors") or {}
    wrong = [
        warn(part, text, "goodbot webhooks") for part, text in parts.items() if part.startswith(f"{NAME}.")
    ]
    if wrong or NAME in parts:  # then all of it rests: `doctor` says so of every feature
        return wrong
    return [ok(NAME, "no receiver has failed for long; `goodbot webhooks` lists them")]
