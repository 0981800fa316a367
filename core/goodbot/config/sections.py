# SPDX-License-Identifier: Apache-2.0
"""The sections of the config file; a field's type is its schema and its default the default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from goodbot.base import sampling
from goodbot.base.checks import Range
from goodbot.base.worded import Worded
from goodbot.config.hours import check_schedule, check_window
from goodbot.config.remote import RemoteConfig as RemoteConfig

_Share = Annotated[float, Range(above=0, most=1)]
_ALL = "must be above 0 and at most 1, which is whatever others use"
_Portion = Annotated[float, Range(above=0, most=1, says=_ALL)]
_Drawn = Annotated[float | None, sampling.checked]
ScopeKind = Literal["shared", "person", "channel", "team"]
NotesWhere = Literal["private", "everywhere", "never"]
_NO_NAME = frozenset(" \t/:@?#\\")  # in a name these would be another part of an address


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """`[model]`: what answers."""

    path: str = ""
    """A local model directory, or the name of one in the hub's cache (`Qwen/Qwen3-0.6B`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SamplingConfig:
    """`[serving.sampling]`: what answers are drawn with; None: as the model's makers say."""

    temperature: _Drawn = None
    """How much answers vary; above 0, for a bot that always says the same cannot learn."""
    top_k: Annotated[int | None, sampling.checked] = None
    """Of the likeliest words so many can be chosen."""
    top_p: _Drawn = None
    """The likeliest words can be chosen, as many as are this likely together."""
    min_p: _Drawn = None
    """A word can be chosen that is at least this part as likely as the likeliest."""
    repetition_penalty: _Drawn = None
    """Above 1, words that stand there already are less likely."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServingConfig:
    """`[serving]`: how it answers."""

    server: str = "embedded"
    """What runs the model: `embedded` is a process of our own; the others are servers that you run."""
    url: str = ""
    """Where that server listens; empty: at its usual place on this machine."""
    hosts: tuple[str, ...] = ()
    """Other machines that `url` may lead to (`gpu.lan`): what people write here is sent there."""
    model: str = ""
    """The name that the server has for the base model; empty: the only one that it offers."""
    ask: Literal["before", "after", "never"] = "before"
    """When owners are asked, blind, which of old and new answers better. `before`: until the new version
    goes live, for a day at most; `after`: it goes back if it loses; `never`."""
    canary: Annotated[float, Range(least=0, below=1, says="must be 0 (off) or a share below 1")] = 0.0
    """The share of conversations in which a new version is tried first; 0: all at once."""
    memory: Literal["auto", "together", "turns", "elsewhere"] = "auto"
    """Where both do not fit into memory: `together`, in `turns`, or `elsewhere`; `auto` finds out."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The server's own settings, `[serving.settings]`."""
    temperature: _Drawn = None
    """As that of `[serving.sampling]`, where it used to stand."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    max_tokens: Annotated[int, Range(least=1)] = 512
    """The most tokens of an answer, and of what the model thinks before it."""
    thinking: bool = False
    """Whether the model thinks before it answers, where its template lets one choose."""
    system_prompt: str = ""
    """Its personality and its task."""
    notes: NotesWhere = "private"
    """Where what somebody did not like becomes a line of the next prompt: in `private` chats,
    `everywhere` (in shared channels, too), or `never`."""
    history: Annotated[int, Range(least=0)] = 8
    """Earlier exchanges of the same conversation that go into the prompt."""
    history_tokens: Annotated[int, Range(least=0, says="must be 0 (no history) or more")] = 2048
    """Tokens that they may take there, by a careful estimate; the oldest give way."""
    language: Literal["en", "de", "es", "fr", "ja", "pt", "zh"] = "en"
    """What it says beside its answers to whoever's platform does not tell their language, and in groups."""
    stars: bool = False
    """Under answers: 1 to 5 stars in place of 👍 and 👎."""
    buttons: Literal["all", "fewer"] = "all"
    """Which answers have them: `all`, or with `fewer` one in five."""
    messages_per_minute: Annotated[int, Range(least=1)] = 12
    """Messages a minute of one person who is neither owner nor rater; more are not answered."""
    megabytes_per_day: Annotated[int, Range(least=1)] = 1000
    """Megabytes a day of one person who is no owner, and of other programs; more are not kept."""
    ratings_per_day: Annotated[int, Range(least=1)] = 10_000
    """Ratings and commands a day of one person who may rate and is no owner; more are refused."""
    seed: int = 0
    """Answers are drawn by it and the id of the message, trainings by it alone."""

    @property
    def drawn_with(self) -> dict[str, float]:
        """What is said of how answers are drawn, by name."""
        said = ({"temperature": self.temperature}, asdict(self.sampling))
        return {name: n for one in said for name, n in one.items() if n is not None}


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingConfig:
    """`[training]`: when and how it learns."""

    backend: str = "auto"
    """What trains: `mlx` or `torch`; `auto` takes the fastest that is installed."""
    schedule: Annotated[str, check_schedule] = "auto"
    """`auto` as soon as there are enough ratings, `HH:MM` once a day, `manual` on command."""
    min_ratings: int = 40
    """A training starts at so many ratings."""
    held_out: int = 8
    """How many of them are kept to check the result."""
    start_small: bool = False
    """Whether the first training starts at 24 ratings, or at 12 with words, where notes are kept."""
    reward: str = "binary"
    """What a rating is worth."""
    idle_seconds: Annotated[float, Range(least=0, says="must be 0 or more")] = 5.0
    """With `auto`: start only when nobody has written for so long."""
    quiet_hours: Annotated[str, check_window] = ""
    """No training starts by itself then, `23:00-07:00`, local time; empty: it may at any time."""
    on_battery: bool = False
    """Whether it may train while the machine runs on its battery."""
    max_load: _Portion = 0.75
    """The share of all processor time that other programs may use; 1: whatever they use."""
    max_gpu: _Portion = 0.3
    """The same for the GPU's time, where `nvidia-smi` tells it."""
    rater_share: _Share = 0.25
    """From the third rater on, the most that one of them weighs in a training."""
    duplicate_limit: Annotated[int, Range(least=0, says="must be 0 (off) or more")] = 3
    """Ratings of nearly the same question that say the same weigh so many at most; 0: all."""
    age_half_life: Annotated[float, Range(least=0, says="must be 0 (off) or more")] = 0.0
    """Versions after which the rating of an older answer weighs half; 0: its age does not count."""
    scopes: ScopeKind = "shared"
    """Who has versions of their own, beside the `shared` ones: each `person`, `channel` or `team`."""
    from_others: bool = True
    """Whether it learns from rated answers of other models, too, that programs have brought in."""
    replay_share: Annotated[float, Range(least=0, most=0.9)] = 0.0
    """The part of a training that repeats what earlier ones learnt."""
    anchors: tuple[str, ...] = ()
    """Prompts that every new version answers in its safety check; empty: those of the trainings so far."""
    anchors_file: str = ""
    """A file with more of them, one a line."""
    on_alarm: Literal["tell", "leave_out"] = "tell"
    """When somebody disagrees with others or with own older ratings: `tell` owners, or `leave_out` theirs."""
    outvoted: Literal["leave_out", "count"] = "leave_out"
    """Of three raters or more, one who wants the opposite of the others: `leave_out` theirs, or `count`."""
    remote: RemoteConfig = field(default_factory=RemoteConfig)
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The backend's own settings, `[training.settings]`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeConfig:
    """`[judge]`: what it makes of what came after an answer that nobody rated."""

    by: str = ""
    """`rule`, `model`, `server`, or a plugin's; empty: nothing is judged, and nothing judged is learnt."""
    weight: Annotated[float, Range(above=0, below=1)] = 0.5
    """What a judged answer weighs, where a rated one weighs 1."""
    share: _Share = 0.25
    """The most that judged answers weigh in a training; 1: whatever they weigh."""
    minutes: Annotated[float, Range(above=0, most=1440)] = 30.0
    """After so long without a next message an answer is closed, and is not judged."""
    episodes: Literal["constant", "discounted", "off"] = "constant"
    """What an agent's last answer came to counts for its steps before: alike, or less for earlier ones."""
    url: str = ""
    """With `server`: where it listens; it speaks OpenAI's API."""
    model: str = ""
    """What its model is called there."""
    hosts: tuple[str, ...] = ()
    """Other machines that `url` may lead to: what is judged is sent there."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The judge's own settings, `[judge.settings]`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AdaptersConfig:
    """`[adapters]`: the versions that training has made."""

    path_on_server: str = ""
    """Where the model server sees the directory `adapters` (`/adapters` in its container)."""
    keep: Annotated[int, Range(least=2, says="must be at least 2: one to answer, and one to go back to")] = 20
    """Versions whose files stay on disk; what is pinned, answers or waits to answer stays anyway."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PrivacyConfig:
    """`[privacy]`: how long what is kept."""

    unrated_days: Annotated[
        float, Range(above=0, says="must be above 0: what is deleted at once cannot be rated")
    ] = 7.0
    """After so many days, answers that nobody rated are deleted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EncryptionConfig:
    """`[encryption]`: whether what people said is encrypted on the disk."""

    enabled: bool = False
    """Whether it is; `goodbot encrypt` and `goodbot decrypt` change this together with the data."""
    key: Annotated[str, _key_place] = "keyring"
    """Where its key is, never the key: `keyring`, `file:PATH`, or `prompt`, which asks for a passphrase."""


PORT = 8321
"""Where goodbot listens when a connector needs it and the config names no port."""
PUBLISHED = "GOODBOT_URL"
"""The variable that a container sets: where people open this goodbot, whose port is published there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpConfig:
    """`[http]`: `/healthz`, `/readyz` and the connectors' own pages; nothing listens without need."""

    port: Annotated[int, Range(least=0, most=65535, says="must lie between 0 (off) and 65535")] = 0
    """0: off, or 8321 with a connector that needs it."""
    host: str = "127.0.0.1"
    """The address of this machine on which it listens; `127.0.0.1`: for this machine alone."""
    names: Annotated[tuple[str, ...], _host_names] = ()
    """Other names that people reach it under, as by a reverse proxy (`bot.example.org`)."""
    url: Annotated[str, _base_url] = ""
    """What links to it begin with (`https://bot.example.org`); its name is one of `names`."""
    socket: bool = True
    """Beside the port, for programs of this machine: `http.sock` in the state directory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LogConfig:
    """`[log]`: what goes to stderr; ids and numbers, never the text of a message."""

    format: Literal["text", "json"] = "text"
    """`text` for people, `json` for a collector: one object a line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important lines that are written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PluginsConfig:
    """`[plugins]`: third-party plugins are code; only those named here are loaded."""

    enable: tuple[str, ...] = ()
    """The third-party plugins that are loaded, by name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Grants:
    """Who may do what on one connector, by the platform's own user ids. Default: nobody.

    An owner can do everything; a rater may also talk.
    """

    owners: tuple[str, ...] = ()
    """Who can do everything, by the platform's own user ids."""
    raters: tuple[str, ...] = ()
    """Who may talk and rate."""
    talkers: tuple[str, ...] = ()
    """Who may talk."""
    rater_groups: tuple[str, ...] = ()
    """Groups of the platform's own (a Slack user group, a Discord role) whose members may rate."""
    channels: tuple[str, ...] = ()
    """Shared channels that are on, beside those that an owner has enabled there."""


def _host_names(key: str, listed: Sequence[str]) -> None:
    """Raises ValueError for what is no name of a host."""
    if any(not name or _NO_NAME & set(name) for name in listed):
        raise ValueError(Worded('{key} are like "bot.example.org", without scheme and port', key=key))


def _key_place(key: str, text: str) -> None:
    """Raises ValueError for what says nowhere."""
    if text not in ("keyring", "prompt") and not text.startswith(("file:/", "file:~/")):
        wrong = '{key} must be "keyring", "prompt", or "file:" with a whole path behind it'
        raise ValueError(Worded(wrong, key=key))


def _base_url(key: str, text: str) -> None:
    """Raises ValueError for what links cannot begin with."""
    if text and not _is_base_url(text):
        raise ValueError(Worded('{key} must be like "https://bot.example.org"', key=key))


def _is_base_url(text: str) -> bool:
    """Whether it is a scheme, a host and maybe a port, to which a path can be appended."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # of a port that is no number
        return False
    whole = text == f"{parts.scheme}://{parts.netloc}" and parts.scheme in ("http", "https")
    return whole and bool(host) and port != 0 and not {" ", "@", "\\"} & set(parts.netloc)
