# SPDX-License-Identifier: Apache-2.0
"""What may be imported where: plugins are light, and only a backend knows its framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

FRAMEWORKS = ("torch", "mlx", "mlx_lm", "transformers", "peft", "safetensors", "tokenizers")
LIGHT = ("backends.torch", "backends.mlx", "objectives.rewards")
FREE = (
    *("job.types", "job.settings", "process.serve", "process.worker"),
    *("round.rollouts", "objectives.advantages", "round.batches", "round.run"),
    *("objectives", "objectives.mispo", "gate"),
)


@pytest.mark.parametrize(("modules", "banned"), [(LIGHT, (*FRAMEWORKS, "numpy")), (FREE, FRAMEWORKS)])
def test_no_framework_comes_along(modules: tuple[str, ...], banned: tuple[str, ...]) -> None:
    code = "; ".join(
        [
            "import sys",
            *(f"import goodbot_training.{name}" for name in modules),
            f"sys.exit(', '.join(set({banned!r}) & set(sys.modules)) or 0)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_backends_say_what_they_need() -> None:
    from goodbot_training.backends import mlx, torch

    specs = [torch.register_backend(), mlx.register_backend()]
    assert [(spec.name, spec.extra, spec.priority) for spec in specs] == [
        ("torch", "torch", 10),
        ("mlx", "mlx", 20 if sys.platform == "darwin" else 5),
    ]
    for spec in specs:
        module, _, name = spec.factory.partition(":")
        assert module.startswith(f"goodbot_training.backends.{spec.name}.")
        assert name.isidentifier()
