# SPDX-License-Identifier: Apache-2.0
"""`goodbot doctor`: a probe for every moving part. It starts nothing and changes nothing.

`preparation` collects what the probes may look at, `runner` runs them side by side, each under its own
time limit; `parts` lists them in the order in which a person reads them. The modules `settings`,
`files`, `data`, `machine`, `model`, `daemon`, `connectors` and `network` hold them by what they
look at; `security` and `serving` are the two long answers, `doctor --security` and `doctor serving`.
"""

from __future__ import annotations

from goodbot.cli.doctor.preparation import prepare
from goodbot.cli.doctor.runner import exit_code, run

__all__ = ["exit_code", "prepare", "run"]
