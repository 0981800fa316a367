"""goodbot: a chat bot on your own model that learns from good and bad ratings.

These are the names that a plugin author needs; everything else is found where it lives.
"""

from goodbot.backend import BackendSpec
from goodbot.connector import API_VERSION, Capability, Connector, ConnectorHost, ConnectorSpec, OpenTurn, ReplyStream
from goodbot.errors import ConnectorError, FatalConnectorError, GoodbotError, RetriableError
from goodbot.events import (
    Button,
    ChannelKind,
    ChannelRef,
    CommandEvent,
    Event,
    MessageEvent,
    MessageRef,
    OrderKey,
    Outcome,
    RatingEvent,
    RatingKind,
    Receipt,
    Reply,
    UserRef,
)
from goodbot.hookspecs import hookimpl
from goodbot.ratings import RewardPolicy, TurnRating

__version__ = "0.1.0"

__all__ = [
    "API_VERSION",
    "BackendSpec",
    "Button",
    "Capability",
    "ChannelKind",
    "ChannelRef",
    "CommandEvent",
    "Connector",
    "ConnectorError",
    "ConnectorHost",
    "ConnectorSpec",
    "Event",
    "FatalConnectorError",
    "GoodbotError",
    "MessageEvent",
    "MessageRef",
    "OpenTurn",
    "OrderKey",
    "Outcome",
    "RatingEvent",
    "RatingKind",
    "Receipt",
    "Reply",
    "ReplyStream",
    "RetriableError",
    "RewardPolicy",
    "TurnRating",
    "UserRef",
    "hookimpl",
]
