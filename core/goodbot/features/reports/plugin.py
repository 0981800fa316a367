# SPDX-License-Identifier: Apache-2.0
"""The parts of a report that ship with goodbot, for the plugin host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.hookspecs import hookimpl
from goodbot.api.report import ReportSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class FlagsSettings:
    """`[reports.flags]`."""

    insults: tuple[str, ...] = ()
    """Words and phrases; the report lists rated answers with one of them."""


SPECS = tuple(
    ReportSpec(name=name, title=title, factory=f"goodbot.features.reports.{name}:{cls}", settings=settings)
    for name, title, cls, settings in (
        ("teachers", "Who taught what", "Teachers", None),
        ("groups", "How groups of answers were rated", "Groups", None),
        ("versions", "What changed over versions", "VersionTable", None),
        ("pairs", "What versions say to fixed questions", "Pairs", None),
        ("flags", "What looks wrong in rated answers", "Flags", FlagsSettings),
    )
)


@hookimpl
def register_report() -> Sequence[ReportSpec]:
    return SPECS
