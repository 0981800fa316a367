# SPDX-License-Identifier: Apache-2.0
"""A real `llama-server` for `make test-serving`: the owner's, or one built once from PyPI's source.

`python -m tests.core.inference.servers.llama_build` builds it (20 minutes of one core, cmake and a C++
compiler) into `build/llama.cpp`, where later runs find it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[4] / "build" / "llama.cpp"
BUILT = CACHE / "llama-server"
_OFF = (
    "BUILD_SHARED_LIBS GGML_NATIVE GGML_OPENMP LLAMA_BUILD_APP LLAMA_BUILD_TESTS LLAMA_BUILD_UI LLAMA_OPENSSL"
)


def program() -> str:
    """Its path, or skip with the reason."""
    named = os.environ.get("GOODBOT_LLAMA_SERVER") or shutil.which("llama-server")
    if named:
        return named
    if not BUILT.exists():
        pytest.skip(
            "no llama-server: set GOODBOT_LLAMA_SERVER, or build one with "
            "`python -m tests.core.inference.servers.llama_build`"
        )
    return str(BUILT)


def build() -> None:
    """Fetch the source that llama-cpp-python ships and compile its server."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        fetch = ["download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", "-d", folder]
        wanted = ["scikit-build-core", "cmake", "ninja"]
        subprocess.run([sys.executable, "-m", "venv", work / "venv"], check=True)
        pip = [work / "venv" / "bin" / "python", "-m", "pip", "--quiet"]
        subprocess.run([*pip, "install", *wanted], check=True)
        subprocess.run([*pip, *fetch, "llama-cpp-python"], check=True)
        with tarfile.open(next(work.glob("llama_cpp_python-*.tar.gz"))) as archive:
            archive.extractall(work / "source", filter="data")
        source = next((work / "source").glob("*/vendor/llama.cpp"))
        options = [f"-D{name}=OFF" for name in _OFF.split()]
        optimised = "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"
        made = work / "made"
        path = os.pathsep.join((str(work / "venv" / "bin"), os.environ.get("PATH", "")))
        environ = {**os.environ, "PATH": path}
        cmake = str(work / "venv" / "bin" / "cmake")
        configure = [cmake, "-S", source, "-B", made, "-G", "Ninja", *optimised, *options]
        subprocess.run(configure, check=True, env=environ)
        compile_ = [cmake, "--build", made, "--target", "llama-server", "--parallel", "1"]
        subprocess.run(compile_, check=True, env=environ)
        shutil.copy2(made / "bin" / "llama-server", BUILT)
    print(BUILT)


if __name__ == "__main__":
    build()
