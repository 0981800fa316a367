# SPDX-License-Identifier: Apache-2.0
"""The parts of a report that ship with goodbot, for the plugin host."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.hookspecs import hookimpl
from goodbot.api.report import ReportSpec

SPECS = tuple(
    ReportSpec(name=name, title=title, factory=f"goodbot.features.reports.{name}:{cls}")
    for name, title, cls in (
        ("teachers", "Who taught what", "Teachers"),
        ("groups", "How groups of answers were rated", "Groups"),
        ("versions", "What changed over versions", "VersionTable"),
        ("pairs", "What versions say to fixed questions", "Pairs"),
        ("flags", "What looks wrong in rated answers", "Flags"),
    )
)


@hookimpl
def register_report() -> Sequence[ReportSpec]:
    return SPECS
