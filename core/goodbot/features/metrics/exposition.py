# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format, version 0.0.4: what is counted, and how it is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[str, ...]
"""The values of a figure's labels, in their order."""


@dataclass(frozen=True, kw_only=True)
class GaugeFamily:
    """A number that goes up and down: read when it is asked for."""

    name: str
    help: str
    labels: Sequence[str] = ()
    kind: str = "gauge"
    values: dict[Labels, float] = field(default_factory=dict[Labels, float])

    def lines(self) -> Iterator[str]:
        """All that is known of it; nothing but its head where that is nothing."""
        yield from _head(self.name, self.help, self.kind)
        for values, number in sorted(self.values.items()):
            yield _line(self.name, dict(zip(self.labels, values, strict=True)), number)


@dataclass(frozen=True, kw_only=True)
class CounterFamily(GaugeFamily):
    """A number that only grows, from 0 at each start. Its name ends in `_total`."""

    kind: str = "counter"

    def add(self, *values: str) -> None:
        """One more of these."""
        self.values[values] = self.values.get(values, 0) + 1


@dataclass(frozen=True, kw_only=True)
class HistogramFamily:
    """How many seconds things took: for each bound how many took no longer."""

    name: str
    help: str
    label: str
    bounds: Sequence[float]
    counts: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    sums: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, value: str, seconds: float) -> None:
        """One that took so long."""
        counts = self.counts.setdefault(value, [0] * (len(self.bounds) + 1))
        for number, bound in enumerate((*self.bounds, math.inf)):
            counts[number] += seconds <= bound
        self.sums[value] = self.sums.get(value, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """The bounds, the sum and the count of each label's value."""
        yield from _head(self.name, self.help, "histogram")
        for value, counts in sorted(self.counts.items()):
            own = {self.label: value}
            for bound, count in zip((*self.bounds, math.inf), counts, strict=True):
                yield _line(f"{self.name}_bucket", {**own, "le": _number(bound)}, count)
            yield _line(f"{self.name}_sum", own, self.sums[value])
            yield _line(f"{self.name}_count", own, counts[-1])


def text(all_: Iterable[GaugeFamily | HistogramFamily]) -> str:
    """A page of them."""
    return "".join(f"{line}\n" for one in all_ for line in one.lines())


def _head(name: str, help: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {_escaped(help)}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], number: float) -> str:
    inner = ",".join(f'{label}="{_escaped(value, quote=True)}"' for label, value in labels.items())
    return f"{name}{{{inner}}} {_number(number)}" if inner else f"{name} {_number(number)}"


def _number(number: float) -> str:
    return "+Inf" if number == math.inf else repr(number)


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text
