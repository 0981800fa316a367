# SPDX-License-Identifier: Apache-2.0
"""Compiles the plugin and notes of which sources: `python -m tests.connectors.openclaw.build`."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from goodbot_connectors.openclaw.setup import PLUGIN

NOTE = PLUGIN / "build.json"


def sources() -> str:
    """A hash of all that the compiler reads."""
    digest = hashlib.sha256()
    for path in sorted([*(PLUGIN / "src").rglob("*.ts"), PLUGIN / "tsconfig.json"]):
        digest.update(f"{path.relative_to(PLUGIN).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def compiled(folder: Path) -> str:
    """A hash of what the compiler made."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.js")):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def compile_to(folder: Path) -> None:
    """Run the pinned compiler."""
    from tests.agents import programs

    subprocess.run(
        [*programs.tsc(), "-p", str(PLUGIN / "tsconfig.json"), "--outDir", str(folder)], check=True
    )


def main() -> None:
    shutil.rmtree(PLUGIN / "dist", ignore_errors=True)
    compile_to(PLUGIN / "dist")
    note = {"sources": sources(), "compiled": compiled(PLUGIN / "dist")}
    NOTE.write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
