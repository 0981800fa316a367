# SPDX-License-Identifier: Apache-2.0
"""T12 to T15: whoever hands goodbot an adapter gets a sentence, not a crash, a wait or a foothold."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import struct
import tarfile
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.adapters.base import Base
from goodbot.api.adapters.files import MAX_WEIGHTS, plain, read
from goodbot.api.adapters.manifest import CONFIG, MANIFEST, WEIGHTS, AdapterManifest, publish
from goodbot.api.adapters.weights import check_weights, pairs, require_fit
from goodbot.api.model import ResolvedModel
from goodbot.base.errors import AdapterError
from goodbot.learning.adapters import archive, importing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import within

LORA: dict[str, Any] = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "up_proj"]}
BASE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 32,
}
Q = "base_model.model.model.layers.0.self_attn.q_proj"


def shapes(path: str = Q, a: tuple[int, int] = (2, 8), b: tuple[int, int] = (8, 2)) -> dict[str, Any]:
    return {f"{path}.lora_A.weight": a, f"{path}.lora_B.weight": b}


def safetensors(found: dict[str, Any], value: float = 0.01) -> bytes:
    header, end = {}, 0
    for name, shape in found.items():
        size = 4 * shape[0] * shape[1]
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + struct.pack("<f", value) * (end // 4)


def adapter(path: Path, found: dict[str, Any] | None = None, **config: Any) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / WEIGHTS).write_bytes(safetensors(found or shapes()))
    (path / CONFIG).write_text(json.dumps({**LORA, **config}))
    return path


def base(tmp_path: Path) -> ResolvedModel:
    path = tmp_path / "model"
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(BASE))
    (path / "model.safetensors").write_bytes(b"")
    return ResolvedModel(name="model", path=path)


def test_a_sound_one_passes_each_check(tmp_path: Path) -> None:
    found = pairs(check_weights(adapter(tmp_path / "a") / WEIGHTS), LORA)
    require_fit(found, BASE)
    assert list(found) == ["model.layers.0.self_attn.q_proj"]


BAD_CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "no rank": ({"r": None}, "rank"),
    "rank of text": ({"r": "2"}, "rank"),
    "rank true": ({"r": True}, "rank"),
    "rank 0": ({"r": 0}, "rank"),
    "rank of a million": ({"r": 10**6}, "rank"),
    "another rank": ({"r": 4}, "rank"),
    "another rank there": ({"rank_pattern": {"q_proj": 4}}, "rank"),
    "a pattern that would never end": ({"r": 4, "rank_pattern": {"(a+)+$": 2}}, "rank"),
    "no alpha": ({"lora_alpha": None}, "alpha"),
    "alpha below 0": ({"lora_alpha": -1}, "alpha"),
    "alpha without end": ({"lora_alpha": float("inf")}, "alpha"),
    "alpha that is no number": ({"lora_alpha": float("nan")}, "alpha"),
    "not LoRA": ({"peft_type": "IA3"}, "LoRA"),
    "DoRA": ({"use_dora": True}, "use_dora"),
    "whole modules": ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
    "layers twice": ({"layer_replication": [[0, 2]]}, "layer_replication"),
    "tokens": ({"trainable_token_indices": [1]}, "trainable_token_indices"),
    "not among its targets": ({"target_modules": ["k_proj"]}, "targets"),
    "targets as an expression": ({"target_modules": ".*"}, "targets"),
    "no targets": ({"target_modules": None}, "targets"),
    "targets of numbers": ({"target_modules": [1, None, {}]}, "targets"),
}
BAD_SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "A alone": ({f"{Q}.lora_A.weight": (2, 8)}, "do not fit each other"),
    "B alone": ({f"{Q}.lora_B.weight": (8, 2)}, "do not fit each other"),
    "ranks apart": (shapes(b=(8, 3)), "do not fit each other"),
    "no weight": ({f"{Q}.lora_A.bias": (2, 8)}, "no LoRA weight"),
    "an embedding": ({f"{Q}.lora_embedding_A.weight": (2, 8)}, "no LoRA weight"),
    "too wide": (shapes(a=(2, 9)), "another model"),
    "too high": (shapes(b=(9, 2)), "another model"),
    "the other way round": (shapes("model.layers.0.mlp.up_proj", (2, 16), (16, 2)), "another model"),
    "a layer too many": (shapes("model.layers.2.self_attn.q_proj"), "another model"),
    "a layer far off": (shapes("model.layers.99999999999.q_proj"), "another model"),
    "no layer": (shapes("model.q_proj"), "another model"),
    "the head": (shapes("lm_head", (2, 8), (32, 2)), "targets"),
}


@pytest.mark.parametrize(("config", "said"), BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_a_config_that_does_not_fit_its_matrices_is_refused(
    tmp_path: Path, config: dict[str, Any], said: str
) -> None:
    staging = adapter(tmp_path / "a", **config)
    with pytest.raises(AdapterError, match=said), within(1):
        pairs(check_weights(staging / WEIGHTS), {**LORA, **config})
    (tmp_path / "adapters").mkdir()
    with pytest.raises(AdapterError, match=said):
        publish(
            staging, tmp_path / "adapters", AdapterManifest(version=1, parent=0, run=1, model="m", files={})
        )
    assert list((tmp_path / "adapters").iterdir()) == []


@pytest.mark.parametrize(("found", "said"), BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_matrices_that_the_base_has_no_place_for_are_refused(
    tmp_path: Path, found: dict[str, Any], said: str
) -> None:
    staging = adapter(tmp_path / "a", found)
    with pytest.raises(AdapterError, match=said), within(1):
        require_fit(pairs(check_weights(staging / WEIGHTS), LORA), BASE)


def test_experts_have_their_own_rank_and_ours_pass() -> None:
    """A stack of four experts of rank 1 beside projections of rank 2, as we write it."""
    path = "base_model.model.model.layers.1.mlp.experts"
    config = {
        **LORA,
        "target_parameters": ["experts.gate_up_proj", "experts.down_proj"],
        "rank_pattern": {r"experts\.gate_up_proj": 1, r"experts\.down_proj": 1},
    }
    found = {**shapes(), **shapes(f"{path}.base_layer", (4, 8), (32, 4)), **shapes(path, (4, 16), (8, 4))}
    assert len(pairs(found, config)) == 3
    odd = {**found, **shapes(path, (3, 16), (8, 3))}
    with pytest.raises(AdapterError, match="rank"):
        pairs(odd, {**config, "rank_pattern": {r"experts\.down_proj": 2}})


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from([*LORA, "rank_pattern", "target_parameters", "use_dora"]), anything, max_size=4
    ),
    st.dictionaries(st.sampled_from([*BASE, "text_config", "num_experts"]), anything, max_size=3),
)
def test_no_config_raises_anything_else(config: dict[str, Any], model: dict[str, Any]) -> None:
    with contextlib.suppress(AdapterError):
        require_fit(pairs(shapes(), {**LORA, **config}), {**BASE, **model})


@settings(max_examples=200)
@given(st.data())
def test_any_bytes_of_a_header_may_be_anything(tmp_path: Path, data: st.DataObject) -> None:
    """A sound file with a piece of its header replaced: still exactly that adapter, or refused."""
    whole = bytearray(safetensors(shapes()))
    (length,) = struct.unpack("<Q", whole[:8])
    start = data.draw(st.integers(0, 8 + length - 1))
    piece = data.draw(st.binary(min_size=1, max_size=8))
    whole[start : start + len(piece)] = piece
    (tmp_path / WEIGHTS).write_bytes(bytes(whole))
    try:
        found = check_weights(tmp_path / WEIGHTS)
    except AdapterError:
        return
    assert sum(4 * a * b for a, b in found.values()) <= len(whole)


def test_a_header_costs_no_more_than_its_cap(tmp_path: Path) -> None:
    many = {f"x{n}.lora_A.weight": (1, 1) for n in range(20_000)}
    for content in (
        struct.pack("<Q", 1_000_000) + b'{"a":' * 200_000,
        struct.pack("<Q", 999_999) + b"[" * 999_999,
        struct.pack("<Q", 2**62),
        safetensors(many)[:1_000_000],
    ):
        (tmp_path / WEIGHTS).write_bytes(content)
        with pytest.raises(AdapterError), within(2):
            check_weights(tmp_path / WEIGHTS)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / CONFIG
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a sparse file: nothing is on the disk
    with pytest.raises(AdapterError, match="over the limit"), within(1):
        read(path)
    path.rename(tmp_path / WEIGHTS)
    with pytest.raises(AdapterError, match="over the limit"), within(1):
        check_weights(tmp_path / WEIGHTS)


@pytest.mark.parametrize(
    "what", ["link", "dangling link", "loop", "pipe", "socket", "directory", "/dev/zero"]
)
def test_only_plain_files_are_opened_and_none_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    path = tmp_path / "d" / "file"
    path.parent.mkdir()
    secret = tmp_path / "secret"
    secret.write_text("{}")
    if what == "link":
        path.symlink_to(secret)
    elif what == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    elif what == "loop":
        path.symlink_to(path)
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            monkeypatch.chdir(path.parent)  # a path of a socket is short
            server.bind("file")
    elif what == "directory":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(AdapterError), within(1), plain(path, limit=100):
        pass


def member(name: str, content: bytes = b"{}", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    return info, content


def packed(path: Path, *members: tuple[tarfile.TarInfo, bytes], kind: int = tarfile.USTAR_FORMAT) -> Path:
    with tarfile.open(path, "w", format=kind) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return path


def exported(tmp_path: Path) -> Path:
    """An archive that goodbot made."""
    (tmp_path / "adapters").mkdir()
    given = AdapterManifest(version=7, parent=3, run=9, model="model", files={}, ratings={"turn": [1]})
    directory, known = publish(
        adapter(tmp_path / "s"), tmp_path / "adapters", given.on(Base.of(base(tmp_path)))
    )
    archive.write(tmp_path / "v7.tar", directory, known, now=0.0)
    return tmp_path / "v7.tar"


def unpack(path: Path, tmp_path: Path) -> AdapterManifest:
    into = tmp_path / f"into-{len(list(tmp_path.iterdir()))}"
    into.mkdir()
    return archive.unpack(path, into)


def test_an_archive_comes_back_and_tells_no_rating(tmp_path: Path) -> None:
    path = exported(tmp_path)
    known = unpack(path, tmp_path)
    assert (known.version, known.run, known.ratings, known.parent) == (7, None, {}, 0)
    assert b"turn" not in path.read_bytes()


@pytest.mark.parametrize(
    "odd",
    [
        member("../evil"),
        member("/etc/cron.d/evil"),
        member("a/../../evil"),
        member("evil.py"),
        member("adapter_model.bin"),
        member(CONFIG),
        member(f"./{MANIFEST}"),
        member(f"{CONFIG}/"),
        member("x" * 90),
        member("adapter_config.json\u200b"),
        member("link", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        member("link", b"", type=tarfile.LNKTYPE, linkname=WEIGHTS),
        member(WEIGHTS, b"", type=tarfile.FIFOTYPE),
        member(WEIGHTS, b"", type=tarfile.CHRTYPE),
        member("d", b"", type=tarfile.DIRTYPE),
        member("sparse", b"", type=tarfile.GNUTYPE_SPARSE),
    ],
    ids=lambda odd: f"{odd[0].name[:24]} {odd[0].type!r}",
)
def test_nothing_else_comes_out_of_an_archive(tmp_path: Path, odd: tuple[tarfile.TarInfo, bytes]) -> None:
    path = exported(tmp_path)
    with tarfile.open(path) as tar:
        members = [(info, tar.extractfile(info).read()) for info in tar]  # type: ignore[union-attr]
    for at in (0, len(members)):
        forged = packed(tmp_path / "forged.tar", *members[:at], odd, *members[at:])
        before = {entry for entry in tmp_path.rglob("*") if "into" not in str(entry)}
        with pytest.raises(AdapterError):
            unpack(forged, tmp_path)
        assert {entry for entry in tmp_path.rglob("*") if "into" not in str(entry)} == before
        for into in tmp_path.glob("into-*"):
            assert {entry.name for entry in into.iterdir()} <= {CONFIG, WEIGHTS}


def test_no_bit_of_an_archive_can_be_flipped(tmp_path: Path) -> None:
    """Of its contents; a changed time or owner in a header means nothing to us."""
    path = exported(tmp_path)
    whole = path.read_bytes()
    first = unpack(path, tmp_path)
    [into] = tmp_path.glob("into-*")
    content = {entry.name: entry.read_bytes() for entry in into.iterdir()}
    refused = 0
    for at in range(0, len(whole), 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        into = tmp_path / f"flipped-{at}"
        into.mkdir()
        try:
            assert archive.unpack(path, into).files == first.files
        except AdapterError:
            refused += 1
        else:
            assert {entry.name: entry.read_bytes() for entry in into.iterdir()} == content
    assert refused > 10


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    path = exported(tmp_path)
    whole = path.read_bytes().rstrip(b"\0")
    for cut in (0, 1, 511, 512, 600, 2000, len(whole) - 200, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(AdapterError):
            unpack(path, tmp_path)


def test_an_archive_of_another_base_is_not_brought_in(tmp_path: Path) -> None:
    path = exported(tmp_path)
    model = base(tmp_path)
    (model.path / "tokenizer_config.json").write_text('{"chat_template": "other"}')
    (tmp_path / "into").mkdir()
    with pytest.raises(AdapterError, match="has changed since v7 was trained"):
        importing._taken(path, tmp_path / "into", Base.of(model), MAX_WEIGHTS)


@pytest.mark.parametrize(
    "name", ["adapter_model.bin", "adapter.pt", "pytorch_model.pkl", "adapter_model.pth"]
)
def test_nothing_pickled_is_ever_opened(tmp_path: Path, name: str) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / name).write_bytes(b"\x80\x04cos\nsystem\n")
    (source / CONFIG).write_text(json.dumps(LORA))
    (source / "modeling.py").write_text("raise SystemExit(open('canary', 'w'))")
    (tmp_path / "into").mkdir()
    with pytest.raises(AdapterError, match=r"neither .* nothing that is pickled"):
        importing._taken(source, tmp_path / "into", Base.of(base(tmp_path)), MAX_WEIGHTS)
    with pytest.raises(AdapterError, match="no adapter"):
        importing._taken(source / name, tmp_path / "into", Base.of(base(tmp_path)), MAX_WEIGHTS)
    assert list((tmp_path / "into").iterdir()) == []


def test_of_a_directory_only_what_counts_is_copied(tmp_path: Path) -> None:
    source = adapter(tmp_path / "source", base_model_name_or_path="some\x1bbody/else")
    for name in ("modeling.py", "optimizer.pt", "README.md", "tokenizer.json"):
        (source / name).write_text("x")
    (tmp_path / "into").mkdir()
    notes, label = importing._taken(source, tmp_path / "into", Base.of(base(tmp_path)), MAX_WEIGHTS)
    assert notes[0].isprintable()
    assert {entry.name for entry in (tmp_path / "into").iterdir()} == {CONFIG, WEIGHTS}
    assert (label, len(notes)) == ("the PEFT directory source", 1)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../1-0123456789abcdef",
        "1-0123456789abcdef/..",
        "/etc",
        "1-0123456789ABCDEF",
        "1-0123456789abcdef\n",
        "1-0123456789abcdef\0",
        "１-0123456789abcdef",
    ],
)
def test_no_odd_name_of_a_prepared_one_reaches_the_disk(tmp_path: Path, name: str) -> None:
    model = base(tmp_path)
    with pytest.raises(AdapterError, match="goodbot adapters import PATH"):
        importing.ready(tmp_path, name, model, Base.of(model))
