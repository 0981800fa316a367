# SPDX-License-Identifier: Apache-2.0
"""`/metrics` as `promtool check metrics` sees it: by its rules always, by itself where it is installed."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from goodbot.features.metrics.plugin import TOKEN

from tests.core.metrics.test_metrics import SECRET, ask, counted, measured
from tests.support import patience, require_program

BASE = {
    "amperes",
    "bytes",
    "celsius",
    "grams",
    "joules",
    "kelvin",
    "meters",
    "metres",
    "moles",
    "seconds",
    "volts",
}
PREFIXES = [
    "pico",
    "nano",
    "micro",
    "milli",
    "centi",
    "deci",
    "deca",
    "hecto",
    "kilo",
    "kibi",
    "mega",
    "mebi",
    "giga",
    "gibi",
    "tera",
    "tebi",
    "peta",
    "pebi",
]
OTHER_UNITS = {
    *(f"{prefix}{unit}" for prefix in PREFIXES for unit in BASE),
    *("minutes", "hours", "days", "weeks"),
    *("kelvins", "fahrenheit", "rankine", "inches", "yards", "miles", "bits"),
    *("calories", "pounds", "ounces"),
}
SHORT_UNITS = {"s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"}
TYPES = {"counter", "gauge", "histogram", "summary"}
PARTS = {"histogram": ("_bucket", "_count", "_sum"), "summary": ("_count", "_sum")}
OWN = {"histogram": "le", "summary": "quantile"}
SAMPLE = re.compile(r"([^{ ]+)(?:\{([^}]*)\})? (\S+)")


@dataclass
class Family:
    """One figure of a page, as it is read there."""

    name: str
    help: str = ""
    type: str = "untyped"
    labels: set[str] = field(default_factory=set[str])
    samples: list[str] = field(default_factory=list[str])


def families(page: str) -> dict[str, Family]:
    """All of a page. Raises AssertionError for a line that belongs to none."""
    found: dict[str, Family] = {}
    for line in page.splitlines():
        if line.startswith("# "):
            _, what, name, text = [*line.split(" ", 3), ""][:4]
            one = found.setdefault(name, Family(name))
            if what == "HELP":
                one.help = text
            else:
                one.type = text
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, _ = match.groups()
        whole = next((name.removesuffix(end) for end in PARTS["histogram"] if name.endswith(end)), name)
        one = found.get(name) or found.get(whole) or found.setdefault(name, Family(name))
        one.labels |= set(re.findall(r'(\w+)="', labels or ""))
        one.samples.append(line.rpartition(" ")[0])
    return found


def problems(page: str) -> list[str]:
    """What the nine rules of promtool find."""
    return [f"{one.name}: {problem}" for one in families(page).values() for problem in _problems(one)]


def _problems(one: Family) -> Iterator[str]:
    parts = one.name.split("_")
    if not one.help.strip():
        yield "no help"
    if OTHER_UNITS & set(parts):
        yield "no base unit"
    if SHORT_UNITS & {part.lower() for part in parts[1:]}:
        yield "a unit cut short"
    if TYPES & {part.lower() for part in parts[1:]}:
        yield "its type in the name"
    if ":" in one.name:
        yield "a colon"
    if any(re.search("[a-z][A-Z]", name) for name in (one.name, *one.labels)):
        yield "camelCase"
    if len(one.samples) != len(set(one.samples)):
        yield "one sample twice"
    if one.type == "untyped":
        return
    if (one.type == "counter") != one.name.endswith("_total"):
        yield "_total is for counters, and for all of them"
    if one.name.endswith(tuple({*PARTS["histogram"]} - {*PARTS.get(one.type, ())})):
        yield "an ending of a histogram"
    if one.labels & {*OWN.values()} - {OWN.get(one.type)}:
        yield "a label of a histogram"


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("# TYPE x_bytes gauge\nx_bytes 1", "no help"),
        ("# HELP x_bytes \n# TYPE x_bytes gauge\nx_bytes 1", "no help"),
        ("# HELP x_milliseconds A.\n# TYPE x_milliseconds gauge\nx_milliseconds 1", "no base unit"),
        ("# HELP x_hours A.\n# TYPE x_hours gauge\nx_hours 1", "no base unit"),
        ("# HELP x_ms A.\n# TYPE x_ms gauge\nx_ms 1", "a unit cut short"),
        ("# HELP x_gauge A.\n# TYPE x_gauge gauge\nx_gauge 1", "its type in the name"),
        ("# HELP x:y A.\n# TYPE x:y gauge\nx:y 1", "a colon"),
        ("# HELP x_yZ A.\n# TYPE x_yZ gauge\nx_yZ 1", "camelCase"),
        ('# HELP x_y A.\n# TYPE x_y gauge\nx_y{aB="1"} 1', "camelCase"),
        ('# HELP x_y A.\n# TYPE x_y gauge\nx_y{a="1"} 1\nx_y{a="1"} 2', "one sample twice"),
        ("# HELP x_y A.\n# TYPE x_y counter\nx_y 1", "_total is for counters, and for all of them"),
        ("# HELP x_total A.\n# TYPE x_total gauge\nx_total 1", "_total is for counters, and for all of them"),
        ("# HELP x_count A.\n# TYPE x_count gauge\nx_count 1", "an ending of a histogram"),
        ('# HELP x_y A.\n# TYPE x_y gauge\nx_y{le="1"} 1', "a label of a histogram"),
        ('# HELP x_y A.\n# TYPE x_y gauge\nx_y{quantile="1"} 1', "a label of a histogram"),
    ],
)
def test_each_rule_finds_what_it_is_for(page: str, found: str) -> None:
    name = page.split(" ")[2]
    assert problems(page) == [f"{name}: {found}"]


def test_what_is_in_order_has_no_problem() -> None:
    assert not problems(
        "# HELP x_seconds A.\n# TYPE x_seconds histogram\n"
        'x_seconds_bucket{le="+Inf"} 1\nx_seconds_sum 1\nx_seconds_count 1\n'
        "# HELP x_total A.\n# TYPE x_total counter\nx_total 1"
    )


async def busy(home: Path, port: int) -> str:
    """The page of a goodbot in which all has happened that is counted."""
    async with measured(home, port) as bot:
        await bot.rated(8)
        await bot.train()
        bot.fake.set(generate="die")
        await bot.say("what does not come")
        await counted(port, "no_model", 1)
        _, _, page = await ask(port)
        return page


async def test_no_rule_finds_anything(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    page = await busy(tmp_path, unused_tcp_port)
    found = families(page)
    assert len(found) > 15
    assert [one.name for one in found.values() if one.type not in TYPES] == []
    assert found["goodbot_answer_seconds"].type == "histogram"
    assert "le" in found["goodbot_answer_seconds"].labels
    assert problems(page) == []


async def test_promtool_itself_has_nothing_to_say(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    promtool = require_program("promtool")
    monkeypatch.setenv(TOKEN, SECRET)
    page = await busy(tmp_path, unused_tcp_port)
    done = await asyncio.to_thread(
        subprocess.run,
        [promtool, "check", "metrics"],
        input=page,
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
