# SPDX-License-Identifier: Apache-2.0
"""What the tests of the examples share."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support import missing, patience

ROOT = Path(__file__).parents[2]


def require_backend() -> None:
    """Skip, or fail, where no backend can answer: one of the two is enough."""
    if not any(importlib.util.find_spec(name) for name in ("mlx_lm", "torch")):
        missing("neither mlx nor torch is installed")


def tool(name: str) -> Any:
    """A script of docs/tools, as a module."""
    return script(f"docs/tools/{name}.py")


def script(path: str) -> Any:
    """A program of the repository, as a module."""
    name = path.removesuffix(".py").replace("/", "_")
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where its dataclasses look for their names
    spec.loader.exec_module(module)
    return module


def python(
    *arguments: str, cwd: Path, environ: Mapping[str, str] | None = None, seconds: float = 110.0
) -> subprocess.CompletedProcess[str]:
    """Run this Python in a directory outside of the repository; output is captured."""
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"} | dict(environ or {})
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environ,
        capture_output=True,
        text=True,
        timeout=patience(seconds),
        check=False,
    )


def stranger(line: str) -> bool:
    """Whether it tells an installer to fetch goodbot by its name."""
    told = re.search(r"\b(?:pip|pipx|uv)\b['\"]? +(?:install|inject)\b(?P<what>[^`]*)", line)
    return told is not None and re.search(r"[ '\"]goodbot(?:$|[\[\"' ](?!s\b))", told["what"]) is not None
