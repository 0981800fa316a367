# SPDX-License-Identifier: Apache-2.0
"""Rule 5, the files: what is published is whole, what is altered, odd or of another base is refused."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.adapters import manifest as module
from goodbot.api.adapters.base import Base
from goodbot.api.adapters.manifest import (
    CONFIG,
    FINGERPRINT,
    MANIFEST,
    WEIGHTS,
    AdapterManifest,
    check_weights,
    contents,
    inspect,
    publish,
    verify,
)
from goodbot.api.model import ResolvedModel
from goodbot.base.errors import AdapterError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.fake_worker import safetensors

FILES = (CONFIG, WEIGHTS, MANIFEST)
LORA = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["base"]}


def staged(path: Path, run: int = 3) -> Path:
    path.mkdir(parents=True)
    (path / WEIGHTS).write_bytes(safetensors())
    (path / CONFIG).write_text(json.dumps(LORA))
    return path


def published(
    tmp_path: Path, run: int = 3, base: Base | None = None, fingerprint: str = ""
) -> tuple[Path, str, str]:
    """`(root, directory name, sha256 of the weights)`"""
    root = tmp_path / "adapters"
    root.mkdir(exist_ok=True)
    given = AdapterManifest(version=7, parent=0, run=run, model="fake", files={}, metrics={"loss": 0.5})
    staging = staged(tmp_path / f"staging-{run}")
    if fingerprint:
        (staging / FINGERPRINT).write_text(fingerprint)
    directory, manifest = publish(staging, root, given.on(base) if base else given)
    return root, directory.name, manifest.files[WEIGHTS]


def model(tmp_path: Path, **files: str) -> ResolvedModel:
    """A base model's directory as far as hashes go."""
    path = tmp_path / "model"
    path.mkdir(exist_ok=True)
    whole = {
        "config.json": '{"model_type": "fake"}',
        "tokenizer.json": '{"vocab": 1}',
        "tokenizer_config.json": '{"chat_template": "{{ a }}", "unk": null}',
    } | files
    for name, text in whole.items():
        (path / name).write_text(text)
    (path / "model.safetensors").write_bytes(safetensors())
    return ResolvedModel(name="fake", path=path)


def weights(header: object, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(**fields: Any) -> dict[str, Any]:
    return {"x.lora_A.weight": {"dtype": "F32", "shape": [1, 1], "data_offsets": [0, 4], **fields}}


def test_published_is_whole_and_read_only(tmp_path: Path) -> None:
    root, name, sha = published(tmp_path)
    path = verify(root, name, sha)
    assert sorted(entry.name for entry in path.iterdir()) == sorted(FILES)
    assert {entry.stat().st_mode & 0o777 for entry in path.iterdir()} == {0o400}
    assert name.startswith("v000007-")
    assert json.loads((path / MANIFEST).read_text())["metrics"] == {"loss": 0.5}
    assert not (tmp_path / "staging-3").exists()


def test_the_same_weights_of_another_run_are_another_directory(tmp_path: Path) -> None:
    """Training repeats bit by bit; what a crash has left behind must not be in the way."""
    assert published(tmp_path, run=3)[1] != published(tmp_path, run=4)[1]


@pytest.mark.parametrize("name", FILES)
def test_any_byte_that_changes_is_noticed(tmp_path: Path, name: str) -> None:
    root, directory, sha = published(tmp_path)
    path = root / directory / name
    path.chmod(0o600)
    content = path.read_bytes()
    for at in range(0, len(content), 1 + len(content) // 200):
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        with pytest.raises(AdapterError):
            verify(root, directory, sha)
    path.write_bytes(content)
    verify(root, directory, sha)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["truncated", "longer", "empty", "gone", "a link", "a directory"])
def test_a_file_that_is_not_what_it_was_is_refused(tmp_path: Path, name: str, how: str) -> None:
    root, directory, sha = published(tmp_path)
    path = root / directory / name
    content = path.read_bytes()
    path.unlink()
    if how in ("truncated", "longer", "empty"):
        size = {"truncated": len(content) - 1, "longer": len(content), "empty": 0}[how]
        path.write_bytes(content[:size] + (b"\0" if how == "longer" else b""))
    elif how == "a link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif how == "a directory":
        path.mkdir()
    with pytest.raises(AdapterError):
        verify(root, directory, sha)


def test_another_whole_adapter_under_its_name_is_refused(tmp_path: Path) -> None:
    root, directory, sha = published(tmp_path)
    _, other, _ = published(tmp_path, run=4)
    (root / directory).rename(tmp_path / "gone")
    (root / other).rename(root / directory)
    with pytest.raises(AdapterError):
        verify(root, directory, sha)
    with pytest.raises(AdapterError):
        verify(root, directory, "0" * 64)


def test_the_database_has_the_last_word_on_the_weights(tmp_path: Path) -> None:
    root, directory, _ = published(tmp_path)
    with pytest.raises(AdapterError, match="the database knows"):
        verify(root, directory, "0" * 64)


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../v1",
        "v1/../v2",
        "/etc",
        "v1/",
        "V1",
        "v 1",
        "v1\n",
        "v1\0",
        "-v1",
        ".v1",
        "v1\\..",
        "ｖ1",
        "v" * 65,
        "%2e%2e",
        "~",
        "v1;rm",
    ],
)
def test_no_odd_name_reaches_the_disk(tmp_path: Path, name: str) -> None:
    (tmp_path / "adapters").mkdir()
    with pytest.raises(AdapterError, match="no name of an adapter"):
        verify(tmp_path / "adapters", name, "0" * 64)


def test_a_link_to_a_whole_adapter_is_refused(tmp_path: Path) -> None:
    root, directory, sha = published(tmp_path)
    (root / directory).rename(tmp_path / directory)
    (root / directory).symlink_to(tmp_path / directory)
    with pytest.raises(AdapterError, match="link"):
        verify(root, directory, sha)


@pytest.mark.parametrize("what", ["no weights", "no config", "extra", "link", "pipe", "bad"])
def test_what_a_trainer_must_not_leave(tmp_path: Path, what: str) -> None:
    staging = staged(tmp_path / "staging")
    (tmp_path / "adapters").mkdir()
    victim = tmp_path / "victim"
    victim.write_text("{}")
    mode = victim.stat().st_mode
    if what == "no weights":
        (staging / WEIGHTS).unlink()
    elif what == "no config":
        (staging / CONFIG).unlink()
    elif what == "extra":
        (staging / "optimizer.pt").write_bytes(b"\x80\x04")
    elif what == "link":
        (staging / CONFIG).unlink()
        (staging / CONFIG).symlink_to(victim)
    elif what == "pipe":
        (staging / WEIGHTS).unlink()
        os.mkfifo(staging / WEIGHTS)
    elif what == "bad":
        (staging / WEIGHTS).write_bytes(safetensors()[:-1])
    given = AdapterManifest(version=1, parent=0, run=1, model="fake", files={})
    with pytest.raises(AdapterError):
        publish(staging, tmp_path / "adapters", given)
    assert list((tmp_path / "adapters").iterdir()) == []
    assert victim.stat().st_mode == mode


@pytest.mark.parametrize("step", ["check_weights", "sha256", "sync", "rename"])
def test_a_crash_while_publishing_leaves_nothing_under_a_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Files and directory are synced before the rename: a final name means complete."""
    synced: list[str] = []
    real = module.sync

    def sync(path: Path) -> None:
        synced.append(path.name)
        real(path)

    def crash(*args: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(module, "sync", sync)
    root = tmp_path / "adapters"
    root.mkdir()
    staging = staged(tmp_path / "staging")
    with monkeypatch.context() as patch:
        if step == "rename":
            patch.setattr(Path, "rename", crash)
        else:
            patch.setattr(module, step, crash)
        with pytest.raises(OSError, match="no space"):
            publish(staging, root, AdapterManifest(version=1, parent=0, run=1, model="fake", files={}))
    assert list(root.iterdir()) == []
    if step == "rename":
        assert {*FILES, "staging"} == set(synced)


def test_a_manifest_tells_the_base_and_what_trained_it_and_no_texts(tmp_path: Path) -> None:
    base = Base.of(model(tmp_path))
    given = AdapterManifest(
        version=1, parent=0, run=2, model="fake", files={}, ratings={"turn-1": [4, 9]}
    ).on(base)
    (tmp_path / "adapters").mkdir()
    directory, known = publish(staged(tmp_path / "s"), tmp_path / "adapters", given)
    assert inspect(tmp_path / "adapters", directory.name) == known
    assert (known.format, known.ratings, known.files[CONFIG]) == (
        2,
        {"turn-1": [4, 9]},
        hashlib.sha256((directory / CONFIG).read_bytes()).hexdigest(),
    )
    assert known.revision.startswith("sha256:")
    assert len(known.tokenizer) == len(known.chat_template) == 64


def test_a_hub_models_revision_is_its_commit(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    folder = tmp_path / "models--owner--name" / "snapshots"
    folder.mkdir(parents=True)
    model(tmp_path).path.rename(folder / commit)
    base = Base.of(ResolvedModel(name="owner/name", path=folder / commit))
    assert base.revision == commit
    known = AdapterManifest(version=7, parent=0, run=1, model="owner/name", files={}).on(base)
    told = module.changed(known, replace(base, revision="f" * 40))
    assert f"`goodbot model use owner/name@{commit}`" in told


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"tokenizer_config.json": '{"chat_template": "{{ b }}", "unk": null}'}, "the chat template"),
        ({"chat_template.jinja": "{{ a }} "}, "the chat template"),
        ({"tokenizer.json": '{"vocab": 2}'}, "the tokenizer"),
        ({"added_tokens.json": "{}"}, "the tokenizer"),
        ({"tokenizer_config.json": '{"chat_template": "{{ a }}", "unk": "x"}'}, "the tokenizer"),
        ({"config.json": '{"model_type": "other"}'}, "other weights"),
    ],
)
def test_an_adapter_is_refused_on_a_base_that_has_changed_and_it_is_said_what_to_do(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    base = Base.of(model(tmp_path))
    root, directory, sha = published(tmp_path, base=base)
    assert verify(root, directory, sha, base) == root / directory
    changed = Base.of(model(tmp_path, **files))
    with pytest.raises(AdapterError, match=said) as refused:
        verify(root, directory, sha, changed)
    assert "back" in str(refused.value), "it says what to do"
    verify(root, directory, sha)


def test_a_base_that_only_moved_or_was_touched_is_the_same(tmp_path: Path) -> None:
    here = model(tmp_path)
    before = Base.of(here)
    (here.path / "README.md").write_text("new")
    os.utime(here.path / "tokenizer.json", (1, 1))
    here.path.rename(tmp_path / "moved")
    assert Base.of(ResolvedModel(name="fake", path=tmp_path / "moved")) == before


def test_what_the_release_before_has_written_still_verifies(tmp_path: Path) -> None:
    base = Base.of(model(tmp_path))
    root, directory, sha = published(tmp_path)
    path = root / directory / MANIFEST
    old = {
        key: value
        for key, value in json.loads(path.read_text()).items()
        if key in ("version", "parent", "run", "model", "files", "metrics")
    }
    path.chmod(0o600)
    path.write_text(json.dumps(old))
    name = f"v000007-{module.sha256(path)[:16]}"
    (root / directory).rename(root / name)
    assert verify(root, name, sha, base) == root / name
    assert inspect(root, name).format == 1


def test_a_newer_format_is_not_guessed_at(tmp_path: Path) -> None:
    _, directory, _ = published(tmp_path)
    text = (tmp_path / "adapters" / directory / MANIFEST).read_text()
    with pytest.raises(AdapterError, match="newer goodbot"):
        module.parse(text.replace('"format": 2', '"format": 3').encode(), directory)


def test_the_fingerprint_is_a_file_like_the_others(tmp_path: Path) -> None:
    root, directory, sha = published(tmp_path, fingerprint='{"format": 1}')
    path = root / directory / FINGERPRINT
    verify(root, directory, sha)
    path.chmod(0o600)
    path.write_text('{"format": 2}')
    with pytest.raises(AdapterError, match="not the file that was trained"):
        verify(root, directory, sha)
    path.unlink()
    with pytest.raises(AdapterError, match="missing"):
        verify(root, directory, sha)


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, MANIFEST])
def test_what_is_exchanged_between_check_and_load_is_not_loaded(tmp_path: Path, name: str) -> None:
    root, directory, sha = published(tmp_path)
    path = verify(root, directory, sha)
    config, weights_ = contents(path)
    assert (config, weights_) == ((path / CONFIG).read_bytes(), (path / WEIGHTS).read_bytes())
    new = (path / name).read_bytes().replace(b"4", b"5", 1)
    (path / name).unlink()
    (path / name).write_bytes(new)
    with pytest.raises(AdapterError):
        contents(path)


def test_a_whole_other_adapter_put_in_its_place_is_not_loaded(tmp_path: Path) -> None:
    root, directory, sha = published(tmp_path)
    path = verify(root, directory, sha)
    _, other, _ = published(tmp_path, run=4)
    path.rename(tmp_path / "gone")
    (root / other).rename(path)
    with pytest.raises(AdapterError, match="not the one that was written"):
        contents(path)


@pytest.mark.parametrize("name", FILES)
def test_a_pipe_in_its_place_does_not_hang(tmp_path: Path, name: str) -> None:
    root, directory, sha = published(tmp_path)
    (root / directory / name).unlink()
    os.mkfifo(root / directory / name)
    for look in (lambda: verify(root, directory, sha), lambda: contents(root / directory)):
        with pytest.raises(AdapterError):
            look()


def test_a_manifest_has_no_field_that_is_not_read_back(tmp_path: Path) -> None:
    root, directory, _ = published(tmp_path, base=Base.of(model(tmp_path)))
    written = json.loads((root / directory / MANIFEST).read_text())
    assert written == asdict(inspect(root, directory))


ODD_HEADERS: dict[str, bytes] = {
    "empty file": b"",
    "short": b"\1\2\3",
    "no header": struct.pack("<Q", 0),
    "huge header": struct.pack("<Q", 2**63) + b"{}",
    "over the limit": struct.pack("<Q", 1_000_001) + b" " * 1_000_001,
    "header longer than the file": struct.pack("<Q", 100) + b"{}",
    "not json": weights(b"\xff\xfe"),
    "deep": weights(b"[" * 500_000),
    "deep object": weights(b'{"a":' * 100_000),
    "utf-16": weights(json.dumps(tensor()).encode("utf-16"), b"\0" * 4),
    "utf-8 with a mark": weights(b"\xef\xbb\xbf" + json.dumps(tensor()).encode(), b"\0" * 4),
    "a list": weights([]),
    "a number": weights(1),
    "no tensors": weights({}),
    "only metadata": weights({"__metadata__": {}}),
    "entry is a number": weights({"x.lora_A.w": 1}),
    "entry is null": weights({"x.lora_A.w": None}),
    "no offsets": weights({"x.lora_A.w": {"dtype": "F32", "shape": [1, 1]}}),
    "empty offsets": weights(tensor(data_offsets=[]), b"\0" * 4),
    "three offsets": weights(tensor(data_offsets=[0, 4, 4]), b"\0" * 4),
    "offsets of text": weights(tensor(data_offsets=["0", "4"]), b"\0" * 4),
    "offsets of floats": weights(tensor(data_offsets=[0.0, 4.0]), b"\0" * 4),
    "offsets of booleans": weights(tensor(data_offsets=[False, 4]), b"\0" * 4),
    "infinite offsets": weights(tensor(data_offsets=[0, math.inf]), b"\0" * 4),
    "nan offsets": weights(tensor(data_offsets=[math.nan, math.nan]), b"\0" * 4),
    "null offsets": weights(tensor(data_offsets=None), b"\0" * 4),
    "offsets in an object": weights(tensor(data_offsets={"0": 0}), b"\0" * 4),
    "backwards": weights(tensor(data_offsets=[4, 0]), b"\0" * 4),
    "a gap": weights(tensor(data_offsets=[4, 8]), b"\0" * 8),
    "too long a number": weights(b'{"x.lora_A.w":{"data_offsets":[0,' + b"9" * 5000 + b"]}}"),
    "bytes left over": weights(tensor(), b"\0" * 5),
    "bytes missing": weights(tensor(), b"\0" * 3),
    "pickled dtype": weights(tensor(dtype="OBJ"), b"\0" * 4),
    "dtype is a list": weights(tensor(dtype=["F32"]), b"\0" * 4),
    "one dimension": weights(tensor(shape=[1]), b"\0" * 4),
    "three dimensions": weights(tensor(shape=[1, 1, 1]), b"\0" * 4),
    "no rows": weights(tensor(shape=[0, 1], data_offsets=[0, 0])),
    "negative": weights(tensor(shape=[-1, -1]), b"\0" * 4),
    "shape of text": weights(tensor(shape="11"), b"\0" * 4),
    "shape of booleans": weights(tensor(shape=[True, True]), b"\0" * 4),
    "enormous": weights(tensor(shape=[2**62, 2**62]), b"\0" * 4),
    "a base weight": weights({"model.embed_tokens.weight": tensor()["x.lora_A.weight"]}, b"\0" * 4),
    "twice": weights(
        b'{"x.lora_A.w":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},'
        b'"x.lora_A.w":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}}',
        b"\0" * 4,
    ),
    "too many": weights({f"x{i}.lora_A.w": {} for i in range(20_001)}),
}


@pytest.mark.parametrize("content", ODD_HEADERS.values(), ids=ODD_HEADERS.keys())
def test_an_odd_file_of_weights_is_refused_and_nothing_else_happens(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / WEIGHTS
    path.write_bytes(content)
    with pytest.raises(AdapterError):
        check_weights(path)


def test_a_good_one_passes(tmp_path: Path) -> None:
    path = tmp_path / WEIGHTS
    for content in (safetensors(), weights(tensor(), b"\0" * 4)):
        path.write_bytes(content)
        check_weights(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
entries = st.fixed_dictionaries(
    {},
    optional={
        "dtype": st.sampled_from(["F32", "BF16", "I64"]) | json_values,
        "shape": st.lists(st.integers(-1, 4), max_size=3) | json_values,
        "data_offsets": st.lists(st.integers(-1, 64), max_size=3) | json_values,
    },
)
headers = st.dictionaries(
    st.sampled_from(["a.lora_A.w", "b.lora_B.w", "__metadata__"]) | st.text(max_size=5),
    entries | json_values,
    max_size=4,
)


@settings(max_examples=150)
@given(st.binary(max_size=64) | st.builds(weights, headers | json_values, st.binary(max_size=64)))
def test_no_bytes_raise_anything_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / WEIGHTS
    path.write_bytes(content)
    try:
        check_weights(path)
    except AdapterError:
        return
    (length,) = struct.unpack("<Q", content[:8])  # what passes is one matrix at least, exactly fitting
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    assert max(e["data_offsets"][1] for e in header.values()) == len(content) - 8 - length


@settings(max_examples=80)
@given(st.binary(max_size=80) | st.builds(lambda v: json.dumps(v).encode(), json_values))
def test_no_manifest_raises_anything_else(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    tmp_path = tmp_path_factory.mktemp("m")
    root, directory, sha = published(tmp_path)
    path = root / directory / MANIFEST
    path.unlink()
    path.write_bytes(content)
    name = f"{directory[:8]}{module.sha256(path)[:16]}"  # even under the name that fits it
    (root / directory).rename(root / name)
    with pytest.raises(AdapterError):
        verify(root, name, sha)
