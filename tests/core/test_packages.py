# SPDX-License-Identifier: Apache-2.0
"""What an error says to install must work where it is read, however goodbot got there."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest
from goodbot.api.backend import BackendSpec
from goodbot.api.registry import automatic_backend, automatic_backends
from goodbot.base import packages
from goodbot.base.errors import ConfigError, MissingExtraError
from packaging.requirements import Requirement

from tests.support import require


def environment(place: Path) -> Path:
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "pip").touch()
    return place


def test_a_missing_extra_is_installed_into_the_environment_that_misses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("pip")
    place = environment(tmp_path / "my venv")
    monkeypatch.setattr(sys, "prefix", str(place))
    line = packages.install_line("telegram")
    program, verb, *rest = shlex.split(line)
    assert (program, verb) == (f"{place}/bin/pip", "install")
    assert [Requirement(one).name for one in rest] == ["python-telegram-bot", "segno"]
    assert line in str(MissingExtraError("telegram", "telegram"))


def test_without_a_pip_beside_it_python_is_asked_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("pip")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert packages.install_line("gguf").startswith(f"{sys.executable} -P -m pip install ")


def test_an_environment_without_pip_is_uvs(monkeypatch: pytest.MonkeyPatch) -> None:
    real = packages.importlib.util.find_spec
    monkeypatch.setattr(
        packages.importlib.util, "find_spec", lambda name: None if name == "pip" else real(name)
    )
    line = packages.install_line("gguf")
    assert line.startswith(f"uv pip install --python {sys.executable} ")
    monkeypatch.setattr(packages.shutil, "which", lambda name: None)
    assert packages.install_command("gguf") is None
    monkeypatch.setattr(packages.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert packages.install_command("gguf") == tuple(shlex.split(line))


def _by_packaging(extra: str) -> set[str]:
    """What pip would take for an extra here, by its own rules."""
    found: set[str] = set()
    for text in metadata.requires("goodbot") or ():
        one = Requirement(text)
        if one.marker is None or one.marker.evaluate({"extra": ""}):
            continue  # the base
        if not one.marker.evaluate({"extra": extra}):
            continue
        if one.name == "goodbot":
            found |= set().union(*map(_by_packaging, one.extras))
        else:
            found.add(str(Requirement(text.partition(";")[0])))
    return found


def test_every_extra_is_what_pip_understands_of_it() -> None:
    extras: Sequence[str] = metadata.metadata("goodbot").get_all("Provides-Extra") or []
    for extra in extras:
        named = {str(Requirement(one)) for one in packages.requirements(extra)}
        assert named == _by_packaging(extra), extra
        assert named, extra
        assert not any(Requirement(one).name == "goodbot" for one in named)


def test_a_plugin_brings_extras_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "goodbot_pigeon-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: goodbot-pigeon\nVersion: 1\nProvides-Extra: post\n"
        "Requires-Dist: pigeon-sdk>=3; extra == 'post'\n"
    )
    (info / "entry_points.txt").write_text("[goodbot]\npigeon = goodbot_pigeon\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert packages.requirements("post") == ("pigeon-sdk>=3",)
    assert packages.requirements("nothing_has_this") == ()
    assert packages.install_line("nothing_has_this") == "the page of its plugin says how"
    assert packages.install_command("nothing_has_this") is None


def test_the_line_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into an environment of its own, with what it asks for in a folder."""
    require("pip")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name, module in (("python-telegram-bot", "telegram"), ("segno", "segno")):
        stem = f"{name.replace('-', '_')}-99"
        info = f"{stem}.dist-info"
        with zipfile.ZipFile(wheels / f"{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{module}/__init__.py", "")
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 99\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    monkeypatch.setattr(sys, "prefix", str(place))
    environ = {"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    done = subprocess.run(
        ["/bin/sh", "-c", packages.install_line("telegram")],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(place.glob("lib/python*/site-packages/telegram"))


@pytest.mark.parametrize(
    ("direct", "found"),
    [
        (None, packages.Origin()),
        ("no JSON", packages.Origin()),
        (
            {"url": "file:///src/good%20bot", "dir_info": {"editable": True}},
            packages.Origin(checkout=Path("/src/good bot")),
        ),
        (
            {"url": "file:///d/goodbot-1-py3-none-any.whl", "archive_info": {}},
            packages.Origin(file=Path("/d/goodbot-1-py3-none-any.whl")),
        ),
        ({"url": "file:///src", "dir_info": {}}, packages.Origin(file=Path("/src"))),
        ([], packages.Origin()),
    ],
)
def test_where_it_came_from(monkeypatch: pytest.MonkeyPatch, direct: object, found: packages.Origin) -> None:
    text = direct if direct is None or isinstance(direct, str) else json.dumps(direct)

    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return text

    monkeypatch.setattr(packages.metadata, "distribution", lambda name: Installed())
    assert packages.origin() == found


def _backend(name: str, *, here: bool, priority: int, download: int | None) -> BackendSpec:
    return BackendSpec(
        name=name,
        factory="no:where",
        requires=() if here else ("no_such_module",),
        extra=name,
        settings=object,
        priority=priority,
        download=download,
    )


@pytest.mark.parametrize(
    ("small_here", "large_here", "taken"),
    [(True, True, "large"), (True, False, "small"), (False, True, "large"), (False, False, "small")],
)
def test_the_fastest_that_is_installed_else_the_small_one(
    small_here: bool, large_here: bool, taken: str
) -> None:
    specs = {
        "unknown": _backend("unknown", here=False, priority=99, download=None),
        "large": _backend("large", here=large_here, priority=10, download=2_500_000_000),
        "small": _backend("small", here=small_here, priority=5, download=65_000_000),
    }
    assert automatic_backend(specs).name == taken
    order = [one.name for one in automatic_backends(specs)]
    assert order[0] == taken
    assert (
        order
        == {2: ["large", "small"], 1: [taken], 0: ["small", "large", "unknown"]}[small_here + large_here]
    )


def test_no_backend_at_all_is_a_sentence() -> None:
    with pytest.raises(ConfigError, match="no plugin offers a training backend"):
        automatic_backend({})
