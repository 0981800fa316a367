# SPDX-License-Identifier: Apache-2.0
"""The parts of a report, made of what the config tells them."""

from __future__ import annotations

from importlib import import_module

from goodbot.api.plugins import PluginHost
from goodbot.api.registry import registered
from goodbot.api.report import ReportPart, ReportSpec
from goodbot.base.errors import GoodbotError, unexpected
from goodbot.config import Config
from goodbot.config.toml import section


def check(config: Config, plugins: PluginHost) -> None:
    """See at start that each `[reports.NAME]` is of a part that takes it. Raises ConfigError."""
    specs = plugins.reports() if config.reports else {}
    for name in sorted(config.reports):
        spec = registered(specs, name, "part of the report", config.where("reports"), name)
        if spec.settings is None:
            raise config.where("reports").error(name, f"the part {name} of the report has no settings")
        try:
            make(config, spec)
        except GoodbotError:
            raise
        except Exception as error:
            raise config.where("reports").error(name, unexpected(error)) from error


def make(config: Config, spec: ReportSpec) -> ReportPart:
    """A new one, for one report. Raises ConfigError, and what a plugin's raises."""
    module, _, cls = spec.factory.partition(":")
    part = getattr(import_module(module), cls)
    if spec.settings is None:
        return part()
    table = config.reports.get(spec.name, {})
    return part(section(spec.settings, table, config.where(f"reports.{spec.name}")))
