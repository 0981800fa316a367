# SPDX-License-Identifier: Apache-2.0
"""The benchmark of products runs, small. What it measures is nobody's test."""

from __future__ import annotations

import pytest

from tests.benchmarks import bench_products
from tests.benchmarks.shapes import CPU, toy
from tests.support import require


@pytest.mark.parametrize("only", ["products", "4M Llama"])
def test_both_ways_are_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], only: str
) -> None:
    require("torch")
    require("peft")
    import torch
    from goodbot_training.backends.torch import prepacked

    if not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch is built without oneDNN")
    monkeypatch.setattr(prepacked, "_LEAST", 0)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)  # others measure on
    monkeypatch.setattr(bench_products, "MATRICES", ((64, 32),))
    monkeypatch.setattr(bench_products, "ROWS", (2,))
    monkeypatch.setattr(bench_products, "CHATS", (2,))
    monkeypatch.setattr(bench_products, "MODELS", {"4M Llama": (toy(CPU["4M Llama"]), 600, 3)})
    bench_products.main(["--repeats", "1", "--only", only])
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line[2].isdigit()]
    assert len(rows) == 1
    for cell in rows[0][2:4]:
        assert float(cell.strip(" |").replace(",", "")) > 0
