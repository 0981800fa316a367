# SPDX-License-Identifier: Apache-2.0
"""What tests and the programs that they start find around them, and must leave as it was.

Whatever pip, uv, npm, git and the hub's client would ask is on loopback, or there is none; signals are as a
person at a terminal has them. And the session fails if the environment that it runs in holds other
files at its end than it held before; `GOODBOT_TESTS_CHANGED=FILE` keeps what those are, for `.ci/run`.
"""

from __future__ import annotations

import os
import signal
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

AS_STARTED = dict(os.environ)
"""The environment that pytest was started in, for what a test run has to fetch (`make test-agents`)."""

_NOBODY = "http://127.0.0.1:9"
CLOSED = {
    "PIP_CONFIG_FILE": os.devnull,
    "PIP_NO_INDEX": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "UV_OFFLINE": "1",
    "UV_NO_CONFIG": "1",
    "npm_config_offline": "true",
    "npm_config_registry": f"{_NOBODY}/",
    "npm_config_update_notifier": "false",
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_TERMINAL_PROMPT": "0",
    "HF_ENDPOINT": _NOBODY,
}


class File(NamedTuple):
    """What tells that a file is still the same one."""

    size: int
    changed_ns: int


def closed(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without a way to an index: what this machine's owner has set for pip and uv is left out."""
    kept = {name: value for name, value in environ.items() if not name.startswith(("PIP_", "UV_"))}
    return kept | CLOSED


def listing() -> dict[Path, File]:
    """Every file of the environment that runs the tests, but what Python compiles on the way."""
    paths = sysconfig.get_paths()
    found: dict[Path, File] = {}
    for root in {paths[name] for name in ("purelib", "platlib", "scripts")}:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                about = os.lstat(path := os.path.join(folder, name))
                found[Path(path)] = File(about.st_size, about.st_mtime_ns)
    return found


def changes(before: Mapping[Path, File], after: Mapping[Path, File]) -> list[str]:
    """One line for each file that came, went or is another one now."""
    return [
        *(f"came: {path}" for path in sorted(after.keys() - before.keys())),
        *(f"went: {path}" for path in sorted(before.keys() - after.keys())),
        *(f"changed: {p}" for p in sorted(before.keys() & after.keys()) if before[p] != after[p]),
    ]


_LISTING = pytest.StashKey[dict[Path, File]]()
_CHANGES = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Close the way out, and let Ctrl-C reach programs although our own parent ignores it (`nohup … &`)."""
    for name in os.environ.keys() - closed(os.environ).keys():
        del os.environ[name]
    os.environ.update(CLOSED)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):  # one look is enough, not one of each process
        config.stash[_LISTING] = listing()


@pytest.hookimpl(trylast=True)  # after the other processes have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    before = session.config.stash.get(_LISTING, None)
    if before is None:
        return
    session.config.stash[_CHANGES] = found = changes(before, listing())
    if file := os.environ.get("GOODBOT_TESTS_CHANGED"):
        with Path(file).open("a", encoding="utf-8") as said:
            said.writelines(f"{line}\n" for line in found)
    if found:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name what a test has installed, removed or overwritten."""
    if found := config.stash.get(_CHANGES, []):
        terminalreporter.section("the tests changed the environment that they run in", red=True)
        for line in found[:50]:
            terminalreporter.line(line)
        if len(found) > 50:
            terminalreporter.line(f"and {len(found) - 50} more")
