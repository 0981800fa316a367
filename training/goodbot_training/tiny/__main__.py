# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny model: ``python -m goodbot_training.tiny [--out DIR] [--seed N]``.

Same machine and seed, same bytes of weights and tokenizer. Takes some six CPU-minutes on one
thread and needs the ``torch`` extra; nothing else in goodbot depends on this script.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

import torch
from goodbot.base.printing import say

from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.card import model_card
from goodbot_training.tiny.evaluate import evaluate
from goodbot_training.tiny.export import export_config, export_tokenizer, export_weights
from goodbot_training.tiny.sample import sample
from goodbot_training.tiny.tokens import train_tokenizer
from goodbot_training.tiny.train import STEPS, train

MIN_OVERALL, MIN_STYLE, MIN_FOLLOWED = 0.95, 0.90, 0.85


def _say(text: str) -> None:
    say(text, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m goodbot_training.tiny", description=__doc__)
    parser.add_argument("--out", type=Path, default=model_path(), help="where the model is written")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=STEPS, help="fewer make a worse model, sooner")
    return parser.parse_args()


def main() -> int:
    """Trains, writes and judges; the exit status is 1 where the model is not good enough."""
    arguments = _arguments()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.set_num_threads(1)

    tokenizer = train_tokenizer(arguments.seed)
    started = time.process_time()
    model = train(tokenizer, arguments.seed, _say, steps=arguments.steps)
    seconds = time.process_time() - started

    size = export_weights(model, out)
    export_config(model, out)
    export_tokenizer(tokenizer, out)
    # What is judged is what ships: the weights rounded to fp16, computed with in fp32.
    model = model.half().float()
    found = evaluate(
        partial(sample, model, tokenizer, temperature=TEMPERATURE, seed=arguments.seed), arguments.seed
    )
    card = model_card(
        parameters=sum(weight.numel() for weight in model.parameters()),
        size=size,
        seed=arguments.seed,
        steps=arguments.steps,
        seconds=seconds,
        found=found,
    )
    (out / "README.md").write_text(card, encoding="utf-8")
    _say(f"\n{found.table()}\n\n{size} bytes, {time.process_time():.0f} CPU seconds in all: {out}")
    good = (
        found.overall.accuracy >= MIN_OVERALL
        and all(tally.accuracy >= MIN_STYLE for tally in found.styles.values())
        and all(tally.accuracy >= MIN_FOLLOWED for tally in found.followed.values())
    )
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
