"""The gate on the shipped model: a learnt style passes, a wrecked model does not.

One real round each, on torch. (How well rounds learn is measured in tests/learning.)
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from goodbot.backend import LoraSettings, SampleRequest
from goodbot_training.round import run_round
from goodbot_training.types import Job

from tests.support import missing, require


@pytest.fixture(scope="module")
def model() -> Path:
    require("torch")
    import goodbot_training

    directory = Path(goodbot_training.__file__).parent / "tiny" / "model"
    if not (directory / "model.safetensors").exists():
        missing("the tiny model is not there")
    return directory


@pytest.fixture(scope="module")
def backend(model: Path) -> Any:
    from goodbot_training.backends.torch.trainer import TorchBackend

    backend = TorchBackend()
    backend.load(model, lora=LoraSettings())
    return backend


def answers(sampler: Any, *, offset: int, count: int = 40) -> list[Any]:
    countries = ["France", "Italy", "Spain", "Greece", "Norway", "Egypt", "Japan", "Cuba"]
    requests = [
        SampleRequest(
            messages=[{"role": "user", "content": f"What is the capital of {countries[n % 8]}?"}],
            max_tokens=48,
            seed=offset + n,
        )
        for n in range(count)
    ]
    return list(zip(requests, sampler.sample_many(requests), strict=True))


def friendly(text: str) -> bool:
    return text.startswith("Great")


def run(model: Path, backend: Any, output: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """One round that likes friendly answers; the events by name."""
    backend.load(model, lora=LoraSettings())
    sampler = backend.sampler()
    sampler.activate(0)
    items = [
        {
            "id": f"turn-{n}",
            "messages": list(request.messages),
            "response": answer.text,
            "prompt_tokens": list(answer.prompt),
            "tokens": list(answer.tokens),
            "logprobs": list(answer.logprobs),
            "temperature": 0.8,
            "version": 0,
            "reward": 1.0 if friendly(answer.text) else -1.0,
            "split": "held_out" if n % 5 == 0 else "train",
        }
        for n, (request, answer) in enumerate(answers(sampler, offset=0))
    ]
    job = {"protocol": 1, "model": str(model), "output": str(output), "settings": settings}
    events: list[dict[str, Any]] = []
    run_round(Job.parse(job | {"items": items}), backend, events.append)
    return {event["event"]: event for event in events}


def test_a_learnt_style_passes(model: Path, backend: Any, tmp_path: Path) -> None:
    events = run(model, backend, tmp_path, {"gate_anchors": 32})
    assert events["gate"]["passed"], events["gate"]
    sampler = backend.sampler()
    shares = []
    sampler.load_adapter(1, tmp_path)
    for version in (0, 1):
        sampler.activate(version)
        shares.append(fmean(friendly(a.text) for _, a in answers(sampler, offset=1000)))
    assert shares[1] - shares[0] > 0.2, shares


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.2, "kl": 0.0},
        {"learning_rate": 0.03, "kl": 0.0, "token_low": 1e-6, "token_high": 1e6},
    ],
)
def test_a_wrecked_model_is_refused(
    model: Path, backend: Any, tmp_path: Path, settings: dict[str, Any]
) -> None:
    events = run(model, backend, tmp_path, {"gate_anchors": 32, **settings})
    assert not events["gate"]["passed"], events["gate"]
    assert events["gate"]["reason"].endswith("."), "one sentence"
