# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the page of ratings runs, small. What it measures is nobody's test."""

from __future__ import annotations

import pytest

from tests.benchmarks import bench_ratings


async def test_each_look_finds_the_same_in_the_store_and_over_http(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await bench_ratings._measure(60, 2)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    found = {name: int(count) for name, count, *_ in rows}
    assert len(rows) == len(found) == 2 * len(bench_ratings.LOOKS)
    for name in bench_ratings.LOOKS:
        assert found[f"{name}, over HTTP"] == found[name]
    assert 0 < found["a person"] < found["the newest"]
    assert found["a word that none holds"] == 0
