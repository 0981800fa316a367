# SPDX-License-Identifier: Apache-2.0
"""goodbot: a chat bot on your own model that learns from good and bad ratings.

These are the names that a plugin author needs; everything else is found where it lives. They are
imported when they are first used: `goodbot status` would otherwise spend most of its time on them.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from goodbot.api.backend import BackendSpec, TrainingBackend
    from goodbot.api.commands import command_in
    from goodbot.api.connector import (
        API_VERSION,
        Capability,
        Connector,
        ConnectorHost,
        ConnectorSpec,
        OpenTurn,
    )
    from goodbot.api.events import (
        Button,
        CaptureEvent,
        ChannelKind,
        ChannelRef,
        CommandEvent,
        Event,
        MessageEvent,
        MessageRef,
        OrderKey,
        Outcome,
        PressEvent,
        RatingEvent,
        RatingKind,
        Receipt,
        Reply,
        UserRef,
        Waiting,
    )
    from goodbot.api.hookspecs import hookimpl
    from goodbot.api.judge import Asks, Judge, JudgeCase, Judgement, JudgeSpec
    from goodbot.api.model import ModelSpec
    from goodbot.api.objective import ObjectiveSpec
    from goodbot.api.reply_stream import ReplyStream
    from goodbot.api.rewards import Moments, RewardPolicy, TurnRating
    from goodbot.api.server import (
        BASE,
        AdapterFormat,
        Generated,
        GenerateRequest,
        Server,
        ServerParts,
        ServerSpec,
    )
    from goodbot.api.setup import (
        Check,
        CheckState,
        ConnectorSetup,
        Examined,
        Identity,
        Manifest,
        Permission,
        Probe,
        Question,
        Sketch,
    )
    from goodbot.api.tracker import TrackedRun, Tracker, TrackerSpec
    from goodbot.api.turns import Turn
    from goodbot.base.errors import (
        AdapterError,
        ConnectorError,
        FatalConnectorError,
        GoodbotError,
        RetriableError,
        ServerError,
        StoreError,
        TrainingError,
    )
    from goodbot.base.proxies import proxy_url

__version__ = "0.1.0"

__all__ = [
    "API_VERSION",
    "BASE",
    "AdapterError",
    "AdapterFormat",
    "Asks",
    "BackendSpec",
    "Button",
    "Capability",
    "CaptureEvent",
    "ChannelKind",
    "ChannelRef",
    "Check",
    "CheckState",
    "CommandEvent",
    "Connector",
    "ConnectorError",
    "ConnectorHost",
    "ConnectorSetup",
    "ConnectorSpec",
    "Event",
    "Examined",
    "FatalConnectorError",
    "GenerateRequest",
    "Generated",
    "GoodbotError",
    "Identity",
    "Judge",
    "JudgeCase",
    "JudgeSpec",
    "Judgement",
    "Manifest",
    "MessageEvent",
    "MessageRef",
    "ModelSpec",
    "Moments",
    "ObjectiveSpec",
    "OpenTurn",
    "OrderKey",
    "Outcome",
    "Permission",
    "PressEvent",
    "Probe",
    "Question",
    "RatingEvent",
    "RatingKind",
    "Receipt",
    "Reply",
    "ReplyStream",
    "RetriableError",
    "RewardPolicy",
    "Server",
    "ServerError",
    "ServerParts",
    "ServerSpec",
    "Sketch",
    "StoreError",
    "TrackedRun",
    "Tracker",
    "TrackerSpec",
    "TrainingBackend",
    "TrainingError",
    "Turn",
    "TurnRating",
    "UserRef",
    "Waiting",
    "command_in",
    "hookimpl",
    "proxy_url",
]

_HOMES = {
    "api.backend": ("BackendSpec", "TrainingBackend"),
    "api.commands": ("command_in",),
    "api.connector": ("API_VERSION", "Capability", "Connector", "ConnectorHost", "ConnectorSpec", "OpenTurn"),
    "base.errors": (
        "AdapterError",
        "ConnectorError",
        "FatalConnectorError",
        "GoodbotError",
        "RetriableError",
        "ServerError",
        "StoreError",
        "TrainingError",
    ),
    "base.proxies": ("proxy_url",),
    "api.hookspecs": ("hookimpl",),
    "api.judge": ("Asks", "Judge", "JudgeCase", "JudgeSpec", "Judgement"),
    "api.model": ("ModelSpec",),
    "api.objective": ("ObjectiveSpec",),
    "api.reply_stream": ("ReplyStream",),
    "api.rewards": ("Moments", "RewardPolicy", "TurnRating"),
    "api.server": (
        "AdapterFormat",
        "BASE",
        "GenerateRequest",
        "Generated",
        "Server",
        "ServerParts",
        "ServerSpec",
    ),
    "api.setup": (
        "Check",
        "CheckState",
        "ConnectorSetup",
        "Examined",
        "Identity",
        "Manifest",
        "Permission",
        "Probe",
        "Question",
        "Sketch",
    ),
    "api.tracker": ("TrackedRun", "Tracker", "TrackerSpec"),
    "api.turns": ("Turn",),
}
"""Where a public name lives; those that are not here live in `api.events`."""


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), "api.events")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
