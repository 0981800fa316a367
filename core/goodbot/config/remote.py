# SPDX-License-Identifier: Apache-2.0
"""`[training.remote]`: a server of somebody else's that computes the steps of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from goodbot.base.checks import Range

KEY = "GOODBOT_TRAINING_KEY"
"""The secret that such a server asks for."""

_Price = Annotated[float, Range(least=0, says="must be 0 (not known) or a price for a million tokens")]


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteConfig:
    """`[training.remote]`: who computes, and what may go there, for a backend that computes elsewhere."""

    url: str = ""
    """Where it listens (`https://tinker.example`); with `ray` the head of the cluster (`ray://10.0.0.5:6379`)."""
    hosts: tuple[str, ...] = ()
    """The machines that questions and rated answers may be sent to, each by its name; none by default."""
    model: str = ""
    """The name that the server has for the base model; empty: the one that it has here."""
    workers: Annotated[int, Range(least=1, most=1000)] = 2
    """With `ray`: how many share each step."""
    loss: Literal["sum", "mean"] = "sum"
    """Whether the server adds the losses of tokens and answers up, or takes their `mean` as SkyRL does."""
    price_read: _Price = 0.0
    """What it asks for reading a million tokens."""
    price_trained: _Price = 0.0
    """What it asks for training on a million tokens."""
