# SPDX-License-Identifier: Apache-2.0
"""`goodbot train --dry-run` against the round itself: CPU seconds of whole processes, side by side.

Each estimate and each round is a fresh child with one thread; what the round took is what the system
says of it, from its start to its end.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from goodbot_training.tiny import model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.judge import SimulatedRater
from goodbot_training.tiny.styles import STYLES, render

from tests.benchmarks.shapes import CPU, Ratings, make_model

FACTORIES = {
    "torch": "goodbot_training.backends.torch.trainer:TorchBackend",
    "mlx": "goodbot_training.backends.mlx.trainer:MlxBackend",
}
_COLUMNS = (
    "model",
    "backend",
    "ratings",
    "estimate, CPU-s",
    "range",
    "round, CPU-s",
    "off by",
    "answers in the gate",
    "load",
    "rollouts",
    "train",
    "gate",
    "the estimate itself, CPU-s",
)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.bench_estimate")
    installed = "torch" if find_spec("torch") else "mlx"
    parser.add_argument("--backend", choices=FACTORIES, default=installed)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", choices=("tiny", "4M"))
    parser.add_argument("--ratings", type=int, nargs="+", default=[20, 40, 64])
    options = parser.parse_args(arguments)
    print("\n## What `train --dry-run` says, beside what the round takes\n")
    print("| " + " | ".join(_COLUMNS) + " |\n|" + "---|" * len(_COLUMNS))
    with tempfile.TemporaryDirectory() as place:
        models = {"tiny": model_path()}
        if options.only != "tiny":
            models["4M"] = Path(place) / "4M"
            make_model(models["4M"], CPU["4M Llama"])
        for name, model in models.items():
            if options.only not in (None, name):
                continue
            for count in options.ratings:
                items = tiny_items(count) if name == "tiny" else Ratings(count=count).items()
                for item in items[:: len(items) // (len(items) // 5)]:
                    item["split"] = "held_out"
                for _ in range(options.repeats):
                    row = compare(model, items, FACTORIES[options.backend])
                    print(f"| {name} | {options.backend} | {count} | {row} |", flush=True)


def compare(model: Path, items: list[dict[str, Any]], factory: str) -> str:
    """One row: the estimate, then the round."""
    estimate, own = child("plan", model, items, factory)
    found = estimate["estimate"]
    done, took = child("train", model, items, factory)
    total, low, high = (found[name]["cpu"] for name in ("total", "least", "most"))
    parts = [f"{found['parts'][name]['cpu']:.2f}" for name in ("load", "rollouts", "train", "gate")]
    cells = [f"{total:.1f}", f"{low:.1f}–{high:.1f}", f"{took:.1f}", f"{total / took - 1:+.0%}"]
    cells.append(f"{done['gate'].get('anchors', 0):.0f}")
    return " | ".join([*cells, *parts, f"{own:.1f}"])


def child(mode: str, model: Path, items: list[dict[str, Any]], factory: str) -> tuple[dict[str, Any], float]:
    """The last event of a worker, and its CPU seconds."""
    with tempfile.TemporaryDirectory() as output:
        job = {
            "protocol": 1,
            "run": 1,
            "model": str(model),
            "parent": None,
            "output": output,
            "seed": 0,
            "settings": {},
            "baseline": {"mean": 0.0, "weight": 0.0},
            "behaviour": {},
            "items": items,
            "anchors": [],
        }
        with subprocess.Popen(
            [sys.executable, "-m", "goodbot_training.process.worker", mode, factory],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            lines = [json.loads(line) for line in process.stdout]
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
    if lines[-1]["event"] != "done":
        raise RuntimeError(lines[-1].get("reason", "the worker ended without a word"))
    gates = [line["metrics"] for line in lines if line["event"] == "gate"]
    return {**lines[-1], "gate": gates[0] if gates else {}}, usage.ru_utime + usage.ru_stime


def tiny_items(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Answers in several styles to questions of the tiny model's world, rated by who likes one."""
    questions = Random(seed).sample(split(seed)[0], count)
    rater = SimulatedRater("pirate", 0.1, seed)
    items: list[dict[str, Any]] = []
    for index, question in enumerate(questions):
        style = [*STYLES][index % len(STYLES)]
        text = render(question, style, Random(index))
        items.append(
            {
                "id": f"turn-{index}",
                "messages": [{"role": "user", "content": question.text}],
                "response": text,
                "prompt_tokens": [],
                "tokens": [],
                "logprobs": [],
                "temperature": 0.8,
                "version": 0,
                "reward": float(rater.rate(question.text, text)),
                "weight": 1.0,
                "split": "train",
            }
        )
    return items


if __name__ == "__main__":
    main(sys.argv[1:])
