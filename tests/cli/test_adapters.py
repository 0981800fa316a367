# SPDX-License-Identifier: Apache-2.0
"""`goodbot adapters`: versions come in, go out, are pinned and compared, with and without a daemon."""

from __future__ import annotations

import json
import os
import struct
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.commands import find
from goodbot.cli import main
from goodbot.learning.adapters import exporting
from goodbot.store import workshop

from tests.cli.program import Bot
from tests.core.inference.servers import tiny
from tests.core.store import killed
from tests.encryption import need_libraries
from tests.support import require

Goodbot = Callable[..., tuple[int, str, str]]


@pytest.fixture
def goodbot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Goodbot:
    """The program, in this process, on a state directory of the test's own: code, out, err."""

    def call(*argv: str) -> tuple[int, str, str]:
        code = main(["--home", str(tmp_path / "home"), *argv])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter of the demonstration model that somebody else has made, in PEFT's layout."""
    require("numpy")
    return tiny.adapter(tmp_path_factory.mktemp("foreign") / "poet", seed=3)


def test_where_encryption_is_on_one_comes_in_and_out_and_lies_nowhere_in_clear(
    goodbot: Goodbot, foreign: Path, tmp_path: Path
) -> None:
    need_libraries()
    home, key = tmp_path / "home", f"file:{tmp_path / 'key'}"
    code, _, err = goodbot("encrypt", "--key", key)
    assert code == 0, err
    code, _, err = goodbot("adapters", "import", str(foreign))
    assert code == 0, err
    code, _, err = goodbot("adapters", "export", "1", "--format", "peft", "--out", str(home / "out"))
    assert (code, "nothing in" in err) == (2, True), err

    def exported(name: str) -> bytes:
        code, _, err = goodbot("adapters", "export", "1", "--format", "peft", "--out", str(tmp_path / name))
        assert code == 0, err
        return (tmp_path / name / "adapter_model.safetensors").read_bytes()

    def in_clear() -> list[str]:
        files = [file for file in home.rglob("*") if file.is_file()]
        return sorted(file.name for file in files if first[-256:] in file.read_bytes())

    first = exported("first")
    assert in_clear() == []
    assert [*(home / "imports").iterdir()] == []
    assert goodbot("encrypt", "--rekey", "--key", key)[0] == 0
    assert in_clear() == []
    assert exported("second") == first
    assert goodbot("decrypt", "--yes")[0] == 0
    assert in_clear() == ["adapter_model.safetensors"]
    assert exported("third") == first


def test_the_formats_of_the_help_are_those_that_are_made() -> None:
    adapters = find("adapters")
    assert adapters is not None
    [export] = [one for one in adapters.actions if one.name == "export"]
    [told] = [argument for argument in export.arguments if argument.name == "--format"]
    assert set(told.choices) == set(exporting.KINDS)


def test_in_and_out_in_every_format_and_in_again(goodbot: Goodbot, foreign: Path, tmp_path: Path) -> None:
    code, out, err = goodbot("adapters", "import", str(foreign))
    assert (code, out.splitlines()) == (
        0,
        ["v1 is here, from the PEFT directory poet. It does not answer: `rollback 1` lets it."],
    ), err
    code, out, _ = goodbot("adapters")
    assert out.splitlines()[0].startswith("→ base  tiny")
    assert "v1  from base" in out.splitlines()[1]
    assert "imported" in out.splitlines()[1]
    shown = json.loads(goodbot("adapters", "show", "1", "--json")[1])
    assert shown["manifest"]["source"] == "the PEFT directory poet"
    for number, (kind, name) in enumerate([("peft", "poet.tar"), ("mlx", "poet-mlx")], start=2):
        target = str(tmp_path / name)
        code, out, err = goodbot("adapters", "export", "1", "--format", kind, "--out", target)
        assert (code, "read back and compared" in out) == (0, True), err
        code, out, err = goodbot("adapters", "import", target)
        assert (code, out.startswith(f"v{number} is here")) == (0, True), err
    far = json.loads(goodbot("adapters", "diff", "1", "3", "--json")[1])["distance"]
    assert far["change"] <= 1e-6 * far["size"], "by way of MLX it is the same"
    for version, kind, name in (("1", "gguf", "poet.gguf"), ("1", "fused", "poet-whole")):
        code, out, err = goodbot(
            "adapters", "export", version, "--format", kind, "--out", str(tmp_path / name), "--json"
        )
        assert code == 0, err
        proof = json.loads(out)["proof"]
        assert proof["apart"] <= proof["allowed"]
    assert (tmp_path / "poet.gguf").read_bytes()[:4] == b"GGUF"
    assert not [entry for entry in tmp_path.iterdir() if entry.name.startswith(".")]
    assert list((tmp_path / "home" / "imports").iterdir()) == []


def test_an_export_replaces_nothing_needs_room_and_leaves_nothing_half(
    goodbot: Goodbot, foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert goodbot("adapters", "import", str(foreign))[0] == 0
    (tmp_path / "there").write_text("mine")
    code, out, err = goodbot("adapters", "export", "1", "--out", str(tmp_path / "there"))
    assert (code, out, "never replaces" in err) == (2, "", True)
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    assert goodbot("adapters", "export", "1", "--out", str(tmp_path / "dangling"))[0] == 2
    assert goodbot("adapters", "export", "1", "--out", str(tmp_path / "no" / "x"))[0] == 2
    code, _, err = goodbot("adapters", "export", "base", "--out", str(tmp_path / "x"))
    assert (code, "as it came" in err) == (2, True)
    assert goodbot("adapters", "export", "9", "--out", str(tmp_path / "x"))[0] == 1
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
        code, _, err = goodbot("adapters", "export", "1", "--out", str(tmp_path / "x"))
        assert (code, "MB are needed" in err) == (1, True)
    assert (tmp_path / "there").read_text() == "mine"
    assert {entry.name for entry in tmp_path.iterdir()} == {"home", "there", "dangling"}


def test_s6_what_a_killed_export_has_left_is_found_and_goes(
    goodbot: Goodbot, foreign: Path, tmp_path: Path
) -> None:
    """A version is made of what people said: half an export lay beside its place for ever."""
    home, disk = tmp_path / "home", tmp_path / "disk"
    disk.mkdir()
    assert goodbot("adapters", "import", str(foreign))[0] == 0
    left = killed.export(home, disk / "poet.tar")
    assert workshop.left(home) == [left]
    code, _, err = goodbot("adapters", "export", "1", "--out", str(disk / "again.tar"))
    assert (code, [one.name for one in disk.iterdir()]) == (0, ["again.tar"]), err
    killed.export(home, disk / "poet.tar")
    assert goodbot("backup", str(tmp_path / "b.tar"))[0] == 0
    assert [one.name for one in disk.iterdir()] == ["again.tar"], "the next backup deletes it, too"


def spoilt(source: Path, path: Path, **config: Any) -> Path:
    path.mkdir()
    for entry in source.iterdir():
        (path / entry.name).write_bytes(entry.read_bytes())
    settings = json.loads((path / "adapter_config.json").read_text())
    (path / "adapter_config.json").write_text(json.dumps({**settings, **config}))
    return path


def test_what_is_hostile_is_refused_in_a_sentence_and_nothing_is_left(
    goodbot: Goodbot, foreign: Path, tmp_path: Path
) -> None:
    weights = (foreign / "adapter_model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", weights[:8])
    cases: dict[str, tuple[Path, str]] = {}

    nan = spoilt(foreign, tmp_path / "nan")
    bad = weights[: 8 + length] + struct.pack("<f", float("nan")) + weights[12 + length :]
    (nan / "adapter_model.safetensors").write_bytes(bad)
    cases["a number that is none"] = (nan, "not finite")
    loud = spoilt(foreign, tmp_path / "loud", lora_alpha=8e6)
    cases["an absurd alpha"] = (loud, "drown the model")
    other = spoilt(foreign, tmp_path / "other")
    header = weights[8 : 8 + length].replace(b"layers.3.", b"layers.9.")
    (other / "adapter_model.safetensors").write_bytes(weights[:8] + header + weights[8 + length :])
    cases["a layer too many"] = (other, "layers.9.")
    cases["another rank"] = (spoilt(foreign, tmp_path / "rank", r=5), "rank")
    link = tmp_path / "link"
    link.mkdir()
    for entry in foreign.iterdir():
        (link / entry.name).symlink_to(entry)
    cases["links"] = (link, "a link")
    pipe = spoilt(foreign, tmp_path / "pipe")
    (pipe / "adapter_model.safetensors").unlink()
    os.mkfifo(pipe / "adapter_model.safetensors")
    cases["a pipe"] = (pipe, "no plain file")
    trick = tmp_path / "trick.tar"
    with tarfile.open(trick, "w", format=tarfile.USTAR_FORMAT) as tar:
        tar.add(foreign / "adapter_config.json", "../../home/config.toml")
    cases["an archive that climbs"] = (trick, "no place in it")
    (tmp_path / "x.tar").write_bytes(b"PK\x03\x04" + bytes(600))
    cases["no archive"] = (tmp_path / "x.tar", "not made by goodbot")
    for name, (path, said) in cases.items():
        code, out, err = goodbot("adapters", "import", str(path))
        assert (code, out, said in err) == (1, "", True), (name, err)
        assert err.count("\n") == 1, name
    assert list((tmp_path / "home" / "imports").iterdir()) == []
    assert "v1" not in goodbot("adapters")[1]


def test_beside_a_daemon_one_comes_in_answers_is_pinned_and_goes(running: Bot, foreign: Path) -> None:
    before = running.json("adapters")["adapters"]
    made = running.json("adapters", "import", str(foreign), "--activate")
    version = made["version"]
    assert (made["active"], version) == (True, len(before) + 1)
    try:
        assert running.json("status")["version"] == version
        done = running.call("adapters", "pin")
        assert "It stays the version that answers" in done.stdout
        refused = running.call("adapters", "rollback", "base")
        assert (refused.returncode, "is pinned" in refused.stderr) == (2, True)
        assert running.json("adapters", "unpin")["pinned"] is False
    finally:
        running.call("adapters", "unpin", str(version))
        assert running.call("adapters", "rollback", "base").returncode == 0
    assert running.json("status")["version"] == 0
    assert running.json("adapters", "list")["adapters"][-1]["version"] == version
