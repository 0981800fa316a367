# SPDX-License-Identifier: Apache-2.0
"""What a cage is told, on any machine: the sandbox's profile of macOS (not run here) and the limits."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from goodbot.base import cage
from goodbot.base.cage import landlock, limits, macos, places, seccomp
from goodbot.cli.doctor import files

_RULE = re.compile(r'^\((allow|deny) file-read-data \(subpath "([^"]*)"\)\)$', re.M)


def readable(profile: str, path: str) -> bool:
    """As the sandbox decides: the last rule that fits."""
    verbs = [verb for verb, place in _RULE.findall(profile) if Path(path).is_relative_to(place)]
    return not verbs or verbs[-1] == "allow"


def test_of_what_a_mac_s_child_may_read_the_place_further_in_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "home" / "venv"
    state = python / "state"
    (state / "adapters").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(python))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.setattr(sys, "path", ["", str(python)])
    reads, hidden = ([str(state / "adapters"), "/Volumes/models/one"], [str(tmp_path / "home"), str(state)])
    profile = macos.profile(reads, [str(tmp_path / "home" / "out")], hidden)
    for path, allowed in {
        str(Path("/Users") / "me" / ".ssh"): False,
        "/Volumes/other": False,
        "/Volumes/models/one/config.json": True,
        "/System/Library/x": True,
        f"{tmp_path}/home/.netrc": False,
        f"{python}/lib/x.py": True,
        f"{state}/secrets.env": False,
        f"{state}/adapters/v1": True,
        f"{tmp_path}/home/out/x": True,
    }.items():
        assert readable(profile, path) == allowed, path


def test_what_we_are_told_to_show_a_mac_is_stronger_than_what_hides_it(tmp_path: Path) -> None:
    profile = macos.profile([str(tmp_path)], [], [str(tmp_path), str(tmp_path / "state")])
    assert readable(profile, f"{tmp_path}/config.json")
    assert not readable(profile, f"{tmp_path}/state/secrets.env")


def test_a_mac_without_a_sandbox_that_works_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = list[int | None]()

    def limit(reads: Sequence[str], *, seconds: int | None) -> None:
        """In place of the real one, which would limit this very process."""
        told.append(seconds)

    monkeypatch.setattr(limits, "limit", limit)
    for program in ("/nowhere/sandbox-exec", "/bin/false"):
        monkeypatch.setattr(macos, "_PROGRAM", program)
        command = macos.enter({"reads": [], "writes": [], "hidden": [], "port": None}, ["/usr/bin/true", "x"])
        assert command[:2] == [program, "-p"]
        assert command[3:] == ["/usr/bin/true", "x"]
        assert macos.missing() == ["sandbox-exec"]
    assert told == [9, 9]


async def test_doctor_says_that_a_mac_s_sandbox_does_not_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.sys, "platform", "darwin")
    monkeypatch.setattr(cage, "missing", lambda: ["sandbox-exec"])
    [check] = await files.locked_up(None)  # type: ignore[arg-type]
    assert (check.part, str(check.state)) == ("cage", "fail")
    assert "nothing that reads models or adapters starts" in check.text


@pytest.mark.parametrize("lacks", [("files",), ("network",), ("files", "network")])
async def test_doctor_says_in_one_line_what_linux_lacks(
    lacks: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files.sys, "platform", "linux")
    monkeypatch.setattr(landlock, "abi", lambda: 0 if "files" in lacks else 1)
    monkeypatch.setattr(seccomp, "known", lambda: "network" not in lacks)
    [check] = await files.locked_up(None)  # type: ignore[arg-type]
    assert (check.part, str(check.state)) == ("cage", "warn")
    assert check.text.startswith(
        "what reads models and adapters can reach more than these: this machine lacks "
    )
    assert [word in check.text for word in ("Landlock (files)", "seccomp (network")] == [
        "files" in lacks,
        "network" in lacks,
    ]
    assert "whom you trust" in check.fix
    monkeypatch.setattr(landlock, "abi", lambda: 1)
    monkeypatch.setattr(seccomp, "known", lambda: True)
    [check] = await files.locked_up(None)  # type: ignore[arg-type]
    assert str(check.state) == "ok"


def test_of_nested_control_groups_the_tightest_limit_counts(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/user.slice/goodbot.service\n")
    group = tmp_path / "sys/fs/cgroup/user.slice/goodbot.service"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("900\n")
    (group.parent / "memory.max").write_text("700\n")
    (group.parent.parent / "memory.max").write_text("max\n")
    assert limits.memory(tmp_path) == 700
    (group.parent / "memory.max").write_text("max\n")
    assert limits.memory(tmp_path) == 900
    assert limits.memory(tmp_path / "nowhere") > 900


def test_a_link_to_something_large_loosens_no_limit(tmp_path: Path) -> None:
    model, large = tmp_path / "model", tmp_path / "large"
    model.mkdir()
    with large.open("wb") as file:
        file.truncate(1 << 30)
    (model / "x.safetensors").symlink_to(large)
    (model / "config.json").write_text("{}")
    assert limits.size(str(model)) == 2


def test_what_an_installer_has_only_linked_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, cache = tmp_path / "site-packages", tmp_path / "cache"
    for name in ("whole", "by_file"):
        (cache / name).mkdir(parents=True)
        (cache / name / "__init__.py").touch()
    (cache / "single.py").touch()
    (site / "by_file").mkdir(parents=True)
    (site / "whole").symlink_to(cache / "whole")
    (site / "single.py").symlink_to(cache / "single.py")
    (site / "by_file" / "__init__.py").symlink_to(cache / "by_file" / "__init__.py")
    monkeypatch.setattr(sys, "path", [*sys.path, str(site)])
    seen = dict(places.system([str(tmp_path)], ["python"]))
    for path in (site, cache / "whole", cache / "single.py", cache / "by_file"):
        assert seen.get(str(path)) is True, path
    assert str(cache) not in seen
