# SPDX-License-Identifier: Apache-2.0
"""What a model costs: memory that there is, memory that is needed, and what is proposed from it."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path

import pytest
from goodbot.api import estimate
from goodbot.api.model_shape import doubt, read, unusable
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.base.machine import device as machine
from goodbot.base.machine.device import Device, available_memory
from goodbot.config.file import ConfigFile
from goodbot.inference.models import catalogue, choose
from goodbot.inference.models.directory import read_config
from goodbot.inference.models.disk import stored
from goodbot.inference.models.obtain import Obtained, obtain

from tests.core.inference.models.conftest import REPO, TINY
from tests.core.inference.models.fake_hub import FakeHub

GIB = 1 << 30
CPU = Device(backend="torch", device="cpu", memory=32 * GIB, flops=4e12, bandwidth=3e11, step=1e-3)
GPU = Device(backend="torch", device="cuda", memory=80 * GIB, flops=1e14, bandwidth=1e12, step=5e-4)


def _cost(name: str, place: Device) -> estimate.ModelEstimate:
    entry = catalogue.find(name)
    assert entry
    return estimate.estimate(entry.architecture, place, entry.bytes)


def test_serving_and_training_each_hold_the_weights() -> None:
    weights = 596_000_000 * 4
    cost = _cost("Qwen/Qwen3-0.6B", CPU)
    assert weights < cost.serving < 2 * weights
    assert cost.training > weights
    assert cost.limit == int(0.7 * CPU.memory)
    assert cost.serving + cost.training <= cost.limit


def test_a_training_of_short_questions_takes_less_than_one_of_the_longest_turns() -> None:
    """What is told first is what a usual round takes; the longest turns are told beside it."""
    entry = catalogue.find("Qwen/Qwen3-0.6B")
    assert entry
    cost = estimate.estimate(entry.architecture, CPU, entry.bytes)
    assert cost.tokens > 1600
    short = estimate.training(entry.architecture, CPU, entry.bytes, tokens=1600)
    assert cost.usual == short < cost.training
    small = dataclasses.replace(CPU, memory=12 * GIB)
    tight = estimate.estimate(entry.architecture, small, entry.bytes)
    assert tight.usual <= tight.training


def test_logits_are_there_a_chunk_at_a_time() -> None:
    entry = catalogue.find("Qwen/Qwen3-0.6B")
    assert entry
    vocabulary = entry.architecture.vocabulary
    rows = estimate.CHUNK // vocabulary
    assert estimate.logits(entry.architecture, 1) == 12 * vocabulary
    assert estimate.logits(entry.architecture, 4096) == 12 * vocabulary * rows


def test_a_processor_takes_twice_the_memory_of_a_gpu() -> None:
    on_cpu, on_gpu = (_cost("Qwen/Qwen3-8B", place) for place in (CPU, GPU))
    assert 1.7 < on_cpu.serving / on_gpu.serving < 2.1


def test_a_processor_keeps_the_head_beside_an_embedding_that_is_the_same() -> None:
    entry = catalogue.find("Qwen/Qwen3-1.7B")
    assert entry
    model = entry.architecture
    assert model.tied
    apart = dataclasses.replace(model, tied=False)
    assert estimate.serving(model, CPU, 0) == estimate.serving(apart, CPU, 0)
    for place in (GPU, dataclasses.replace(CPU, backend="mlx")):
        assert estimate.serving(model, place, 0) < estimate.serving(apart, place, 0)


@pytest.mark.skipif(sys.platform == "darwin", reason="there MLX computes by Metal")
def test_mlx_on_a_processor_is_as_fast_as_the_products_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "measured", lambda: (8e10, 1e10))
    rounds: list[float] = []
    for there in (False, True):
        monkeypatch.setattr(machine, "openblas", lambda there=there: there)
        rounds.append(_cost("Qwen/Qwen3-0.6B", machine.place("mlx", memory=64 * GIB)).round)
    assert rounds[0] > 5 * rounds[1]


def test_the_longest_turn_shrinks_with_the_memory_until_it_does_not_fit() -> None:
    def tokens(gib: int) -> int:
        return _cost("Qwen/Qwen3-0.6B", dataclasses.replace(CPU, memory=gib * GIB)).tokens

    found = [tokens(gib) for gib in (8, 16, 24, 32, 48, 64)]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == estimate.MOST
    assert all(count == 0 or count >= estimate.FEWEST for count in found)


def test_more_of_everything_costs_more() -> None:
    costs = [_cost(entry.name, GPU) for entry in catalogue.entries() if "Qwen3" in entry.name]
    for smaller, larger in itertools.pairwise(costs):
        assert smaller.serving <= larger.serving
        assert smaller.answer <= larger.answer
        assert smaller.round <= larger.round


def test_the_weights_of_the_tiny_model_are_counted_from_its_config() -> None:
    config = read_config(TINY)
    assert read(config).parameters == pytest.approx(stored(TINY) / 2, rel=0.03)
    assert unusable(config, "torch") == unusable(config, "mlx") == doubt(config) == ""


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"model_type": "nonesuch"}, "does not know the architecture 'nonesuch'"),
        ({"model_type": "qwen3", "quantization_config": {}}, "quantized"),
        ({"model_type": "qwen3", "quantization": {"bits": 4}}, "quantized for MLX"),
    ],
)
def test_what_torch_cannot_load(config: dict[str, object], why: str) -> None:
    assert why in unusable(config, "torch")


def test_mlx_takes_its_own_quantized_weights() -> None:
    config = {"model_type": "qwen3", "quantization": {"bits": 4}, "quantization_config": {}}
    assert unusable(config, "mlx") == ""
    assert unusable({"model_type": "x"}, "somebody's own backend") == ""


def test_what_was_not_tried_is_doubted() -> None:
    assert "pictures" in doubt({"model_type": "qwen3_5", "text_config": {}})
    assert doubt({"model_type": "qwen3_moe", "num_experts": 8}) == ""


@pytest.mark.parametrize("wrong", [{}, {"hidden_size": "x"}, {"hidden_size": -1}, {"hidden_size": True}])
def test_a_config_without_sizes_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="hidden_size"):
        read({"num_attention_heads": 1, **wrong})


# -- the machine


def _machine(root: Path, available_kb: int, **files: str) -> int:
    (root / "proc/self").mkdir(parents=True)
    meminfo = f"MemTotal: 99 kB\nMemAvailable:   {available_kb} kB\n"
    (root / "proc/meminfo").write_text(meminfo)
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return available_memory(root)


def test_memory_is_what_the_system_says_is_free(tmp_path: Path) -> None:
    assert _machine(tmp_path, 1000) == 1024 * 1000
    assert available_memory(tmp_path / "nothing") == machine.physical_memory()


def test_a_containers_limit_counts_and_its_file_pages_do_not(tmp_path: Path) -> None:
    base = "sys__fs__cgroup"
    found = _machine(
        tmp_path,
        10**9,
        **{
            "proc__self__cgroup": "0::/a/b\n",
            f"{base}__a__memory.max": "5000000\n",
            f"{base}__a__memory.current": "3000000\n",
            f"{base}__a__memory.stat": "anon 1\ninactive_file 1000000\n",
            f"{base}__a__b__memory.max": "max\n",
            f"{base}__a__b__memory.current": "1\n",
        },
    )
    assert found == 3_000_000


def test_a_container_that_sees_only_its_own_mount(tmp_path: Path) -> None:
    base = "sys__fs__cgroup"
    found = _machine(
        tmp_path,
        10**9,
        **{
            "proc__self__cgroup": "0::/system.slice/of-the-host\n",
            f"{base}__memory.max": "5000000\n",
            f"{base}__memory.current": "1000000\n",
        },
    )
    assert found == 4_000_000


def test_the_first_version_of_control_groups(tmp_path: Path) -> None:
    base = "sys__fs__cgroup__memory__box"
    found = _machine(
        tmp_path,
        10**9,
        **{
            "proc__self__cgroup": "4:memory:/box\n1:cpu:/box\n",
            f"{base}__memory.limit_in_bytes": "5000000\n",
            f"{base}__memory.usage_in_bytes": "2000000\n",
        },
    )
    assert found == 3_000_000


def test_this_machine_is_measured() -> None:
    flops, bandwidth = machine.measured()
    assert 1e8 < flops < 1e14
    assert 1e8 < bandwidth < 1e13


def test_who_waits_for_a_processor_is_not_measured_as_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 5.0)  # each look at the clock on the wall is five seconds later
    processor = itertools.count(0, 0.25)
    monkeypatch.setattr(machine.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(machine.time, "process_time", lambda: next(processor))
    assert machine._best(lambda: None) == 0.25


def test_a_round_of_short_questions_costs_what_it_was_seen_to_take() -> None:
    """SmolLM2-135M-Instruct on one thread of an EPYC: 428 processor seconds, 122 tokens a turn."""
    seen = Device(backend="torch", device="cpu", memory=24 * GIB, flops=8e10, bandwidth=1e10, step=2e-3)
    found = _cost("HuggingFaceTB/SmolLM2-135M-Instruct", seen)
    assert 428 / 1.6 < found.round < 428 * 1.6


# -- proposals


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose speed does not depend on who else is on it."""

    def place(backend: str, *, memory: int | None = None) -> Device:
        slow = dataclasses.replace(CPU, backend="mlx", flops=2e9)
        return dataclasses.replace(CPU if backend == "torch" else slow, memory=memory or 32 * GIB)

    monkeypatch.setattr(choose, "place", place)


def _with(hub: FakeHub, *names: str) -> None:
    for name in names:
        hub.models[name] = hub.models[REPO]


def test_auto_takes_the_largest_that_fits(hub: FakeHub, tmp_path: Path, quick: None) -> None:
    names = [entry.name for entry in catalogue.entries()]
    _with(hub, *names)
    chosen = [choose.propose(tmp_path, ["torch"], memory=gib * GIB).name for gib in (12, 32, 64, 256)]
    sizes = [names.index(name) for name in chosen]
    assert sizes == sorted(sizes)
    assert len(set(chosen)) > 2
    found = choose.propose(tmp_path, ["torch"], memory=32 * GIB)
    assert found.source == f"{found.name}@{hub.commit(found.name)}"
    assert found.download == sum(
        len(data) for name, data in hub.models[REPO].items() if name.endswith((".json", ".safetensors"))
    )
    assert not found.gated
    assert found.name in found.why
    assert all(option.estimate.fits for option in found.options)
    assert hub.sent == [s for s in hub.sent if s.file == "config.json"], "nothing is downloaded"


def test_auto_passes_over_what_needs_an_account(hub: FakeHub, tmp_path: Path, quick: None) -> None:
    _with(hub, *(entry.name for entry in catalogue.entries()))
    found = choose.propose(tmp_path, ["torch"], memory=30 * GIB)
    larger = [option for option in found.options if option.parameters > 596_000_000]
    assert larger, "this test is about a memory in which only gated ones are larger"
    assert all(option.gated for option in larger)
    assert (found.name, found.gated) == ("Qwen/Qwen3-0.6B", False)
    assert "needs no account" in found.why


def test_the_reason_names_every_cause_that_a_larger_one_was_passed_over(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = dataclasses.replace(CPU, memory=24 * 10**9, flops=6e10, bandwidth=1.1e10, step=2e-3)

    def place(backend: str, *, memory: int | None = None) -> Device:
        return laptop

    monkeypatch.setattr(choose, "place", place)
    _with(hub, *(entry.name for entry in catalogue.entries()))
    why = choose.propose(tmp_path, ["torch"]).why
    assert why.startswith("HuggingFaceTB/SmolLM2-135M-Instruct is the largest that serves and")
    assert ", needs no account, answers within 20 s; SmolLM2-360M-Instruct would take" in why


def test_auto_prefers_the_backend_that_computes_faster(hub: FakeHub, tmp_path: Path, quick: None) -> None:
    _with(hub, *(entry.name for entry in catalogue.entries()))
    found = choose.propose(tmp_path, ["mlx", "torch"])
    assert (found.backend, found.name_backend) == ("torch", True)
    assert not choose.propose(tmp_path, ["torch", "mlx"]).name_backend
    file = ConfigFile(tmp_path / "home")
    choose.settle(file, found, Obtained(name="m", reference="m", path=tmp_path))
    assert file.get("training.backend") == "torch"
    with pytest.raises(ConfigError, match=r"no model answers within 20 s.*PyTorch is faster"):
        choose.propose(tmp_path, ["mlx"])


def test_auto_says_when_nothing_fits(tmp_path: Path, quick: None) -> None:
    with pytest.raises(ConfigError, match="no model fits: HuggingFaceTB/SmolLM2-135M-Instruct"):
        choose.propose(tmp_path, ["torch"], memory=GIB)
    with pytest.raises(ConfigError, match="`goodbot doctor` says how to install one"):
        choose.propose(tmp_path, [])


def test_the_config_gets_what_training_needs_here(tmp_path: Path, hub: FakeHub) -> None:
    home = tmp_path / "home"
    found = choose.choose(REPO, home, "torch")
    got = obtain(found.source, home)
    cost = found.estimate
    assert cost
    tight = dataclasses.replace(found, estimate=dataclasses.replace(cost, tokens=1280))
    file = ConfigFile(home)
    choose.settle(file, tight, got)
    assert file.get("training.settings") == {"tokens_per_forward": 1280, "max_sequence_tokens": 1280}
    assert file.save().model.path == got.reference
    large = dataclasses.replace(found, estimate=dataclasses.replace(cost, tokens=0))
    choose.settle(file, large, got)  # it does not fit, and somebody wants it all the same
    assert file.get("training.settings.tokens_per_forward") == estimate.FEWEST
    plain = ConfigFile(tmp_path / "other")
    choose.settle(plain, dataclasses.replace(found, estimate=None), got)
    assert plain.get("training") is None


@pytest.mark.parametrize("wanted", ["quen3", "a b", "qwen3-0.6bb", "\x1b[2J"])
def test_a_word_that_means_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: str) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_PORTS", "")
    with pytest.raises(GoodbotError, match="is no directory"):
        choose.choose(wanted, tmp_path, "torch")


def test_a_short_name_is_enough_for_the_catalogue(
    tmp_path: Path, hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOODBOT_SERVER_PORTS", "")
    _with(hub, "Qwen/Qwen3-0.6B")
    assert choose.choose("qwen3-0.6b", tmp_path, "torch").name == "Qwen/Qwen3-0.6B"


def test_a_directory_costs_no_download(tmp_path: Path) -> None:
    found = choose.choose(str(TINY), tmp_path, "torch")
    assert (found.download, found.source, found.gated) == (0, str(TINY), False)
    assert found.estimate
    assert found.estimate.fits
