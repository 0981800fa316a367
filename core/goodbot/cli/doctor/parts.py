# SPDX-License-Identifier: Apache-2.0
"""All probes, in the order in which a person reads them: what others stand on comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

from goodbot.api.setup import Check, Examined, Probe, fail
from goodbot.api.texts.terminal import phrase
from goodbot.base.errors import unexpected
from goodbot.cli.doctor import (
    connectors,
    daemon,
    data,
    files,
    machine,
    model,
    model_server,
    network,
    settings,
)


def probes(examined: Examined, wrong: Sequence[Check]) -> list[Probe]:
    """Goodbot's own and the plugins'. `wrong` is what `prepare` found.

    With a config that cannot be read, what depends on it is left out: it would only mislead.
    """
    said = {check.part for check in wrong}
    readable = "config" not in said
    known = [
        *(settings.PROBES if readable else ()),
        *files.PROBES,
        *data.PROBES,
        *machine.PROBES,
        *(probe for probe in daemon.PROBES if probe.name not in said),
    ]
    if not readable:
        return known
    return [
        *known,
        *model.PROBES,
        *model_server.PROBES,
        *([] if "tokens" in said else connectors.probes(examined)),
        *network.PROBES,
        *of_plugins(examined),
    ]


def of_plugins(examined: Examined) -> list[Probe]:
    """The plugins' probes; where a plugin fails to give its own, one that says so."""
    found: list[Probe] = []
    for plugin, offer in examined.plugins.probes():
        try:
            found += [_signed(plugin, probe) for probe in _offered(offer)]
        except Exception as error:
            found.append(_broken(plugin, unexpected(error)))
    return found


def _offered(offer: Callable[[], object]) -> list[Probe]:
    given = offer()
    several = isinstance(given, (list, tuple))
    probes = list(cast("Iterable[object]", given) if several else (given,))
    for probe in probes:
        if not isinstance(probe, Probe):
            raise TypeError(f"register_probe returned {type(probe).__name__}, not Probe")
    return cast("list[Probe]", probes)


def _signed(plugin: str, probe: Probe) -> Probe:
    """The same, and each of its lines says whose it is."""

    async def run(examined: Examined) -> Sequence[Check]:
        checks = await probe.run(examined)
        return [replace(check, part=f"{plugin}: {check.part}") for check in checks]

    return replace(probe, name=f"{plugin}: {probe.name}", run=run)


def _broken(plugin: str, reason: str) -> Probe:
    async def run(_: Examined) -> Sequence[Check]:
        return [fail(plugin, phrase("doc_probe", why=reason))]

    return Probe(name=plugin, run=run)
