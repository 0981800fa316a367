"""The configuration: one TOML file → frozen sections. Unknown keys and wrong types are errors.

Tokens are never in the file; they come from the environment (see `goodbot.secrets`).
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from goodbot.errors import ConfigError

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """`[model]`: what answers."""

    path: str = ""
    """A local model directory, or the name of one in the hub's cache (`Qwen/Qwen3-0.6B`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingConfig:
    """`[serving]`: how it answers."""

    temperature: float = 0.7
    max_tokens: int = 512
    system_prompt: str = ""
    history: int = 8
    """Earlier exchanges of the same conversation that go into the prompt."""
    messages_per_minute: int = 12
    """Of one person who is neither owner nor rater; more are not answered."""
    seed: int = 0
    """The same question at the same place in the same order gets the same answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """`[training]`: when and how it learns."""

    backend: str = "auto"
    schedule: str = "auto"
    """`auto` as soon as there are enough ratings, `HH:MM` once a day, `manual` on command."""
    min_ratings: int = 40
    held_out: int = 8
    """Of `min_ratings`, how many the gate keeps; larger rounds keep the same share."""
    reward: str = "binary"
    idle_seconds: float = 5.0
    """With `auto`: start only when nobody has written for so long."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The backend's own settings, `[training.settings]`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivacyConfig:
    """`[privacy]`: how long what is kept."""

    unrated_days: float = 7.0


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginsConfig:
    """`[plugins]`: third-party plugins are code; only those named here are loaded."""

    enable: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Grants:
    """Who may do what on one connector, by the platform's own user ids. Default: nobody.

    An owner may everything; a rater may also talk.
    """

    owners: tuple[str, ...] = ()
    raters: tuple[str, ...] = ()
    talkers: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that was configured. `home` is the state directory."""

    home: Path
    path: Path | None = None
    model: ModelConfig = field(default_factory=ModelConfig)
    serving: ServingConfig = field(default_factory=ServingConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    privacy: PrivacyConfig = field(default_factory=PrivacyConfig)
    plugins: PluginsConfig = field(default_factory=PluginsConfig)
    connectors: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict[str, Mapping[str, Any]]
    )
    source: str = field(default="", repr=False)

    def connector(self, name: str, settings: type[T]) -> tuple[Grants, T]:
        """A connector's section: its grants, and its own settings."""
        table = dict(self.connectors.get(name, {}))
        names = {f.name for f in dataclasses.fields(Grants)}
        where = _Where(self, f"connectors.{name}")
        grants = {key: table.pop(key) for key in list(table) if key in names}
        return (
            _section(Grants, grants, where),
            _section(settings, table, where, also=names),
        )

    def training_settings(self, settings: type[T]) -> T:
        """`[training.settings]` as the backend's own frozen dataclass."""
        return _section(settings, self.training.settings, _Where(self, "training.settings"))


_SECTIONS = {
    "model": ModelConfig,
    "serving": ServingConfig,
    "training": TrainingConfig,
    "privacy": PrivacyConfig,
    "plugins": PluginsConfig,
}


def default_home() -> Path:
    """`$GOODBOT_HOME`, else `~/.goodbot`."""
    return Path(os.environ.get("GOODBOT_HOME") or Path.home() / ".goodbot").expanduser().absolute()


def load(home: Path, path: Path | None = None) -> Config:
    """Read `path`, by default `home/config.toml`; a missing default file means all defaults.

    Raises ConfigError with the file, the line and the nearest valid key.
    """
    explicit = path is not None
    path = path or home / "config.toml"
    try:
        source = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        if explicit:
            raise ConfigError("there is no such file", path=path) from None
        return Config(home=home)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", path=path) from error
    return parse(source, home=home, path=path)


def parse(source: str, *, home: Path, path: Path | None = None) -> Config:
    """The configuration in a TOML text."""
    try:
        table = tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"is not valid TOML: {error}", path=path) from error
    bare = Config(home=home, path=path, source=source)
    sections: dict[str, Any] = {}
    for name, value in table.items():
        if name == "connectors":
            _require_tables(bare, value)
            sections[name] = value
        elif name in _SECTIONS:
            if not isinstance(value, dict):
                raise _Where(bare, "").error(name, f"{name} must be a section: [{name}]")
            section = typing.cast("dict[str, Any]", value)
            sections[name] = _section(_SECTIONS[name], section, _Where(bare, name))
        else:
            raise _Where(bare, "").unknown(name, [*_SECTIONS, "connectors"])
    config = dataclasses.replace(bare, **sections)
    _check(config)
    return config


def _require_tables(config: Config, value: object) -> None:
    if not isinstance(value, dict):
        raise _Where(config, "").error(
            "connectors", "connectors must be sections: [connectors.NAME]"
        )
    for name, table in typing.cast("dict[str, object]", value).items():
        if not isinstance(table, dict):
            raise _Where(config, "connectors").error(
                name, f"write it as a section: [connectors.{name}]"
            )


def _check(config: Config) -> None:
    training = _Where(config, "training")
    if not 0 < config.training.held_out < config.training.min_ratings:
        raise training.error("held_out", "held_out must lie between 1 and min_ratings - 1")
    schedule = config.training.schedule
    hours, colon, minutes = schedule.partition(":")
    clock_time = (
        colon
        and hours.isdecimal()
        and minutes.isdecimal()
        and int(hours) < 24
        and int(minutes) < 60
    )
    if schedule not in ("auto", "manual") and not clock_time:
        raise training.error(
            "schedule", 'schedule must be "auto", "manual" or a time such as "03:30"'
        )
    if not 0 <= config.training.idle_seconds < math.inf:
        raise training.error("idle_seconds", "idle_seconds must be 0 or more")
    if not 0 < config.privacy.unrated_days < math.inf:
        raise _Where(config, "privacy").error(
            "unrated_days", "unrated_days must be above 0: what is deleted at once cannot be rated"
        )
    serving = _Where(config, "serving")
    if not 0 < config.serving.temperature < math.inf:
        raise serving.error(
            "temperature", "temperature must be above 0: a bot that never varies cannot learn"
        )
    if config.serving.messages_per_minute < 1:
        raise serving.error("messages_per_minute", "messages_per_minute must be at least 1")
    if config.serving.max_tokens < 1 or config.serving.history < 0:
        raise serving.error("max_tokens", "max_tokens must be at least 1 and history at least 0")


@dataclass(frozen=True)
class _Where:
    """A section of a file, for error messages."""

    config: Config
    section: str

    def error(self, key: str, message: str) -> ConfigError:
        return ConfigError(message, path=self.config.path, line=self._line(key))

    def unknown(self, key: str, known: list[str]) -> ConfigError:
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
        place = f"[{self.section}] " if self.section else ""
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(sorted(known))}"
        return self.error(key, f"{place}unknown key {key!r}; {hint}")

    def _line(self, key: str) -> int | None:
        """The line where `key` is set; TOML's parser does not tell."""
        section = ""
        for number, line in enumerate(self.config.source.splitlines(), start=1):
            text = line.strip()
            if text.startswith("["):
                section = text.strip("[] ").split("]")[0]
                full = f"{self.section}.{key}" if self.section else key
                if section == full or section.startswith(full + "."):
                    return number
            elif section == self.section and text.split("=")[0].strip().strip("\"'") == key:
                return number
        return None


def _section(cls: type[T], table: Mapping[str, Any], where: _Where, also: Iterable[str] = ()) -> T:
    """One TOML table as a frozen dataclass; its field types are the schema."""
    hints = typing.get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(typing.cast("Any", cls))]
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in names:
            raise where.unknown(key, [*names, *also])
        values[key] = _value(value, hints[key], where, key)
    try:
        return cls(**values)
    except ValueError as error:
        raise where.error(next(iter(table), ""), str(error)) from error


def _value(value: Any, hint: Any, where: _Where, key: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (types.UnionType, typing.Union):
        hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        origin = typing.get_origin(hint)
    if origin is tuple and isinstance(value, list):
        item = typing.get_args(hint)[0]
        items = typing.cast("list[Any]", value)
        # Platform ids are often numbers; a number in a list of texts is taken as its exact digits.
        return tuple(
            str(entry) if item is str and type(entry) is int else _value(entry, item, where, key)
            for entry in items
        )
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if isinstance(value, dict):
            return typing.cast("dict[str, Any]", value)
    elif hint is float and type(value) in (int, float):
        return float(value)
    elif isinstance(hint, type) and type(value) is hint:
        return value
    wanted = {
        str: "a text in quotes",
        int: "a whole number",
        float: "a number",
        bool: "true or false",
    }
    name = wanted.get(hint, "a list in [ ]" if origin is tuple else "a section")
    raise where.error(key, f"{key} must be {name}, not {value!r}")
