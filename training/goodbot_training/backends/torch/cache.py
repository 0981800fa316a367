# SPDX-License-Identifier: Apache-2.0
"""What transformers' caches lack: room for tokens to come, and taking in the rows of another cache.

All in place but `copied`. Layers are those of `DynamicCache`: keys and values `(B, heads, tokens, size)`,
right-aligned; of linear attention a state of fixed size.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import copy
from typing import Any

import torch
from torch.nn.functional import pad
from transformers import DynamicCache
from transformers.cache_utils import (
    DynamicLayer,
    DynamicSlidingWindowLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionLayer,
)

_ROOM = 32
"""Tokens a row that are made room for at once: of 32 steps one copies what there is."""


class RoomyLayer(DynamicLayer):
    """Writes new keys and values behind those that are there; `DynamicLayer` copies them all at each token.

    What it holds are views of longer tensors, until somebody puts others in their place.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._whole: Any = None
        self._end = 0
        """Of what is written in it."""
        self._view: Any = None
        """Of the keys, as it was last given; the values go with them."""

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> Any:
        if self.keys is None or self.values is None or not self.get_seq_length():
            return super().update(key_states, value_states, *args, **kwargs)  # may be all there is
        held, new = self.keys.shape[-2], key_states.shape[-2]
        if self.keys is not self._view or self._end + new > self._whole[0].shape[-2]:
            room = (0, 0, 0, new + _ROOM)
            self._whole, self._end = (pad(self.keys, room), pad(self.values, room)), held
        begin, self._end = self._end - held, self._end + new
        keys, values = self._whole
        keys.narrow(-2, self._end - new, new).copy_(key_states)
        values.narrow(-2, self._end - new, new).copy_(value_states)
        seen = keys.narrow(-2, begin, held + new), values.narrow(-2, begin, held + new)
        self.keys, self.values = map(self._kept, seen)
        self._view = self.keys
        return seen

    def let_go(self) -> None:
        """Write no more into what it holds: another layer holds it, too."""
        self._whole = self._view = None

    def _kept(self, seen: Any) -> Any:
        """Of what the new tokens attend to, that which those to come will."""
        return seen


class RoomyWindow(RoomyLayer, DynamicSlidingWindowLayer):
    """The same for a sliding window, which moves along in the longer tensors."""

    def update(self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any) -> Any:
        length = self.cumulative_length + key_states.shape[-2]
        seen = super().update(key_states, value_states, *args, **kwargs)
        self.cumulative_length = length
        return seen

    def _kept(self, seen: Any) -> Any:
        return seen[..., 1 - self.sliding_window :, :]


_KNOWN = (
    DynamicLayer,
    RoomyLayer,
    DynamicSlidingWindowLayer,
    RoomyWindow,
    LinearAttentionLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
)
_STATES = ("conv_states", "recurrent_states")


def empty(config: Any) -> Any:
    """A model's cache with nothing in it."""
    cache: Any = DynamicCache(config=config)
    cache.layers = [_roomy(layer) for layer in cache.layers]
    if cache.layer_class_to_replicate is DynamicLayer:
        cache.layer_class_to_replicate = RoomyLayer
    return cache


def append(cache: DynamicCache, other: DynamicCache) -> None:
    """The other's rows after ours. Raises NotImplementedError for layers of another kind."""
    pairs: list[tuple[Any, Any]] = list(zip(cache.layers, other.layers, strict=True))
    for mine, theirs in pairs:
        if type(mine) not in _KNOWN or type(mine) is not type(theirs):
            raise NotImplementedError(type(mine).__name__)
    for mine, theirs in pairs:
        kind = type(mine)
        if issubclass(kind, LinearAttentionLayer):
            for name in _STATES:
                own, more = getattr(mine, name), getattr(theirs, name)
                for index, state in own.items():
                    own[index] = None if state is None else torch.cat([state, more[index]])
        if issubclass(kind, DynamicLayer) and mine.is_initialized:
            width = max(mine.keys.shape[-2], theirs.keys.shape[-2])
            mine.keys = torch.cat([_wide(mine.keys, width), _wide(theirs.keys, width)])
            mine.values = torch.cat([_wide(mine.values, width), _wide(theirs.values, width)])
        if issubclass(kind, DynamicSlidingWindowLayer):
            mine.cumulative_length = max(mine.cumulative_length, theirs.cumulative_length)


def trimmed(cache: DynamicCache, padding: int) -> int:
    """Cut padding off that all rows have on the left, where all layers can; how much was cut.

    A sliding window has let go of some of it already; it counts on from what is left.
    """
    layers: list[Any] = cache.layers
    if padding <= 0 or any(type(layer) not in _KNOWN for layer in layers):
        return 0
    for layer in layers:
        if not issubclass(type(layer), DynamicLayer) or not layer.is_initialized:
            continue  # a state of fixed size
        kept, cut = layer.keys.shape[-2], padding
        if issubclass(type(layer), DynamicSlidingWindowLayer):
            cut = max(0, padding - (layer.cumulative_length - kept))
            layer.cumulative_length -= padding
        # Not a view, which would hold the padding as long as the row is kept.
        layer.keys = layer.keys[..., cut:, :].clone()
        layer.values = layer.values[..., cut:, :].clone()
    return padding


def copied(cache: DynamicCache) -> Any:
    """A cache over the same tensors, for what replaces them and changes none in place."""
    twin: Any = copy.copy(cache)
    twin.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in twin.layers:
        if isinstance(layer, RoomyLayer):
            layer.let_go()
        for name in _STATES:
            if hasattr(layer, name):
                setattr(layer, name, dict(getattr(layer, name)))
    return twin


def _roomy(layer: Any) -> Any:
    if type(layer) is DynamicLayer:
        return RoomyLayer()
    if type(layer) is DynamicSlidingWindowLayer:
        return RoomyWindow(sliding_window=layer.sliding_window)
    return layer


def _wide(tensor: torch.Tensor, width: int) -> torch.Tensor:
    return pad(tensor, (0, 0, width - tensor.shape[-2], 0))
