# SPDX-License-Identifier: Apache-2.0
"""The judges that ship with goodbot, for the plugin host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from goodbot.api import address
from goodbot.api.hookspecs import hookimpl
from goodbot.api.judge import Asks, JudgeSpec, server
from goodbot.api.setup import Check, Examined, Probe, fail, ok, warn
from goodbot.base.checks import Range
from goodbot.base.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class NoJudgeSettings:
    """The rule has nothing to set."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VoteSettings:
    """`[judge.settings]` of a judge that asks a model."""

    votes: Annotated[int, Range(least=1, most=9)] = 3
    """So often it is asked of one answer; more than half must agree."""
    seconds: Annotated[float, Range(above=0, most=600)] = 60.0
    """For one vote."""


SPECS = (
    JudgeSpec(name="rule", factory="goodbot.features.judges.rule:RuleJudge", settings=NoJudgeSettings),
    *(
        JudgeSpec(
            name=name, factory="goodbot.features.judges.votes:VoteJudge", settings=VoteSettings, asks=asks
        )
        for name, asks in (("model", Asks.OWN), ("server", Asks.SERVER))
    ),
)


@hookimpl
def register_judge() -> Sequence[JudgeSpec]:
    return SPECS


@hookimpl
def register_probe() -> Probe:
    return Probe(name="the judge", run=_look)


async def _look(examined: Examined) -> Sequence[Check]:
    """Whether its section is in order, and what leaves this machine for it."""
    config = examined.config.judge
    if not config.by:
        return ()
    spec = examined.plugins.judges().get(config.by)
    if spec is None:
        return [fail("judge", f"no judge is named {config.by!r}", "change [judge] by in the config")]
    try:
        examined.config.judge_settings(spec.settings)
    except ConfigError as error:
        return [fail("judge", str(error), "change [judge.settings] in the config")]
    if spec.asks is not Asks.SERVER:
        return [ok("judge", f"{config.by} judges answers that nobody rated")]
    try:
        url = server(config.url, config.model, config.hosts)
    except ValueError as error:
        return [fail("judge", f"url {error}", "change [judge] in the config")]
    if not address.is_here(url):
        told = f"what is judged is sent to {url}: questions, answers and the next messages"
        return [warn("judge", told, "take a server of this machine, if you do not want that")]
    return [ok("judge", f"the model at {url} judges answers that nobody rated")]
