# SPDX-License-Identifier: Apache-2.0
"""What a cage is told, on any machine: the sandbox's profile of macOS (not run here) and the limits."""

from __future__ import annotations

import re
import resource
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


def test_a_mac_s_model_server_listens_at_its_port_and_calls_nobody(tmp_path: Path) -> None:
    program, library = tmp_path / "bin" / "llama-server", tmp_path / "lib" / "libllama.dylib"
    for path in (program, library):
        path.parent.mkdir()
        path.touch()
    profile = macos.profile([], [], [str(tmp_path)], [str(program)], 8123)
    network = re.findall(r"^\(.* network.*$", profile, re.M)
    assert network == [
        "(deny network*)",
        '(allow network-bind (local tcp "localhost:8123"))',
        '(allow network-inbound (local tcp "localhost:8123"))',
    ]
    assert f'(subpath "{program}")' in profile.partition("(allow process-exec")[2].partition("\n")[0]
    assert readable(profile, str(library))
    assert readable(profile, str(program))
    assert not readable(profile, str(tmp_path / "bin" / "mine"))
    assert "(allow network" not in macos.profile([], [], [], [str(program)])


def test_of_where_a_program_lies_its_libraries_are_read_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "llama-server"
    libraries = [program.with_name("libllama.so"), tmp_path / "lib" / "libggml.so.1.2"]
    others = [program.with_name("secrets.env"), tmp_path / "lib" / "notes.txt", tmp_path / "bin" / "x.so"]
    for path in (program, *libraries, *others[:2]):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    others[2].mkdir()
    seen = dict(places.system([], [str(program)]))
    assert {path: seen.get(str(path)) for path in libraries} == dict.fromkeys(libraries, True)
    assert [str(path) for path in others if str(path) in seen] == []
    assert (seen[str(tmp_path / "bin")], seen[str(tmp_path / "lib")]) == (False, False)
    for hidden in (tmp_path / "bin", tmp_path / "bin" / "state"):
        assert str(tmp_path / "bin") not in dict(places.system([str(hidden)], [str(program)])), "no names"


@pytest.mark.skipif(sys.platform != "linux", reason="programs of other systems name no loader in this way")
def test_what_the_kernel_runs_for_a_script_is_known(tmp_path: Path) -> None:
    python = Path(sys.executable).resolve()
    script = tmp_path / "script"
    script.write_text(f"#! {sys.executable} -P\n")
    found, runs, *loaders = places.started(str(script))
    assert (found, runs) == (str(script), str(python))
    assert all(Path(path).name.startswith(("ld", "libc.musl")) for path in loaders)
    assert places.started(str(python)) == [str(python), *loaders]
    (tmp_path / "loop").write_text(f"#!{tmp_path}/loop\n")
    assert set(places.started(str(tmp_path / "loop"))) == {str(tmp_path / "loop")}
    (tmp_path / "short").write_bytes(b"\x7fELF\x02\x01")
    assert places.started(str(tmp_path / "short")) == [str(tmp_path / "short")]


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
        told_of = {"reads": [], "writes": [], "hidden": [], "seconds": 9, "port": None}
        command = macos.enter(told_of, ["/usr/bin/true", "x"])
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


@pytest.mark.parametrize(
    ("nodes", "vendors", "counts"),
    [
        (["renderD128"], {"renderD128": "0x1002"}, True),
        (["renderD128"], {"renderD128": "0x8086"}, True),
        (["renderD128", "renderD129"], {"renderD128": "0x1a03", "renderD129": "0x10de"}, True),
        (["card0"], {"card0": "0x1a03"}, False),
        (["card0"], {"card0": "0x8086"}, False),
        (["renderD128"], {"renderD128": "0x1af4"}, False),
        (["renderD128"], {}, False),
        ([], {"renderD128": "0x1002"}, False),
    ],
    ids=[
        "AMD",
        "Intel",
        "beside another",
        "server",
        "screen only",
        "virtual",
        "no PCI",
        "none in a container",
    ],
)
def test_a_card_that_computes_is_told_from_one_that_only_shows(
    tmp_path: Path, nodes: list[str], vendors: dict[str, str], counts: bool
) -> None:
    (tmp_path / "dev/dri").mkdir(parents=True)
    for name in nodes:
        (tmp_path / "dev/dri" / name).touch()
    for name, vendor in vendors.items():
        (tmp_path / "sys/class/drm" / name / "device").mkdir(parents=True)
        (tmp_path / "sys/class/drm" / name / "device/vendor").write_text(f"{vendor}\n")
    assert places.has_card(tmp_path) is counts


@pytest.mark.skipif(sys.platform != "linux", reason="a Mac has no limit of addresses")
@pytest.mark.parametrize(
    ("gpu", "card", "serves", "limited"),
    [
        (False, False, True, {resource.RLIMIT_DATA, resource.RLIMIT_AS}),
        (False, True, True, {resource.RLIMIT_DATA}),
        (False, True, False, {resource.RLIMIT_DATA, resource.RLIMIT_AS}),
        (True, True, True, set[int]()),
    ],
)
def test_beside_a_card_addresses_are_free_and_memory_is_not_unless_its_driver_reserves_that_too(
    monkeypatch: pytest.MonkeyPatch, gpu: bool, card: bool, serves: bool, limited: set[int]
) -> None:
    monkeypatch.setattr(limits, "has_gpu", lambda: gpu)
    monkeypatch.setattr(limits, "has_card", lambda: card)
    found = limits.of_memory(7, serves=serves)
    assert {*found} == limited
    assert all(limit > limits.memory() for limit in found.values())


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
