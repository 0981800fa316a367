# SPDX-License-Identifier: Apache-2.0
"""What a server needs of an adapter is made once, kept, checked at use, and goes with the adapter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.server import AdapterFormat
from goodbot.base.errors import AdapterError, ServerError, TrainingError
from goodbot.base.spawn import child_environment
from goodbot.learning import worker_process
from goodbot.learning.adapters import formats
from goodbot.learning.adapters.formats import Formats

from tests.core.inference.servers import tiny
from tests.support import require


class Child:
    """In place of the real one, which the last tests run: notes what it is asked, and writes something."""

    def __init__(self) -> None:
        self.jobs: list[Mapping[str, Any]] = []
        self.fails = ""
        self.kind = "error"
        self.more = ""

    async def run(self, module: Any, job: Mapping[str, Any], on_event: Any, **_: Any) -> Any:
        assert module == (formats.CHILD,)
        self.jobs.append(job)
        await asyncio.sleep(0.01)
        output = Path(job["output"])
        if job["to"] == "mlx":
            output.mkdir()
            output /= "adapters.safetensors"
        output.write_text("converted")
        if self.more:
            (Path(job["output"]).parent / self.more).write_text("{}")
        await on_event({"event": "progress", "done": 1, "of": 2})
        if self.fails:
            raise TrainingError(self.fails, kind=self.kind)
        return {"event": "done", "proof": {"compared": "logits", "apart": 0.0}}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Child:
    fake = Child()
    monkeypatch.setattr(worker_process, "run", fake.run)
    return fake


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("v000001-aa", "v000002-bb"):
        (tmp_path / "adapters" / name).mkdir(parents=True)
        (tmp_path / "adapters" / name / "adapter_model.safetensors").write_text(name)
    return tmp_path / "adapters"


@pytest.fixture
def made(root: Path) -> Formats:
    return Formats(root, Path("/base"), {})


def kept(root: Path) -> list[str]:
    """The names there, without their hashes."""
    return sorted(entry.name.rpartition("-")[0] for entry in (root / formats.FOLDER).iterdir())


async def test_however_many_ask_it_is_made_once(root: Path, made: Formats, asked: Child) -> None:
    another = Formats(root, Path("/base"), {})
    paths = await asyncio.gather(
        *(who.convert(root / "v000001-aa", AdapterFormat.GGUF) for who in (made, another) * 5)
    )
    assert len(set(paths)) == 1
    assert paths[0].name == "adapter.gguf"
    assert len(asked.jobs) == 1


async def test_formats_do_not_mix(root: Path, made: Formats, asked: Child) -> None:
    one = root / "v000001-aa"
    assert await made.convert(one, AdapterFormat.PEFT) == one
    assert (await made.convert(one, AdapterFormat.GGUF_MODEL)).name == "model.gguf"
    assert (await made.convert(one, AdapterFormat.GGUF)).name == "adapter.gguf"
    assert (await made.convert(one, AdapterFormat.MLX)).is_dir()
    assert kept(root) == [f"v000001-aa.{to}" for to in ("gguf", "gguf-model", "mlx")]
    with pytest.raises(AdapterError, match="takes no adapters"):
        await made.convert(one, AdapterFormat.NONE)


@pytest.mark.parametrize("what", ["result", "manifest", "source", "more", "deeper"])
async def test_what_is_not_what_it_was_is_made_again(
    root: Path, made: Formats, asked: Child, what: str
) -> None:
    one = root / "v000001-aa"
    path = await made.convert(one, AdapterFormat.GGUF)
    changed = {
        "result": path,
        "manifest": path.parent / "manifest.json",
        "more": path.parent / "more",
        "deeper": path.parent / "deeper" / "manifest.json",
        "source": one / "adapter_model.safetensors",
    }[what]
    changed.parent.mkdir(exist_ok=True)
    changed.unlink(missing_ok=True)
    changed.write_text("{}")
    again = await made.convert(one, AdapterFormat.GGUF)
    assert again.read_text() == "converted"
    assert len(asked.jobs) == 2
    assert await made.convert(one, AdapterFormat.GGUF) == again
    assert len(asked.jobs) == 2
    assert len(kept(root)) == 1


async def test_what_it_leaves_beside_its_result_is_not_kept(root: Path, made: Formats, asked: Child) -> None:
    asked.more = "manifest.json"
    with pytest.raises(AdapterError, match=r"left .*manifest.* instead of adapter\.gguf"):
        await made.convert(root / "v000001-aa", AdapterFormat.GGUF)
    assert kept(root) == []


async def test_a_failure_is_said_and_leaves_nothing(
    root: Path, made: Formats, asked: Child, tmp_path: Path
) -> None:
    asked.fails = "there is no room"
    with pytest.raises(AdapterError, match="there is no room"):
        await made.convert(root / "v000001-aa", AdapterFormat.GGUF)
    with pytest.raises(AdapterError, match="there is no room"):
        await made.export(root / "v000001-aa", "gguf", tmp_path / "out.gguf")
    assert kept(root) == []
    assert not list(tmp_path.glob("*out*")) + list(tmp_path.glob(".*"))


@pytest.mark.parametrize("kind", ["killed", "oom"])
async def test_a_machine_that_could_not_says_nothing_of_the_adapter(
    kind: str, root: Path, made: Formats, asked: Child
) -> None:
    asked.fails, asked.kind = "there was not enough memory", kind
    with pytest.raises(ServerError, match="not enough memory"):
        await made.convert(root / "v000001-aa", AdapterFormat.GGUF)


async def test_it_goes_when_the_adapter_does(root: Path, made: Formats, asked: Child) -> None:
    for name in ("v000001-aa", "v000002-bb"):
        await made.convert(root / name, AdapterFormat.GGUF)
        await made.convert(root / name, AdapterFormat.MLX)
    formats.forget(root, "v000001-aa")
    formats.forget(root, "v000001-aa")
    assert kept(root) == ["v000002-bb.gguf", "v000002-bb.mlx"]


async def test_a_start_sweeps_what_belongs_to_nothing(root: Path, made: Formats, asked: Child) -> None:
    for name in ("v000001-aa", "v000002-bb"):
        await made.convert(root / name, AdapterFormat.GGUF)
    (root / formats.FOLDER / ".part-killed").mkdir()
    formats.sweep(root, {"v000002-bb"})
    assert kept(root) == ["v000002-bb.gguf"]
    formats.sweep(root / "nowhere", set())


async def test_an_export_is_told_how_far_it_is_and_overwrites_nothing(
    root: Path, made: Formats, asked: Child, tmp_path: Path
) -> None:
    heard: list[tuple[int, int]] = []
    proof = await made.export(
        root / "v000001-aa", "gguf", tmp_path / "out.gguf", on_progress=lambda *n: heard.append(n)
    )
    assert (proof["compared"], heard) == ("logits", [(1, 2)])
    assert (tmp_path / "out.gguf").read_text() == "converted"
    with pytest.raises(AdapterError, match="is there already"):
        await made.export(root / "v000001-aa", "gguf", tmp_path / "out.gguf")
    with pytest.raises(AdapterError, match="cannot be written"):
        await made.export(root / "v000001-aa", "gguf", tmp_path / "no" / "where.gguf")


# -- with the real child


async def test_the_real_child_makes_it_and_refuses_what_is_broken(tmp_path: Path) -> None:
    require("gguf")
    root = tmp_path / "adapters"
    one = tiny.adapter(root / "one", 1)
    real = Formats(root, tiny.model(), child_environment())
    path = await real.convert(one, AdapterFormat.GGUF)
    assert path.read_bytes()[:4] == b"GGUF"
    manifest = json.loads((path.parent / "manifest.json").read_text())
    assert (manifest["of"], manifest["format"], list(manifest["files"])) == ("one", "gguf", ["adapter.gguf"])
    weights = one / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(AdapterError, match="one"):
        await real.convert(one, AdapterFormat.GGUF)
    assert kept(root) == []


async def test_the_real_child_takes_an_adapter_of_mlx_lm(tmp_path: Path) -> None:
    one = tiny.adapter(tmp_path / "one", 1)
    real = Formats(tmp_path, tiny.model(), child_environment())
    await real.export(one, "mlx", tmp_path / "theirs")
    await real.take(tmp_path / "theirs", tmp_path / "ours")
    assert sorted(path.name for path in (tmp_path / "ours").iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
    ]
    with pytest.raises(AdapterError, match="is missing"):
        await real.take(tmp_path, tmp_path / "nothing")


async def test_what_is_larger_than_the_model_is_no_adapter(
    asked: Child, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, given = tmp_path / "model", tmp_path / "given"
    for directory, size in ((model, 100), (given, 101)):
        directory.mkdir()
        (directory / "model.safetensors").write_bytes(b"x" * size)
    monkeypatch.setattr(formats, "_SMALL", 0)
    mine = Formats(tmp_path, model, {})
    with pytest.raises(AdapterError, match="more than the model that it is for"):
        await mine.take(given, tmp_path / "ours")
    assert asked.jobs == []
    (given / "model.safetensors").write_bytes(b"x" * 100)
    await mine.take(given, tmp_path / "ours")


async def test_an_adapter_that_takes_for_ever_to_read_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def endless(*_: Any, **__: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(worker_process, "run", endless)
    monkeypatch.setattr(formats, "_TAKE_SECONDS", 0.05)
    with pytest.raises(AdapterError, match="could not be read within"):
        await Formats(tmp_path, tmp_path, {}).take(tmp_path, tmp_path / "ours")
    assert not list(tmp_path.glob(".part-*"))
