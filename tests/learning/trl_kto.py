# SPDX-License-Identifier: Apache-2.0
"""TRL's own KTOTrainer as an arm: a backend whose training loop is TRL's, all else being ours.

The same ratings, LoRA (rank, alpha, modules), batch size and number of optimizer steps as
goodbot's; TRL's defaults for the rest (beta 0.1, both weights 1, AdamW, a linear decay, batches in
order, its KL from mismatched pairs), but fp32 and no checkpointing, as in the other arms. TRL knows
no weights of single ratings and no publish gate; the round around it judges its adapter by ours.

Prompts reach it as text, through the same chat template, and it ends the answers itself. Given as
messages it would also train on the template's newline after the end token, which this small model
never learnt to expect (-14 nats): that one token would take nearly all of what is learnt.
"""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from goodbot.api.backend import OptimizerSettings, StepStats
from goodbot_training.backends.torch.trainer import TorchBackend
from goodbot_training.job.types import TRAIN, Job
from goodbot_training.round.batches import planned_steps

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before the next imports, which read it

from datasets import Dataset, disable_progress_bars
from peft import LoraConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
from trl.trainer.kto_config import KTOConfig
from trl.trainer.kto_trainer import KTOTrainer


class TrlKto(TorchBackend):
    """Trains one job with `trl.KTOTrainer`, and then holds the adapter that came of it."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def train(self, batches: Any, settings: OptimizerSettings, loss: Any, **more: Any) -> Iterator[StepStats]:
        """The steps that goodbot would take, by TRL; batches and loss are its own."""
        del batches, loss, more
        with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # TRL's own use of transformers
            steps, mean = self._fit(Path(directory), settings)
            self.load_adapter(Path(directory) / "adapter")
        for _ in range(steps):
            yield StepStats(loss=mean, kl=0.0, token_acceptance=1.0, trajectory_acceptance=1.0, grad_norm=0.0)

    def _fit(self, directory: Path, settings: OptimizerSettings) -> tuple[int, float]:
        disable_progress_bars()
        logging.getLogger("trl").setLevel(logging.ERROR)  # it advises on the weights, every round
        job, ours = self._job, self._job.settings
        rated = [item for item in job.items if item.split == TRAIN and item.reward]
        tokenizer: Any = AutoTokenizer.from_pretrained(str(job.model))
        data = Dataset.from_list(
            [
                {
                    "prompt": tokenizer.apply_chat_template(
                        list(item.messages), add_generation_prompt=True, tokenize=False
                    ),
                    "completion": item.response,
                    "label": item.reward > 0,
                }
                for item in rated
            ]
        ).shuffle(seed=job.seed)
        model: Any = AutoModelForCausalLM.from_pretrained(str(job.model), dtype="float32")
        lora = self._lora_config()
        if job.parent is not None:
            model, lora = PeftModel.from_pretrained(model, str(job.parent), is_trainable=True), None
        trainer: Any = KTOTrainer(
            model=model,
            args=KTOConfig(
                output_dir=str(directory / "trainer"),
                learning_rate=settings.learning_rate,
                max_steps=planned_steps(len(rated), ours),
                per_device_train_batch_size=ours.batch_size,
                seed=job.seed,
                bf16=False,
                gradient_checkpointing=False,
                use_cpu=self._model.device.type == "cpu",
                report_to="none",
                save_strategy="no",
                disable_tqdm=True,
                logging_strategy="no",
            ),
            train_dataset=data,
            processing_class=tokenizer,
            peft_config=lora,
        )
        trainer.remove_callback(PrinterCallback)
        result = trainer.train()
        trainer.model.save_pretrained(str(directory / "adapter"), selected_adapters=["default"])
        return result.global_step, result.training_loss

    def _lora_config(self) -> Any:
        return LoraConfig(
            r=self._lora.rank,
            lora_alpha=int(self._lora.alpha),
            target_modules=sorted({path.rsplit(".", 1)[-1] for path in self._model.shapes}),
            task_type="CAUSAL_LM",
        )
