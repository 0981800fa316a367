# SPDX-License-Identifier: Apache-2.0
"""Numbers and files of a downloaded model or adapter: bounded before they drive a loop, a wait or a copy."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import model_shape
from goodbot.api.adapters import weights
from goodbot.api.adapters.files import MAX_TEXT
from goodbot.api.model import ResolvedModel
from goodbot.base.errors import AdapterError, ConfigError
from goodbot.inference.models.directory import check, read_config
from goodbot.inference.servers import token_text
from goodbot.learning.adapters import importing

from tests.architecture.source import ROOT

TINY = ROOT / "training/goodbot_training/tiny/model"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TINY, tmp_path / "model"))


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 200_000_000},
        {"num_hidden_layers": 2001},
        {"hidden_size": 10**12},
        {"vocab_size": 1 << 26},
        {"num_attention_heads": 10**9},
    ],
    ids=str,
)
def test_s9_no_number_of_a_config_is_gone_through_without_bound(change: dict[str, Any]) -> None:
    config = json.loads((TINY / "config.json").read_bytes()) | change
    with pytest.raises(ConfigError, match=r"config\.json"):
        model_shape.read(config)


class Noted(dict[str, Any]):
    """A config that says which of its keys are read."""

    def __init__(self, config: dict[str, Any], read: set[str]) -> None:
        super().__init__(config)
        self.read = read

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)


MOE = {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
MAMBA = {"layer_types": ["mamba", "x"], "mamba_n_heads": 2, "mamba_d_head": 4, "mamba_n_groups": 1}
FAMILIES: list[dict[str, Any]] = [
    {},
    MOE,
    {**MOE, "moe_layers": [0], "n_shared_experts": 1},
    {**MAMBA, "mamba_d_state": 4, "mamba_d_conv": 4},
    {"kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "q_lora_rank": 4},
    {"linear_num_value_heads": 2, "linear_num_key_heads": 2, "full_attention_interval": 2},
]
ODD: tuple[Any, ...] = (
    [],
    [{}],
    [[]],
    [None],
    {},
    {"a": 1},
    {"a": {}},
    "",
    "x",
    "64",
    -1,
    1.5,
    1e999,
    True,
    10**30,
)


def looked_at(config: dict[str, Any]) -> None:
    """All that is made of a config. Raises ConfigError."""
    model_shape.unusable(config, "torch")
    model_shape.doubt(config)
    model_shape.context_of(config)
    model_shape.experts(config)
    model_shape.read(config).lora(8)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: " ".join(one) or "plain")
def test_s9_no_value_of_a_config_ends_in_anything_but_a_sentence(family: dict[str, Any]) -> None:
    config, read = json.loads((TINY / "config.json").read_bytes()) | family, set[str]()
    with contextlib.suppress(ConfigError):
        looked_at(Noted(config, read))
    assert len(read) > 25, "it does not see what is read"
    for key in sorted(read):
        for value in ODD:
            with contextlib.suppress(ConfigError):
                looked_at(config | {key: value})
            with contextlib.suppress(ConfigError):
                looked_at({"model_type": "x", "text_config": config | {key: value}})


@pytest.mark.parametrize(
    "name", ["mlp_only_layers", "moe_layers", "moe_layer_freq", "mlp_layer_types", "layer_types"]
)
@pytest.mark.parametrize(
    "value", [[-1] * 100_000, [{}], "x", {"a": 1}], ids=["long", "of tables", "text", "table"]
)
def test_s9_a_list_about_layers_is_one_and_no_longer_than_there_can_be_layers(name: str, value: Any) -> None:
    config = json.loads((TINY / "config.json").read_bytes()) | MOE | {name: value}
    with pytest.raises(ConfigError, match=rf"config\.json has no usable {name}"):
        model_shape.read(config)


def test_s9_what_names_each_layer_is_gone_through_once() -> None:
    many = {"num_hidden_layers": 2000, "mlp_only_layers": [-1] * 2000}
    config = json.loads((TINY / "config.json").read_bytes()) | MOE | many
    asked = Counted(config["mlp_only_layers"])
    model_shape.read(config | {"mlp_only_layers": asked})
    assert asked.times <= 2


class Counted(list[int]):
    """How many times it is gone through."""

    times = 0

    def __iter__(self) -> Iterator[int]:
        self.times += 1
        return super().__iter__()

    def __contains__(self, item: object) -> bool:
        self.times += 1
        return super().__contains__(item)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json", "README.md", "new"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a device"])
def test_s10_nobody_waits_for_what_is_no_plain_file(model: Path, name: str, kind: str) -> None:
    (model / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(model / name)
    elif kind == "socket":
        before = Path.cwd()
        os.chdir(model)  # the name of a socket must be short
        try:
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(name)
        finally:
            os.chdir(before)
    else:
        (model / name).symlink_to(os.devnull)
    with pytest.raises(ConfigError, match=f"{name} is no plain file: take it out"):
        check(model)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "note.txt"])
def test_a_link_out_of_a_model_s_directory_is_no_file_of_it(model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "private").write_text("{}")
    (model / name).unlink(missing_ok=True)
    (model / name).symlink_to(tmp_path / "private")
    with pytest.raises(ConfigError, match=f"{name} is a link out of the model's directory"):
        check(model)


def test_a_snapshot_of_the_hub_s_cache_links_to_its_own_files(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "models--some--body"
    snapshot = cache / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    model.rename(cache / "blobs")
    for file in (cache / "blobs").iterdir():
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    check(snapshot)
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("../../../private")
    (tmp_path / "private").write_text("{}")
    with pytest.raises(ConfigError, match="is a link out of"):
        check(snapshot)


def test_s10_a_text_without_end_is_not_read(model: Path) -> None:
    with (model / "tokenizer.json").open("r+b") as file:
        file.truncate(300 << 20)  # a hole: it takes no space
    with pytest.raises(ConfigError, match=r"tokenizer\.json has 300 MB"):
        read_config(model)


def test_s10_a_tokenizer_strips_no_more_than_there_is(tmp_path: Path) -> None:
    steps = {"type": "Strip", "content": "_", "start": 10**12, "stop": 10**12}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"decoder": steps}))
    decode = token_text.decoder(tmp_path)
    assert decode is not None
    assert decode("__a_b__") == "a_b"


GROWS = {"type": "Replace", "pattern": {"String": "a"}, "content": "aaaa"}


@pytest.mark.parametrize(
    "steps",
    [
        [{"type": "Replace", "pattern": {"String": ""}, "content": "aa"}],
        [{"type": "Replace", "pattern": {"String": ["a"]}, "content": "aa"}],
        [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * (1 << 20)}],
        [GROWS] * 1000,
        [{"type": "Strip", "content": "_", "start": 1e999, "stop": 1}],
        [{"type": "Strip", "content": "", "start": 10**9, "stop": 1}],
        [{"type": ["x"]}],
        "x",
    ],
    ids=lambda steps: str(steps)[:60],
)
def test_s9_a_decoder_that_means_harm_is_none(tmp_path: Path, steps: Any) -> None:
    decoder = {"decoder": {"type": "Sequence", "decoders": steps}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(decoder))
    assert token_text.decoder(tmp_path) is None


def test_s9_no_token_becomes_longer_than_a_text_of_it_can_be(tmp_path: Path) -> None:
    decoder = {"decoder": {"type": "Sequence", "decoders": [GROWS] * 40}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(decoder))
    decode = token_text.decoder(tmp_path)
    assert decode is not None
    assert decode("ab") == "a" * 1024


@pytest.mark.parametrize("name", ["adapter_model.safetensors", "adapters.safetensors"])
async def test_s11_what_is_too_large_for_this_model_is_not_copied(
    model: Path, tmp_path: Path, name: str
) -> None:
    adapter, home = tmp_path / "adapter", tmp_path / "home"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    with (adapter / name).open("wb") as file:
        file.truncate(3 << 30)
    await _refused(adapter, home, model, "over the limit")


async def test_s11_a_header_is_looked_at_before_the_rest_is_copied(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def copy(*_: object) -> None:
        raise AssertionError("it is copied")

    monkeypatch.setattr(importing, "_copy", copy)
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_config.json").write_text("{}")
    with (adapter / "adapter_model.safetensors").open("wb") as file:
        file.truncate(MAX_TEXT)
    await _refused(adapter, tmp_path / "home", model, "safetensors")


async def _refused(adapter: Path, home: Path, model: Path, words: str) -> None:
    here = ResolvedModel(name="owner/model", path=model)
    with pytest.raises(AdapterError, match=words):
        async with importing.prepared(adapter, home, here, lambda *_: None):
            pass
    assert not [path for path in home.rglob("*") if path.is_file()]


class Name:
    """A name in a foreign list; counts how often any of them is read."""

    read = 0

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        Name.read += 1
        return self.text


@pytest.mark.parametrize("which", ["target_modules", "target_parameters", "rank_pattern"])
def test_s9_a_foreign_list_is_gone_through_once(which: str) -> None:
    """Not once for each of up to ten thousand matrices."""
    names = [*map(Name, (f"x.{number}" for number in range(500))), Name("q_proj"), Name("z")]
    lists = {
        "target_modules": ["q_proj"],
        which: dict.fromkeys(names, 4) if which == "rank_pattern" else names,
    }
    shapes = {
        f"base_model.model.layers.{layer}.q_proj.lora_{half}.weight": (4, 4)
        for layer in range(200)
        for half in "AB"
    }
    Name.read = 0
    found = weights.pairs(shapes, {"r": 4, "lora_alpha": 8, **lists})
    assert len(found) == 200
    assert Name.read == len(names)


def test_s9_what_a_config_names_is_found_as_before() -> None:
    def pairs(path: str, rank: int, **config: Any) -> Any:
        shapes = {f"{path}.lora_A.weight": (rank, 8), f"{path}.lora_B.weight": (8, rank)}
        return weights.pairs(shapes, {"r": 4, "lora_alpha": 8, **config})

    assert pairs("a.mlp.experts.base_layer", 16, target_parameters=["mlp.experts.down", "x"])
    assert pairs("a.mlp.experts", 12, target_parameters=["experts.down"], rank_pattern={"experts.down": 6})
    assert pairs("a.q", 2, target_modules=["q"], rank_pattern={"b.q": 3, "a\\.q": 2, "q": 1})
    for path, rank, config in (
        ("a.q", 4, {"target_modules": ["aq", "", ".q", "b.q"]}),
        ("a.q", 4, {"target_modules": "a.q"}),
        ("a.q", 2, {"target_modules": ["q"], "rank_pattern": {"q": 4, "a.q": 2}}),
        ("a.mlp.experts", 14, {"target_parameters": ["experts.down"]}),
        ("a.mlp.experts", 4, {"target_parameters": [f"experts.{n}" for n in range(65)]}),
        (".".join("a" * 66), 4, {"target_modules": ["a"]}),
    ):
        with pytest.raises(AdapterError):
            pairs(path, rank, **config)
