# SPDX-License-Identifier: Apache-2.0
"""The configuration: one TOML file → frozen sections. Unknown keys and wrong types are errors.

Tokens are never in the file (see `goodbot.config.secrets`). `sections` lists what can be set, `toml` reads
it, `file` changes it for a person.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from goodbot.base import cage
from goodbot.base.errors import ConfigError
from goodbot.base.worded import Worded
from goodbot.config.database import StoreConfig
from goodbot.config.sections import (
    AdaptersConfig,
    EncryptionConfig,
    Grants,
    HttpConfig,
    JudgeConfig,
    LogConfig,
    ModelConfig,
    PluginsConfig,
    PrivacyConfig,
    SamplingConfig,
    ServingConfig,
    TrainingConfig,
)
from goodbot.config.toml import Where, invalid, read, section

__all__ = [
    "AdaptersConfig",
    "Config",
    "EncryptionConfig",
    "Grants",
    "HttpConfig",
    "JudgeConfig",
    "LogConfig",
    "ModelConfig",
    "PluginsConfig",
    "PrivacyConfig",
    "SamplingConfig",
    "ServingConfig",
    "StoreConfig",
    "TrainingConfig",
    "default_home",
    "encryptions",
    "load",
    "parse",
    "stores",
]

T = TypeVar("T")

encryptions: dict[Path, EncryptionConfig] = {}
"""What `load` has found of it, by state directory, for `vault`: who opens a file there has only its path."""
stores: dict[Path, StoreConfig] = {}
"""Likewise of the store."""
_elsewhere: set[Path] = set()
"""State directories whose config was named; a `config.toml` in them does not count."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that was configured. `home` is the state directory."""

    home: Path
    path: Path | None = None
    model: ModelConfig = field(default_factory=ModelConfig)
    serving: ServingConfig = field(default_factory=ServingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    judge: JudgeConfig = field(default_factory=JudgeConfig)
    adapters: AdaptersConfig = field(default_factory=AdaptersConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    encryption: EncryptionConfig = field(default_factory=EncryptionConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    http: HttpConfig = field(default_factory=HttpConfig)
    log: LogConfig = field(default_factory=LogConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)
    connectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    tracking: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """`[tracking.NAME]`: the experiment trackers that are on, each with its own settings."""
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """`[features.NAME]`: what runs beside the bot, each with its own settings."""
    filters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """`[filters.NAME]`: what no training may take, each with its own settings."""
    reports: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """`[reports.NAME]`: what a part of the report is told, each with its own settings."""
    source: str = field(default="", repr=False)

    def connector(self, name: str, settings: type[T]) -> tuple[Grants, T]:
        """A connector's section: its grants, and its own settings."""
        table = dict(self.connectors.get(name, {}))
        names = {f.name for f in dataclasses.fields(Grants)}
        where = self.where(f"connectors.{name}")
        grants = {key: table.pop(key) for key in list(table) if key in names}
        return (section(Grants, grants, where), section(settings, table, where, also=names))

    def where(self, name: str) -> Where:
        """A section of the file, to say where something is wrong."""
        return Where(self.path, self.source, name)

    def training_settings(self, settings: type[T]) -> T:
        """`[training.settings]` as the backend's own frozen dataclass."""
        return section(settings, self.training.settings, self.where("training.settings"))

    def serving_settings(self, settings: type[T]) -> T:
        """`[serving.settings]` as the server's own frozen dataclass."""
        return section(settings, self.serving.settings, self.where("serving.settings"))

    def judge_settings(self, settings: type[T]) -> T:
        """`[judge.settings]` as the judge's own frozen dataclass."""
        return section(settings, self.judge.settings, self.where("judge.settings"))


_SECTIONS = {
    "model": ModelConfig,
    "serving": ServingConfig,
    "training": TrainingConfig,
    "judge": JudgeConfig,
    "adapters": AdaptersConfig,
    "privacy": PrivacyConfig,
    "encryption": EncryptionConfig,
    "store": StoreConfig,
    "http": HttpConfig,
    "log": LogConfig,
    "plugins": PluginsConfig,
}
_NAMED_SECTIONS = ("connectors", "tracking", "features", "filters", "reports")
"""Sections of sections, one for each plugin that the owner switches on or tells something."""


def default_home() -> Path:
    """`$GOODBOT_HOME`, else `~/.goodbot`."""
    return Path(os.environ.get("GOODBOT_HOME") or Path.home() / ".goodbot").expanduser().absolute()


def load(home: Path, path: Path | None = None) -> Config:
    """Read `path`, by default `home/config.toml`; a missing default file means all defaults.

    Raises ConfigError with the file, the line and the nearest valid key.
    """
    cage.hidden.add(str(home))
    explicit = path is not None
    path = path or home / "config.toml"
    try:
        source = read(path)
    except FileNotFoundError:
        if explicit:
            raise ConfigError(Worded("there is no such file"), path=path) from None
        found = Config(home=home)
    else:
        found = parse(source, home=home, path=path)
    if explicit:
        _elsewhere.add(home.absolute())
    if explicit or home.absolute() not in _elsewhere:
        encryptions[home.absolute()] = found.encryption
        stores[home.absolute()] = found.store
    return found


def parse(source: str, *, home: Path, path: Path | None = None) -> Config:
    """The configuration in a TOML text."""
    try:
        table = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise invalid(error, source, path) from error
    bare = Config(home=home, path=path, source=source)
    sections: dict[str, Any] = {}
    for name, value in table.items():
        if name in _NAMED_SECTIONS:
            _require_tables(bare, name, value)
            sections[name] = value
        elif name in _SECTIONS:
            if not isinstance(value, dict):
                raise bare.where("").error(name, Worded("{name} must be a section: [{name}]", name=name))
            table_ = typing.cast("dict[str, Any]", value)
            sections[name] = section(_SECTIONS[name], table_, bare.where(name))
        else:
            raise bare.where("").unknown(name, [*_SECTIONS, *_NAMED_SECTIONS])
    config = dataclasses.replace(bare, **sections)
    _check(config)
    return config


def _require_tables(config: Config, section: str, value: object) -> None:
    if not isinstance(value, dict):
        wrong = Worded("{section} must be sections: [{section}.NAME]", section=section)
        raise config.where("").error(section, wrong)
    for name, table in typing.cast("dict[str, object]", value).items():
        if not isinstance(table, dict):
            wrong = Worded("write it as a section: [{section}.{name}]", section=section, name=name)
            raise config.where(section).error(name, wrong)


def _check(config: Config) -> None:
    """What one section or field cannot tell alone."""
    if not 0 < config.training.held_out < config.training.min_ratings:
        wrong = Worded("held_out must lie between 1 and min_ratings - 1")
        raise config.where("training").error("held_out", wrong)
    if config.encryption.enabled and config.store.url:
        clear = Worded(
            "goodbot encrypts nothing on a database server: take this out, and type `goodbot decrypt`"
        )
        raise config.where("store").error("url", clear)
    if config.serving.temperature is not None and config.serving.sampling.temperature is not None:
        twice = Worded("temperature stands in [serving] too: keep the one in [serving.sampling]")
        raise config.where("serving.sampling").error("temperature", twice)
