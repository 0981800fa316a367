# SPDX-License-Identifier: Apache-2.0
"""One contender in a process of its own: load, train over the ratings, print what it cost as JSON.

`python -m tests.benchmarks.contenders` reads one JSON object: `contender` (`torch`, `mlx`, `trl`, or
`exact`, which writes what others are compared with), `model` (a directory), `ratings`, `passes` and how many
of them come before the clock is started (`warm_up`), `bits`, `recompute`, `tokens_per_forward`, `rows`
(TRL's, at once), `written` (whether the model's weights lie on disk). Those that may be missing: `exact` (the
directory of the shallow model), `compiled`, `attention`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from goodbot.api.backend import LoraSettings, OptimizerSettings
from goodbot_training.job.settings import TrainingSettings

from tests.benchmarks import exact
from tests.benchmarks.shapes import Ratings, random_weights, training_flops
from tests.benchmarks.tuning import allow_compiling, kernels, tuned

LORA = LoraSettings(rank=8, alpha=16.0)
BATCH = 8


def main() -> None:
    """Read the task, run it, print the measures."""
    task = json.loads(sys.stdin.readline())
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no result
    allow_compiling(task)
    every: dict[str, Any] = {"torch": _goodbot, "mlx": _goodbot, "trl": _trl, "exact": exact.reference}
    runner = every[task["contender"]]
    with nullcontext() if task["written"] else random_weights():
        found: dict[str, Any] = runner(task)
    if task.get("exact") and task["contender"] == "torch":
        _give_back()
        try:
            found |= exact.off(task)
        except Exception as error:  # what was measured is still worth its minutes
            found["exact_failed"] = " ".join(str(error).split())[-80:]
    print(json.dumps(found), file=out, flush=True)


def _goodbot(task: dict[str, Any]) -> dict[str, Any]:
    from goodbot_training.backends.scoring import score
    from goodbot_training.objectives import make_objective
    from goodbot_training.process.worker import make_backend
    from goodbot_training.round.batches import make_batches

    name = task["contender"]
    backend: Any = make_backend(f"goodbot_training.backends.{name}.trainer:{name.capitalize()}Backend")
    backend.load(Path(task["model"]), lora=LORA, seed=0, bits=task["bits"])
    tuned(backend, task)
    items = Ratings(**task["ratings"]).items()
    turns = [backend.tokenize(item["messages"], item["response"]) for item in items]
    settings = TrainingSettings(
        batch_size=BATCH, max_passes=task["passes"], steps=task["passes"] * len(turns) // BATCH
    )
    budget = task["tokens_per_forward"]
    with _measured(name) as scored:
        base = score(backend, turns, [1.0] * len(turns), adapter=False, budget=budget)
    rollouts = rollouts_of(items, turns, base)
    batches = list(make_batches(rollouts, [r.reward for r in rollouts], settings, seed=0))
    optimizer, seen = optimizer_of(settings, task), set[str]()
    if name == "torch" and task["warm_up"] and not task.get("compiled"):
        with kernels() as seen:  # before the clock, and not where what comes first is measured, too
            backend.examine(batches[0], optimizer, make_objective(settings))
    steps = backend.train(iter(batches), optimizer, make_objective(settings))
    counted = task["passes"] - task["warm_up"]
    for _ in islice(steps, task["warm_up"] * len(turns) // BATCH):
        pass
    with _measured(name) as loop:
        taken = len(list(steps))
    tokens = sum(len(turn.prompt) + len(turn.response) - 1 for turn in turns)
    response = sum(len(turn.response) for turn in turns)
    weights = backend._model.extract().pairs.values()
    config = json.loads((Path(task["model"]) / "config.json").read_text())
    head = config["hidden_size"] * config["vocab_size"]
    experts = backend._model.experts
    lora = sum(  # as one token meets them
        (a.size + b.size) * (experts.active / experts.count if a.ndim == 3 else 1) for a, b in weights
    )
    return {
        **loop,
        "scoring": scored["cpu"],
        "tokens": tokens * counted,
        "steps": taken,
        "flops": training_flops(tokens, response, backend.parameters, lora, head) * counted,
        "rate": matmul_rate(name, sorted(set(backend._model.shapes.values()))),
        "attention": task.get("attention") or ", ".join(sorted(seen)),
    }


def rollouts_of(items: Sequence[dict[str, Any]], turns: Sequence[Any], scores: Sequence[Any]) -> list[Any]:
    """Rated answers of the base's own, by what it says of them."""
    from goodbot_training.job.rollout import Rollout

    return [
        Rollout(
            id=item["id"],
            turn=turn,
            temperature=1.0,
            reward=item["reward"],
            weight=1.0,
            split="train",
            sampling_logprobs=row,
            reference_logprobs=row,
            off_policy=False,
        )
        for item, turn, row in zip(items, turns, scores, strict=True)
    ]


def optimizer_of(settings: TrainingSettings, task: Mapping[str, Any]) -> OptimizerSettings:
    """How a task's steps are taken."""
    return OptimizerSettings(
        attention_rate=settings.attention_rate,
        damping=settings.damping,
        tokens_per_forward=task["tokens_per_forward"],
        recompute=task["recompute"],
    )


def _give_back() -> None:
    """The large model's memory, before a shallow one is loaded."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _trl(task: dict[str, Any]) -> dict[str, Any]:
    """TRL's KTOTrainer at its best: fp32 on a CPU as goodbot, no checkpointing unless goodbot does,
    the reference computed beforehand. Its KL term takes one more forward pass, over mismatched pairs.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from datasets import Dataset, disable_progress_bars
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl.trainer.kto_config import KTOConfig
    from trl.trainer.kto_trainer import KTOTrainer

    disable_progress_bars()
    warnings.simplefilter("ignore")
    cuda = torch.cuda.is_available()
    tokenizer: Any = AutoTokenizer.from_pretrained(task["model"])
    model: Any = AutoModelForCausalLM.from_pretrained(
        task["model"], dtype=torch.bfloat16 if cuda else torch.float32
    )
    items = Ratings(**task["ratings"]).items()
    rows = [
        {
            "prompt": tokenizer.apply_chat_template(
                item["messages"], add_generation_prompt=True, tokenize=False
            ),
            "completion": item["response"],
            "label": item["reward"] > 0,
        }
        for item in items
    ]
    warm_up = task["warm_up"] * len(items) // BATCH
    with tempfile.TemporaryDirectory() as directory:
        arguments = KTOConfig(
            output_dir=directory,
            num_train_epochs=task["passes"],
            learning_rate=1e-4,
            per_device_train_batch_size=task["rows"],
            gradient_accumulation_steps=BATCH // task["rows"],
            bf16=cuda,
            use_cpu=not cuda,
            gradient_checkpointing=task["recompute"],
            precompute_ref_log_probs=True,
            max_length=4096,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer: Any = KTOTrainer(
            model=model,
            args=arguments,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            peft_config=LoraConfig(
                r=LORA.rank,
                lora_alpha=int(LORA.alpha),
                target_modules="all-linear",
                target_parameters=_stacks(model),
                task_type="CAUSAL_LM",
            ),
        )

        class Loop(TrainerCallback):
            """Times the steps alone: neither the setting up nor the taking down."""

            found: dict[str, float] = {}  # noqa: RUF012
            watch: Any = None

            def on_step_begin(self, _: Any, state: Any, *__: Any, **___: Any) -> None:
                if self.watch is None and state.global_step == warm_up:
                    self.watch = _measured("torch")
                    self.found = self.watch.__enter__()

            def on_train_end(self, *_: Any, **__: Any) -> None:
                self.watch.__exit__(None, None, None)

        loop = Loop()
        trainer.add_callback(loop)
        result = trainer.train()
        trainer.model.save_pretrained(directory)
    ids = [(row["prompt_ids"], row["completion_ids"]) for row in trainer.train_dataset]
    tokens = sum(len(prompt) + len(answer) - 1 for prompt, answer in ids)
    counted = task["passes"] - task["warm_up"]
    return {**loop.found, "tokens": tokens * counted, "steps": result.global_step - warm_up}


def _stacks(model: Any) -> list[str]:
    """The parameters that hold a matrix for each expert, which goodbot trains too."""
    return sorted({".".join(n.split(".")[-2:]) for n, p in model.named_parameters() if p.ndim == 3})


@contextmanager
def _measured(backend: str) -> Iterator[dict[str, float]]:
    """CPU and wall seconds, and MB of memory at most above what was held before; on CUDA, in all."""
    found: dict[str, float] = {}
    cuda: Any = None
    if backend == "torch":
        import torch

        cuda = torch.cuda if torch.cuda.is_available() else None
    if cuda:
        cuda.synchronize()
        cuda.reset_peak_memory_stats()
    before = _reset_peak()
    cpu, wall = time.process_time(), time.perf_counter()
    yield found
    if cuda:
        cuda.synchronize()
    found["cpu"], found["wall"] = time.process_time() - cpu, time.perf_counter() - wall
    # The kernel counts pages in batches: what took none may read a few less than before.
    found["peak"] = cuda.max_memory_allocated() / 1e6 if cuda else max(_status("VmHWM") - before, 0.0)


def _reset_peak() -> float:
    """Start the kernel's high-water mark anew; MB held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return _status("VmRSS")


def _status(name: str) -> float:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return next(float(line.split()[1]) for line in lines if line.startswith(name)) / 1e3


def matmul_rate(backend: str, shapes: list[tuple[int, ...]]) -> float:
    """FLOP/s of bare products `(rows, in) x (in, out)` in the model's shapes, all of them in turn."""
    rows = 4096 if _on_gpu(backend) else 1024
    plain = [shape[-2:] for shape in shapes]
    flops = 2.0 * rows * sum(out * width for out, width in plain)
    once = _torch_products(plain, rows) if backend == "torch" else _mlx_products(plain, rows)
    once()
    rates: list[float] = []
    for _ in range(5):
        start, count = time.perf_counter(), 0
        cpu = time.process_time()
        while time.perf_counter() - start < 0.1:
            once()
            count += 1
        used = time.perf_counter() - start if _on_gpu(backend) else time.process_time() - cpu
        rates.append(count * flops / used)
    return max(rates)


def _on_gpu(backend: str) -> bool:
    if backend == "mlx":
        return False
    import torch

    return torch.cuda.is_available()


def _torch_products(shapes: list[Any], rows: int) -> Callable[[], None]:
    import torch

    cuda = torch.cuda.is_available()
    kind: Any = {"device": "cuda", "dtype": torch.bfloat16} if cuda else {}
    pairs = [(torch.randn(rows, w, **kind), torch.randn(o, w, **kind)) for o, w in shapes]

    def once() -> None:
        with torch.no_grad():
            for x, weight in pairs:
                torch.nn.functional.linear(x, weight)
        if cuda:
            torch.cuda.synchronize()

    return once


def _mlx_products(shapes: list[Any], rows: int) -> Callable[[], None]:
    import mlx.core as mx

    pairs = [(mx.random.normal((rows, w)), mx.random.normal((o, w))) for o, w in shapes]
    mx.eval(pairs)

    def once() -> None:
        mx.eval([x @ weight.T for x, weight in pairs])

    return once


if __name__ == "__main__":
    main()
