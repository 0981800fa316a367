# SPDX-License-Identifier: Apache-2.0
"""How PEFT names and stores what an adapter acts on: projections, and stacks of experts.

A projection is a module: `<path>.lora_A.weight` is `(r, in)`, `.lora_B.weight` `(out, r)`. The E
experts of a layer are one 3-D parameter of a module, which PEFT calls a target parameter. It flattens
them: A `(E·r, in)`, expert by expert; B `(out, r·E)`, rank by rank. Where a module has several such
parameters, their tensors are told apart by `.base_layer`, once per level of nesting: the first
parameter is the innermost. In memory the experts' A is `(E, r, in)`, B `(E, out, r)`, and the path is
that of the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from goodbot.api.step import Floats

NESTED = ".base_layer"
_WEIGHT = "weight"
_REWRITTEN = {"gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"}
"""Module names that PEFT takes for experts of an old checkpoint in a mixture of experts. There a
projection with such a name (a shared expert's) is targeted as the parameter that it is."""


def flatten(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A and B of E experts as PEFT stores them; those of a projection as they are."""
    if a.ndim == 2:
        return a, b
    return a.reshape(-1, a.shape[-1]), b.transpose(1, 2, 0).reshape(b.shape[1], -1)


def unflatten(a: Floats, b: Floats, rank: int) -> tuple[Floats, Floats] | None:
    """The other way round; None where the rows are no multiple of the rank.

    Each expert's matrices lie in one piece: frameworks keep the strides, and their kernels refuse others.
    """
    if a.shape[0] % rank:
        return None
    experts = a.shape[0] // rank
    stacked = b.reshape(b.shape[0], rank, experts).transpose(2, 0, 1)
    return a.reshape(experts, rank, -1), np.ascontiguousarray(stacked)


def stored_names(paths: Iterable[str]) -> dict[str, str]:
    """Parameter paths of stacks of experts, in the model's order → module paths in the file."""
    modules: dict[str, list[str]] = {}
    for path in paths:
        modules.setdefault(path.rpartition(".")[0], []).append(path)
    return {
        path: module + NESTED * (len(names) - 1 - at)
        for module, names in modules.items()
        for at, path in enumerate(names)
    }


def targets(pairs: Mapping[str, tuple[Floats, Floats]], rank: int, scale: float) -> dict[str, Any]:
    """The entries of `adapter_config.json` that say what is adapted, and with which rank."""
    experts = [path for path, (a, _) in pairs.items() if a.ndim == 3]
    plain = {path for path in pairs if path not in set(experts)}
    odd = {path for path in plain if experts and _leaf(path) in _REWRITTEN}
    parameters = list(dict.fromkeys(_suffix(path) for path in experts))
    parameters += sorted({f"{_suffix(path)}.{_WEIGHT}" for path in odd})
    entries: dict[str, Any] = {"target_modules": sorted({_leaf(path) for path in plain - odd})}
    if parameters:
        entries["target_parameters"] = parameters
    ranks = _patterns({path: a.shape[-2] for path, (a, _) in pairs.items()}, rank)
    if ranks:
        entries["rank_pattern"] = ranks
        entries["alpha_pattern"] = {key: scale * value for key, value in ranks.items()}
    return entries


def looking_around(
    calls: Mapping[str, Callable[..., object]], layers: Collection[str], trained: Collection[str]
) -> set[str]:
    """Paths of the modules within a layer that look at other tokens: attention, or a hybrid's own way.

    Told by what they take, never by a name: only who looks around is given a mask or a cache. Where all
    that is trained lies in such modules (a model of nothing else) there is no telling: none.
    """
    within = tuple(f"{layer}." for layer in layers)
    found = {
        path
        for path, call in calls.items()
        if path.startswith(within)
        and any("mask" in name or "cache" in name for name in signature(call).parameters)
    }
    return set() if all(lies_in(path, found) for path in trained) else found


def lies_in(path: str, modules: Collection[str]) -> bool:
    """Whether a parameter or a module stands in one of these modules."""
    return any(path.startswith(f"{module}.") for module in modules)


def _patterns(ranks: Mapping[str, int], usual: int) -> dict[str, int]:
    """Pattern → rank where it is not the usual one: a suffix if all that end so agree, else a path."""
    by_suffix: dict[str, set[int]] = {}
    for path, rank in ranks.items():
        by_suffix.setdefault(_suffix(path), set()).add(rank)
    return {
        (_suffix(path) if len(by_suffix[_suffix(path)]) == 1 else path).replace(".", r"\."): rank
        for path, rank in sorted(ranks.items())
        if rank != usual
    }


class Targets:
    """What the stored names of an adapter mean, by its config."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        named = config.get("target_parameters")
        self._parameters = [name for name in named or () if isinstance(name, str)]
        self._ranks = _numbers(config.get("rank_pattern"))
        self._alphas = _numbers(config.get("alpha_pattern"))

    def parameter(self, stored: str) -> str | None:
        """The path of the stack of experts that a stored module path is for; None: a projection."""
        module, depth = stored, 0
        while module.endswith(NESTED):
            module, depth = module.removesuffix(NESTED), depth + 1
        names = [_leaf(name) for name in self._parameters if _ends(module, name.rpartition(".")[0])]
        names = [name for name in dict.fromkeys(names) if name != _WEIGHT]
        return f"{module}.{names[-1 - depth]}" if depth < len(names) else None

    def rank(self, path: str, usual: int) -> int:
        """The rank on a path."""
        return int(_matching(self._ranks, path, usual))

    def alpha(self, path: str, usual: float) -> float:
        """The alpha on a path."""
        return float(_matching(self._alphas, path, usual))


def _matching(patterns: Mapping[str, float], path: str, usual: float) -> float:
    # A pattern is foreign text: it is compared as a name, never run as an expression.
    for pattern, value in patterns.items():
        if _ends(path, pattern.replace("\\", "")):
            return value
    return usual


def _numbers(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        return {}
    known: dict[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
    return {str(k): v for k, v in known.items() if isinstance(v, int | float) and v > 0}


def _ends(path: str, suffix: str) -> bool:
    return not suffix or path == suffix or path.endswith(f".{suffix}")


def _leaf(path: str) -> str:
    return path.rpartition(".")[2]


def _suffix(path: str) -> str:
    return ".".join(path.split(".")[-2:])
