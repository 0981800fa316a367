"""What an outvoted rater has said weighs nothing: the round is the one without it, and says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support import require
from tests.training.test_worker import make_job

require("torch")

from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.round import run_round  # noqa: E402
from goodbot_training.types import Job  # noqa: E402


def trained(model: Path, output: Path, items: list[dict[str, Any]]) -> tuple[bytes, str]:
    """The weights that came out, and what the gate said."""
    output.mkdir()
    raw = make_job(model, output, items=items)
    raw["anchors"] = [item["messages"] for item in items[:2]]
    verdict = run_round(Job.parse(raw), TorchBackend(), lambda event: None)
    return (output / "adapter_model.safetensors").read_bytes(), verdict.reason


def test_a_round_goes_without_what_weighs_nothing(random_model: Path, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = make_job(random_model, tmp_path)["items"]
    unheard = [{**items[0], "id": "unheard-1", "reward": 1.0, "weight": 0.0}]
    unheard += [{**items[1], "id": "unheard-2", "reward": -1.0, "weight": 0.0}]
    without, plain = trained(random_model, tmp_path / "without", items)
    beside, said = trained(random_model, tmp_path / "beside", [*items, *unheard])
    assert beside == without
    assert said == (
        "2 rated answers were left out: who rated them wants the opposite of the others. " + plain
    )
