# SPDX-License-Identifier: Apache-2.0
"""A model directory → a transformers causal LM on its device, in the type that it is computed in."""

# pyright: standard
# (the framework ships no complete types)

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from goodbot.base.errors import TrainingError
from goodbot.base.packages import install_line
from goodbot.base.worded import Worded
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from transformers.utils import logging as transformers_logging


def load(directory: Path, device: torch.device, bits: int | None) -> Any:
    """fp32 on a CPU, bf16 on CUDA; with `bits` 4 the projections are NF4 (QLoRA, arXiv 2305.14314).

    The head, the embeddings and the norms are never quantized. Nothing is downloaded, unpickled or
    executed. Raises TrainingError.
    """
    transformers_logging.disable_progress_bar()
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    options: dict[str, Any] = {}
    if bits is not None:
        if find_spec("bitsandbytes") is None or find_spec("accelerate") is None:
            lacks = (
                "A 4-bit base needs bitsandbytes. Install it with `{line}`, "
                "or take `base_bits` out of [training.settings]."
            )
            raise TrainingError(Worded(lacks, line=install_line("torch-4bit")))
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=dtype,
        )
    if bits is not None or device.type == "cuda":
        options["device_map"] = {"": device}  # each tensor goes where it belongs as it is read
    try:
        return AutoModelForCausalLM.from_pretrained(
            str(directory),
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            **options,
        )
    except Exception as error:  # safetensors and transformers each raise their own
        if "memory" in str(error):
            raise
        odd = "The model in {directory} cannot be loaded by {name}."
        raise TrainingError(Worded(odd, directory=directory, name="torch")) from error
