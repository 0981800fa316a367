# SPDX-License-Identifier: Apache-2.0
"""Which matrices get LoRA, in every current family and in both frameworks, and that they learn."""

# pyright: standard
# (the frameworks ship no complete types)

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from goodbot.api import model_shape
from goodbot.api.backend import LoraSettings
from goodbot.api.sampler import SampleRequest
from goodbot.base.errors import AdapterError

from tests.support import require
from tests.training.backends.families import FAMILIES, VOCABULARY, Family, make, save
from tests.training.conftest import write_tokenizer
from tests.training.test_worker import FACTORIES, make_job

for _needed in ("torch", "peft", "transformers"):
    require(_needed)

import torch  # noqa: E402
from goodbot_training.backends.abilities import Abilities  # noqa: E402
from goodbot_training.backends.adapters import AdapterWeights, fit, fresh, read_adapter, write_adapter  # noqa: E402
from goodbot_training.backends.layout import lies_in  # noqa: E402
from goodbot_training.backends.torch import targets  # noqa: E402

RANK = 4
IDS = np.random.default_rng(0).integers(3, VOCABULARY, (2, 20))
EVERY = pytest.mark.parametrize("name", FAMILIES)
IN_MLX = pytest.mark.parametrize(
    "name", [name for name, family in FAMILIES.items() if family.mlx is not None]
)
LOOKING_AROUND = {"self_attn", "attn", "linear_attn", "mamba"}
"""What the families call attention, and what their hybrids have in its place."""
TORCH_ALONE: set[str] = set()
MLX_ALONE = {"gemma2"}
"""Families whose answers are written one by one, since rows of their caches cannot be joined."""
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")


class Adapted:
    """A tiny model with an adapter that has an effect."""

    def __init__(self, family: Family, directory: Path) -> None:
        self.family, self.directory = family, directory / "model"
        self.model = make(family)
        self.config = save(self.model, family, self.directory)
        self.architecture = model_shape.read(self.model.config.to_dict())
        experts = self.architecture.experts
        self.base = self.logits()
        self.layers = targets.inject(self.model, RANK, experts.count)
        self.shapes = {path: targets.shape(layer) for path, layer in self.layers.items()}
        started = fresh(self.shapes, rank=RANK, alpha=8.0, seed=1, expert_rank=experts.rank(RANK))
        random = np.random.default_rng(0)
        self.weights = AdapterWeights(
            rank=RANK,
            alpha=8.0,
            scale=2.0,
            pairs={
                path: (a, 0.1 * random.standard_normal(b.shape).astype(np.float32))
                for path, (a, b) in started.pairs.items()
            },
        )
        for path, layer in self.layers.items():
            for half, part in zip(self.halves(layer), self.weights.pairs[path], strict=True):
                half.weight.data = torch.tensor(part)
            layer.scaling[targets.NAME] = self.weights.scale
        self.adapted = self.logits()

    @staticmethod
    def halves(layer: Any) -> tuple[Any, Any]:
        return layer.lora_A[targets.NAME], layer.lora_B[targets.NAME]

    @torch.no_grad()
    def logits(self, model: Any = None) -> np.ndarray:
        return (model or self.model)(input_ids=torch.tensor(IDS)).logits.numpy()


_MADE: dict[str, Adapted] = {}


@pytest.fixture
def one(name: str, tmp_path_factory: pytest.TempPathFactory) -> Adapted:
    if name not in _MADE:
        _MADE[name] = Adapted(FAMILIES[name], tmp_path_factory.mktemp("family"))
    return _MADE[name]


@functools.cache
def in_mlx(one: Adapted) -> Any:
    """The same model, as mlx-lm loads it."""
    from goodbot_training.backends.mlx.model import MlxModel

    return MlxModel(one.directory, one.config, RANK, None).causal


def suffixes(paths: Any) -> set[str]:
    return {re.split(r"\.\d+\.", path, maxsplit=1)[1] for path in paths}


@EVERY
def test_every_projection_is_reached_and_nothing_else(one: Adapted) -> None:
    assert suffixes(one.layers) == one.family.targets
    assert not any("vision" in path or "lm_head" in path for path in one.layers)


@EVERY
def test_attention_is_told_from_the_rest_by_what_it_takes(one: Adapted) -> None:
    around = targets.attention(one.model, one.layers)
    found = suffixes(path for path in one.layers if lies_in(path, around))
    assert found == {path for path in one.family.targets if path.split(".")[0] in LOOKING_AROUND}
    assert found not in (set(), one.family.targets)
    assert targets.attention(one.model, [p for p in one.layers if lies_in(p, around)]) == set()


@EVERY
def test_every_target_learns_and_the_base_stands_still(one: Adapted) -> None:
    one.model.zero_grad()
    one.model(input_ids=torch.tensor(IDS)).logits.logsumexp(-1).sum().backward()
    for path, layer in one.layers.items():
        for half in one.halves(layer):
            assert half.weight.grad is not None, path
            assert half.weight.grad.any(), path
    ours = {id(half.weight) for layer in one.layers.values() for half in one.halves(layer)}
    assert all(p.grad is None for p in one.model.parameters() if id(p) not in ours)


@EVERY
def test_without_the_adapter_the_base_is_exact(one: Adapted) -> None:
    assert np.abs(one.adapted - one.base).max() > 0.05
    for layer in one.layers.values():
        layer.enable_adapters(False)
    np.testing.assert_array_equal(one.logits(), one.base)
    for layer in one.layers.values():
        layer.enable_adapters(True)
    np.testing.assert_array_equal(one.logits(), one.adapted)


# peft says that a rank pattern for experts is ignored, and goes by it; that a Conv1D is transposed;
# and, as it matches names anywhere, that we bring nothing for the vision tower.
@pytest.mark.filterwarnings("ignore:The following (rank|alpha)_pattern keys:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:fan_in_fan_out is set to False")
@pytest.mark.filterwarnings("ignore:Found missing adapter keys.*vision_tower")
@EVERY
def test_peft_itself_reads_what_is_written(one: Adapted, tmp_path: Path) -> None:
    from peft import PeftModel

    write_adapter(tmp_path, one.weights)
    again = fit(read_adapter(tmp_path), one.shapes, tmp_path)
    assert list(again.pairs) == list(one.shapes)
    for path, (a, b) in one.weights.pairs.items():
        np.testing.assert_array_equal(again.pairs[path][0], a)
        np.testing.assert_array_equal(again.pairs[path][1], b)
    plain = make(one.family)
    if not one.family.peft:
        with pytest.raises(ValueError, match="incompatible"):
            PeftModel.from_pretrained(plain, str(tmp_path))
        return
    theirs = PeftModel.from_pretrained(plain, str(tmp_path)).eval()
    np.testing.assert_allclose(one.logits(theirs), one.adapted, atol=1e-4)


@EVERY
def test_the_config_alone_tells_how_many_weights_there_are(one: Adapted) -> None:
    found, read = one.model, one.architecture
    adapter = {id(half.weight) for layer in one.layers.values() for half in one.halves(layer)}
    counted = sum(
        p.numel()
        for path, p in found.named_parameters()
        if p.ndim > 1
        and id(p) not in adapter  # norms are left out
        and not any(part in path for part in ("vision", "multi_modal", "wpe"))
    )
    assert read.parameters == counted
    assert read.lora(RANK) == sum(a.size + b.size for a, b in one.weights.pairs.values())


@IN_MLX
def test_mlx_reaches_the_same_and_reads_the_same_adapter(one: Adapted, tmp_path: Path) -> None:
    require("mlx_lm")
    import mlx.core as mx
    import mlx.nn as nn
    from goodbot_training.backends.mlx.model import MlxModel
    from mlx.utils import tree_flatten

    model = MlxModel(one.directory, one.config, RANK, None)
    assert sorted(model.shapes.values()) == sorted(one.shapes.values())
    if one.family.kind != "mixtral":  # which mlx-lm calls block_sparse_moe as its checkpoint does
        assert model.shapes == one.shapes
        around = targets.attention(one.model, one.layers)
        assert {path: lies_in(path, model.attention) for path in model.shapes} == {
            path: lies_in(path, around) for path in one.shapes
        }
    ids = mx.array(IDS)
    base = np.array(model.causal(ids))
    np.testing.assert_allclose(base, one.base, atol=1e-4)

    write_adapter(tmp_path, one.weights)
    model.assign(model.prepare(fit(read_adapter(tmp_path), model.shapes, tmp_path)))
    np.testing.assert_allclose(np.array(model.causal(ids)), one.adapted, atol=1e-3)
    back = fit(model.extract(), one.shapes, tmp_path)
    for path, (a, b) in one.weights.pairs.items():
        np.testing.assert_array_equal(back.pairs[path][0], a)
        np.testing.assert_array_equal(back.pairs[path][1], b)

    def loss() -> Any:
        return mx.logsumexp(model.causal(ids), axis=-1).sum()

    gradients: Any = tree_flatten(nn.value_and_grad(model.causal, loss)()[1])
    assert len(gradients) == 2 * len(model.shapes)
    assert [name for name, value in gradients if not mx.any(value != 0).item()] == []
    model.enabled = False
    np.testing.assert_array_equal(np.array(model.causal(ids)), base)


def test_a_name_never_matters(tmp_path: Path) -> None:
    """A sparse hybrid in a directory, with a `_name_or_path`, that speaks of another model."""
    from goodbot_training.backends.torch.model import TorchModel

    family = FAMILIES["qwen3 next"]
    found = []
    for name in ("Qwen3-Next", "Llama-3-8B-dense-gpt2"):
        config = save(make(family), family, tmp_path / name) | {"_name_or_path": name}
        found.append(TorchModel(tmp_path / name, config, RANK, None).shapes)
    assert found[0] == found[1]
    assert suffixes(found[0]) == family.targets


def test_an_adapter_of_other_experts_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = "model.layers.0.mlp.experts.gate_up_proj"
    write_adapter(tmp_path, fresh({path: (4, 48, 32)}, rank=4, alpha=4.0, seed=0, expert_rank=2))
    with pytest.raises(AdapterError, match="use the training backend that the adapter was made"):
        fit(read_adapter(tmp_path), {path: (4, 32, 48)}, tmp_path)
    moved = "model.layers.0.block_sparse_moe.experts.gate_up_proj"
    assert list(fit(read_adapter(tmp_path), {moved: (4, 48, 32)}, tmp_path).pairs) == [moved]


@pytest.fixture(scope="module")
def sparse_chat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random mixture of experts that can chat."""
    directory = tmp_path_factory.mktemp("sparse")
    save(make(FAMILIES["qwen3 moe"]), FAMILIES["qwen3 moe"], directory)
    write_tokenizer(directory)
    return directory


def load(backend: str, model: Path, adapter: Path | None = None) -> Any:
    require("torch" if backend == "torch" else "mlx_lm")
    module, _, name = FACTORIES[backend].partition(":")
    loaded = getattr(__import__(module, fromlist=[name]), name)()
    loaded.load(model, lora=LoraSettings(rank=RANK, alpha=8.0), adapter=adapter, seed=1)
    return loaded


@pytest.mark.parametrize("backend", FACTORIES)
def test_a_mixture_of_experts_is_trained_saved_and_asked(
    backend: str, sparse_chat: Path, tmp_path: Path
) -> None:
    from goodbot_training.job.types import Job
    from goodbot_training.round.run import run_round

    events: list[Any] = []
    job = Job.parse(make_job(sparse_chat, tmp_path / "candidate"))
    run_round(job, load(backend, sparse_chat), events.append)
    assert events[-1]["event"] == "done"

    stored = read_adapter(tmp_path / "candidate")
    experts = {path: b for path, (_, b) in stored.pairs.items() if path.endswith("gate_up_proj")}
    assert {b.shape for b in experts.values()} == {(4, 48, RANK // 2)}
    assert all(b.any() for b in experts.values())
    config = json.loads((tmp_path / "candidate/adapter_config.json").read_text())
    assert config["target_parameters"] == ["experts.gate_up_proj", "experts.down_proj"]

    question = [{"role": "user", "content": "What is the capital of France?"}]
    request = SampleRequest(messages=question, max_tokens=6, seed=3)
    scores = []
    for reader in FACTORIES:
        again = load(reader, sparse_chat, tmp_path / "candidate")
        sampler = again.sampler()
        sampler.load_adapter(1, tmp_path / "candidate")
        sampler.activate(1)
        assert len(sampler.sample(request).tokens) > 0
        turn = again.tokenize(question, "Paris.")
        for adapter in (True, False):
            scores.append(again.logprobs([turn], temperature=[1.0], adapter=adapter)[0])
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-3)
    assert np.abs(scores[0] - scores[1]).max() > 1e-3
    shutil.rmtree(tmp_path)


def drawn(steps: Any, *, shared: bool) -> tuple[list[list[int]], np.ndarray]:
    """The likeliest tokens of three rows, two of which begin alike, and their log-probs."""
    starts = np.random.default_rng(3).integers(3, VOCABULARY, (2, 24))
    rows, cold, unused = [0, 1, 0], np.zeros(3, np.float32), np.zeros(3, np.float32)
    inputs = starts[rows]
    if shared:
        steps.read(starts[:, :-1])
        steps.select(rows)
        inputs = inputs[:, -1:]
    tokens: list[list[int]] = []
    logprobs: list[list[float]] = []
    for _ in range(8):
        token, logprob = steps(inputs, cold, unused)
        tokens.append(token)
        logprobs.append(logprob)
        inputs = np.asarray(token, np.int64)[:, None]
    return tokens, np.asarray(logprobs)


def assert_same(one: Any, other: Any) -> None:
    assert one[0] == other[0]
    np.testing.assert_allclose(one[1], other[1], atol=1e-4)


@EVERY
def test_a_beginning_that_rows_share_is_read_once_and_no_answer_changes(one: Adapted) -> None:
    from goodbot_training.backends.torch.sampler import TorchDecoder

    def steps() -> TorchDecoder:
        return TorchDecoder(one.model, None, torch.device("cpu"))

    assert_same(drawn(steps(), shared=True), drawn(steps(), shared=False))


@IN_MLX
def test_in_mlx_too(one: Adapted) -> None:
    require("mlx_lm")
    from goodbot_training.backends.mlx.sampler import MlxDecoder

    causal = in_mlx(one)
    assert_same(drawn(MlxDecoder(causal), shared=True), drawn(MlxDecoder(causal), shared=False))


def alone(steps: Any, prompt: np.ndarray, count: int) -> Any:
    """The likeliest tokens of one row, and their log-probs."""
    zero = np.zeros(1, np.float32)
    inputs, found = prompt[None], []
    for _ in range(count):
        (token,), (logprob,) = steps(inputs, zero, zero)
        found.append((token, logprob))
        inputs = np.asarray([[token]], np.int64)
    return zip(*found, strict=True)


def joined(make: Callable[[], Any]) -> None:
    """A row that joins a longer one, and stays when that one leaves, is what it is alone."""
    random = np.random.default_rng(4)
    prompts = [random.integers(3, VOCABULARY, size) for size in (24, 5)]
    expected = [[*map(list, alone(make(), prompt, 9))] for prompt in prompts]
    rows = [make(), make()]
    tokens: list[list[int]] = [[], []]
    scores: list[list[float]] = [[], []]

    def step(steps: Any, numbers: list[int], inputs: np.ndarray) -> None:
        zero = np.zeros(len(numbers), np.float32)
        for number, token, logprob in zip(numbers, *steps(inputs, zero, zero), strict=True):
            tokens[number].append(token)
            scores[number].append(logprob)

    def last(numbers: list[int]) -> np.ndarray:
        return np.asarray([tokens[number][-1:] for number in numbers], np.int64)

    for number, prompt in enumerate(prompts):
        step(rows[number], [number], prompt[None])
    step(rows[0], [0], last([0]))
    rows[0].join(rows[1])
    for _ in range(4):
        step(rows[0], [0, 1], last([0, 1]))
    rows[0].select([1])
    for _ in range(4):
        step(rows[0], [1], last([1]))
    for number, count in ((0, 6), (1, 9)):
        assert tokens[number] == expected[number][0][:count]
        np.testing.assert_allclose(scores[number], expected[number][1][:count], atol=1e-4)


@EVERY
def test_rows_come_and_go_in_one_batch(name: str, one: Adapted) -> None:
    from goodbot_training.backends.torch.sampler import TorchDecoder

    def make() -> TorchDecoder:
        return TorchDecoder(one.model, None, torch.device("cpu"))

    assert_mixes(make, name not in TORCH_ALONE)


@IN_MLX
def test_in_mlx_they_come_and_go_too(name: str, one: Adapted) -> None:
    """And are read in parts, in one batch of mlx-lm's."""
    require("mlx_lm")
    from goodbot_training.backends.mlx.batching import MlxBatching

    model: Any = SimpleNamespace(causal=in_mlx(one), context=256, rounding=2e-3, mixes_versions=False)
    chat: Any = None  # of no use to what is only tried
    assert MlxBatching(model, chat, lambda _: nullcontext())._can_join(0, set()) == (name not in MLX_ALONE)


def assert_mixes(make: Callable[[], Any], expected: bool) -> None:
    """What is found out by trying is true; a family that cannot is written alone."""
    model: Any = SimpleNamespace(decoder=make, rounding=2e-3)
    assert Abilities(model).mixes == expected
    if expected:
        joined(make)
