# SPDX-License-Identifier: Apache-2.0
"""`/metrics`: what it says, who is told, and that nothing of what people wrote is in it."""

from __future__ import annotations

import contextlib
import json
import logging
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import ConfigError, StoreError
from goodbot.config import HttpConfig
from goodbot.features.metrics import plugin as metrics
from goodbot.features.metrics.exposition import CounterFamily, HistogramFamily, text
from goodbot.features.metrics.plugin import TOKEN
from goodbot.store import acceptance

from tests.architecture.source import ROOT
from tests.core.builders import Bot, open_bot, until
from tests.core.daemon.http.asking import raw
from tests.support import require

SECRET = "0123456789abcdef0123456789abcdef"
WORDS = "my daughter's name is Wilhelmina"


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)


@contextlib.asynccontextmanager
async def measured(home: Path, port: int, **options: Any) -> AsyncGenerator[Bot]:
    sections: dict[str, Any] = {"features": {"metrics": {}}, "http": HttpConfig(port=port)}
    async with open_bot(home, extra=(metrics,), sections=sections, **options) as bot:
        yield bot


async def ask(port: int, authorization: str = f"Bearer {SECRET}", more: str = "") -> tuple[int, str, str]:
    line = f"Authorization: {authorization}\r\n" if authorization else ""
    request = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{line}{more}\r\n"
    status, head, body = await raw(port, request.encode())
    return status, head, body.decode()


async def read(port: int) -> dict[str, float]:
    """`name{labels}` → number."""
    status, _, page = await ask(port)
    assert status == 200
    return {
        name: float(number)
        for name, _, number in (line.rpartition(" ") for line in page.splitlines() if line[0] != "#")
    }


async def counted(port: int, outcome: str, count: int) -> dict[str, float]:
    """What is read once so many answers are counted: that comes after an answer is there."""
    name = f'goodbot_answers_total{{platform="loopback",outcome="{outcome}"}}'

    async def there() -> bool:
        return (await read(port)).get(name) == count

    await until(there)
    return await read(port)


async def test_without_its_section_nothing_even_listens(tmp_path: Path) -> None:
    async with open_bot(tmp_path, extra=(metrics,)) as bot:
        assert not bot.app.http.listening


@pytest.mark.parametrize("given", ["", "Bearer", f"Bearer {SECRET[:-1]}", f"Basic {SECRET}", "Bearer é"])
async def test_nobody_is_told_without_the_token_from_wherever(
    tmp_path: Path, unused_tcp_port: int, given: str
) -> None:
    async with measured(tmp_path, unused_tcp_port):
        status, head, page = await ask(unused_tcp_port, given)
        assert (status, "goodbot_" in page) == (401, False)
        assert "www-authenticate: bearer" in head
        assert (await ask(unused_tcp_port))[0] == 200


async def test_without_a_token_or_with_a_short_one_goodbot_does_not_start(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in ("", "short"):
        monkeypatch.setenv(TOKEN, value)
        with pytest.raises(ConfigError, match=TOKEN):
            async with measured(tmp_path, unused_tcp_port):
                pass


async def test_what_happens_is_counted(tmp_path: Path, unused_tcp_port: int) -> None:
    port = unused_tcp_port
    async with measured(tmp_path, port) as bot:
        answers = [await bot.say(f"{WORDS} {number}") for number in range(3)]
        await bot.react(answers[0], "👍")
        await bot.react(answers[1], "👎")
        await bot.unreact(answers[1], "👎")
        logging.getLogger("goodbot.tests").error("planted")
        bot.fake.set(generate="die")
        await bot.say("what does not come")
        await counted(port, "no_model", 1)
        found = await counted(port, "sent", 3)
        assert found['goodbot_answer_seconds_count{platform="loopback"}'] == 3
        signs = [found[f'goodbot_ratings_total{{sign="{s}"}}'] for s in ("good", "bad", "taken_back")]
        assert signs == [1, 1, 1]
        assert (found["goodbot_ratings_waiting"], found["goodbot_ratings_needed"]) == (1, 8)
        assert found["goodbot_version_live"] == 0
        assert found["goodbot_version_live_liked_ratio"] == 1
        assert found['goodbot_up{part="store"}'] == 1
        assert found['goodbot_log_lines_total{level="error"}'] >= 1
        assert found["goodbot_model_restarts_total"] >= 1
        assert found["goodbot_database_bytes"] > 4096
        assert found["goodbot_disk_free_bytes"] > 0


async def test_a_round_is_counted_by_its_verdict_and_the_version_told(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with measured(tmp_path, unused_tcp_port) as bot:
        await bot.rated(8)
        await bot.train()
        found = await read(unused_tcp_port)
        assert found['goodbot_rounds_total{verdict="activated"}'] == 1
        assert found["goodbot_version_live"] == 1


async def test_nothing_of_what_people_wrote_or_who_they_are_is_told(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with measured(tmp_path, unused_tcp_port) as bot:
        await bot.command("enable", channel="#secret-room")
        answer = await bot.say(WORDS, user="rater", channel="#secret-room")
        await bot.react(answer, "👍", user="rater")
        await counted(unused_tcp_port, "sent", 1)
        _, _, page = await ask(unused_tcp_port)
        told = re.sub(r"^#.*$", "", page, flags=re.M)
        hidden = (
            "Wilhelmina",
            "rater",
            "owner",
            "secret-room",
            answer.turn,
            answer.text,
            str(tmp_path),
            SECRET,
        )
        assert [one for one in hidden if one in told] == []


async def test_a_store_that_fails_is_told_and_the_rest_goes_on(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with measured(tmp_path, unused_tcp_port) as bot:

        async def fails(*_: object) -> None:
            raise StoreError("planted")

        monkeypatch.setattr(acceptance, "of", fails)
        found = await read(unused_tcp_port)
        assert found['goodbot_up{part="store"}'] == 0
        assert 'goodbot_ratings_total{sign="good"}' in found
        assert bot.app


LINE = re.compile(
    r"# (?:HELP goodbot_[a-z_]+ \S.*\.|TYPE goodbot_[a-z_]+ (?:gauge|counter|histogram))"
    r'|goodbot_[a-z_]+(?:\{(?:[a-z]+="[^"\\]*"(?:,(?!\}))?)+\})? (?:\d+(?:\.\d+)?(?:e[+-]\d+)?)'
)


async def test_each_line_is_one_of_the_format_and_each_figure_begins_once(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    async with measured(tmp_path, unused_tcp_port) as bot:
        await bot.say("Hello?")
        await counted(unused_tcp_port, "sent", 1)
        _, _, page = await ask(unused_tcp_port)
        lines = page.splitlines()
        assert [line for line in lines if not LINE.fullmatch(line)] == []
        begun = [line.split()[2] for line in lines if line.startswith("# TYPE")]
        assert len(begun) == len(set(begun)) > 15
        counters = {line.split()[2] for line in lines if line.endswith(" counter")}
        assert counters == {name for name in begun if name.endswith("_total")}
        assert len(lines) == len(set(lines)) < 200


async def test_prometheus_reads_it(tmp_path: Path, unused_tcp_port: int) -> None:
    parser = require("prometheus_client.parser")
    async with measured(tmp_path, unused_tcp_port) as bot:
        await bot.say("Hello?")
        await counted(unused_tcp_port, "sent", 1)
        _, head, page = await ask(unused_tcp_port)
        assert "content-type: text/plain; version=0.0.4; charset=utf-8" in head
        families = list(parser.text_string_to_metric_families(page))
        assert len({family.name for family in families}) == len(families) > 15
        for family in families:
            assert family.documentation.endswith(".")
            assert family.type in ("gauge", "counter", "histogram"), family.name
            assert len(family.samples) < 50


def test_what_a_name_holds_breaks_no_line() -> None:
    counter = CounterFamily(name="a_total", help="A\nB.", labels=("l",))
    counter.add('q"\\\n')
    assert text([counter]) == '# HELP a_total A\\nB.\n# TYPE a_total counter\na_total{l="q\\"\\\\\\n"} 1\n'


def test_each_bound_counts_what_took_no_longer() -> None:
    histogram = HistogramFamily(name="h", help="H.", label="l", bounds=(1.0, 2.0))
    for seconds in (0.5, 1.0, 1.5, 9.0):
        histogram.add("x", seconds)
    assert text([histogram]).splitlines()[2:] == [
        'h_bucket{l="x",le="1.0"} 2',
        'h_bucket{l="x",le="2.0"} 3',
        'h_bucket{l="x",le="+Inf"} 4',
        'h_sum{l="x"} 12.0',
        'h_count{l="x"} 4',
    ]


async def test_the_dashboard_asks_for_what_there_is(tmp_path: Path, unused_tcp_port: int) -> None:
    board = json.loads((ROOT / "examples" / "grafana.json").read_text(encoding="utf-8"))
    asked = {t["expr"] for panel in board["panels"] for t in panel["targets"]}
    names = {name for expr in asked for name in re.findall(r"goodbot_\w+", expr)}
    async with measured(tmp_path, unused_tcp_port) as bot:
        await bot.say("Hello?")
        await counted(unused_tcp_port, "sent", 1)
        _, _, page = await ask(unused_tcp_port)
        types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, flags=re.M))
        there = {*types, *(f"{n}_bucket" for n, kind in types.items() if kind == "histogram")}
        assert names - there == set()
        assert {n for n in types if n not in names and f"{n}_bucket" not in names} == set()
        labels = set(re.findall(r"\{\{(\w+)\}\}", json.dumps(board)))
        assert labels <= set(re.findall(r'(\w+)="', page)) | {"verdict"}
