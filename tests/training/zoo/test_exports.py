# SPDX-License-Identifier: Apache-2.0
"""What a family's model answers on MLX and as GGUF is what it answers on torch; else a sentence says why."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.backend import LoraSettings
from goodbot.base.errors import AdapterError

from tests.support import require
from tests.training.zoo import making, table
from tests.training.zoo.dialects import DIALECTS, ROWS

for _needed in ("torch", "peft", "transformers"):
    require(_needed)

from goodbot_training.backends.adapters import AdapterWeights, fresh, write_adapter  # noqa: E402
from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.formats import gguf_adapter, gguf_model, jobs, proof, reference  # noqa: E402
from goodbot_training.formats.checkpoint import Checkpoint  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
CONVERSATION = [
    {"role": "system", "content": "Be terse."},
    {"role": "user", "content": "What colour is grass? Größe, Привет, 你好 🎉"},
]
RANK = 4
ELSEWHERE = "convert_hf_to_gguf|no GGUF is made|experts of a mixture"


def adapter(shapes: Any, experts: int) -> AdapterWeights:
    """Random, and strong enough to be seen."""
    started = fresh(shapes, rank=RANK, alpha=8.0, seed=1, expert_rank=experts)
    dice = np.random.default_rng(1)
    pairs = {
        path: (a, 0.1 * dice.standard_normal(b.shape).astype(np.float32))
        for path, (a, b) in started.pairs.items()
    }
    return AdapterWeights(rank=RANK, alpha=8.0, scale=2.0, pairs=pairs)


def loaded(backend: Any, directory: Path, lora: Path | None = None) -> Any:
    settings = LoraSettings(rank=RANK, alpha=8.0)
    backend.load(directory, lora=settings, adapter=lora, seed=1)
    return backend


def adapted(directory: Path, into: Path) -> tuple[Any, AdapterWeights]:
    """The model on torch with a random adapter, and the adapter, which lies in `into`."""
    model = loaded(TorchBackend(), directory)._model
    weights = adapter(model.shapes, model.experts.rank(RANK))
    into.mkdir()
    write_adapter(into, weights)
    return loaded(TorchBackend(), directory, into), weights


@pytest.mark.parametrize("row", [row for row in ROWS if table.mlx(row)])
def test_mlx_agrees_with_torch(row: str, zoo: making.Zoo, tmp_path: Path) -> None:
    require("mlx_lm")
    from goodbot_training.backends.mlx.trainer import MlxBackend

    one, _ = adapted(zoo.model(row)[0], tmp_path / "adapter")
    other = loaded(MlxBackend(), zoo.model(row, for_mlx=True)[0], tmp_path / "adapter")
    turns = [backend.tokenize(CONVERSATION, "Green, mostly.") for backend in (one, other)]
    assert turns[0] == turns[1]
    for by in (True, False):
        here, there = (
            backend.logprobs(turns[:1], temperature=[1.0], adapter=by)[0] for backend in (one, other)
        )
        np.testing.assert_allclose(there, here, atol=2e-3)


def converted(to: str, directory: Path, output: Path, source: Path | None) -> dict[str, Any]:
    events: list[dict[str, Any]] = []
    job = jobs.ConversionJob(to=to, model=directory, source=source, output=output, name="zoo")
    jobs.run(job, events.append)
    return events[-1]


@pytest.mark.parametrize("row", ROWS)
def test_an_adapter_as_gguf_gives_the_same_or_is_refused(row: str, zoo: making.Zoo, tmp_path: Path) -> None:
    require("gguf")
    directory, _ = zoo.model(row)
    _, weights = adapted(directory, tmp_path / "adapter")
    output = tmp_path / "adapter.gguf"
    if row not in table.GGUF_ADAPTER:
        with pytest.raises(AdapterError, match=ELSEWHERE):
            converted("gguf", directory, output, tmp_path / "adapter")
        assert not output.exists()
        return
    done = converted("gguf", directory, output, tmp_path / "adapter")
    assert done["proof"]["apart"] <= done["proof"]["allowed"]
    found = gguf_adapter.read(output, Checkpoint(directory))
    assert proof.of_numbers(weights, found).apart <= 1e-5


@pytest.mark.parametrize("row", ROWS)
def test_a_whole_model_as_gguf_agrees_with_torch_or_is_refused(
    row: str, zoo: making.Zoo, tmp_path: Path
) -> None:
    gguf = require("gguf")
    directory, _ = zoo.model(row)
    output, dialect = tmp_path / "model.gguf", DIALECTS[ROWS[row][1]]
    if row not in table.GGUF_WHOLE:
        with pytest.raises(AdapterError, match=ELSEWHERE):
            converted("gguf-base", directory, output, None)
        assert not output.exists()
        return
    converted("gguf-base", directory, output, None)
    backend = loaded(TorchBackend(), directory)
    turn = backend.tokenize(CONVERSATION, "Green, mostly.")
    ids = np.asarray((*turn.prompt, *turn.response))
    logits = reference.logits(*gguf_model.as_llama_cpp(output, Checkpoint(directory)), ids)
    logprobs = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    answer = range(len(turn.prompt), len(ids))
    there = [logprobs[at - 1, ids[at]] for at in answer]
    here = backend.logprobs([turn], temperature=[1.0], adapter=False)[0]
    np.testing.assert_allclose(there, here, atol=2e-3)

    reader, known = gguf.GGUFReader(output), making.tokens(dialect)
    said = {key: reader.get_field(key) for key in reader.fields}
    for end in ("eos", "eot"):
        assert said[f"tokenizer.ggml.{end}_token_id"].contents() == known[dialect.end]
    tokens = said["tokenizer.ggml.tokens"].contents()
    assert all(tokens[at] == name for name, at in known.items())
    assert said["tokenizer.chat_template"].contents() == dialect.template
