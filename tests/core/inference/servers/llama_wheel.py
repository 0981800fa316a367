# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own server, as the package `xllamacpp` has it, behind the command line of `llama-server`.

The package is llama.cpp compiled into one library, its HTTP server within. What stands here is read from
the command line as llama.cpp itself reads it, and an option that we do not know ends it, as there.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

PACKAGE = "xllamacpp"


def program(directory: Path) -> Path:
    """It as one executable file in `directory`, as the setting `binary` wants it."""
    path = directory / "llama-server"
    path.write_text(f"#!{sys.executable} -P\nfrom {__name__} import main\nmain()\n")
    path.chmod(0o700)
    return path


def main() -> None:
    """Serve until SIGTERM."""
    llama: Any = importlib.import_module(PACKAGE)
    parser = argparse.ArgumentParser(prog="llama-server", allow_abbrev=False)
    for option in ("--model", "--host", "--alias", "--lora"):
        parser.add_argument(option, default="")
    for option in ("--port", "--parallel", "--ctx-size", "--cache-ram", "--n-gpu-layers", "--threads"):
        parser.add_argument(option, type=int, default=-1)
    given = parser.parse_args()
    params = llama.CommonParams()
    params.model.path = given.model
    params.hostnames, params.port, params.model_alias = [given.host], given.port, {given.alias}
    params.api_keys = [os.environ["LLAMA_API_KEY"]]
    params.n_parallel, params.n_ctx, params.cache_ram_mib = given.parallel, given.ctx_size, given.cache_ram
    params.n_gpu_layers, params.cpuparams.n_threads = given.n_gpu_layers, given.threads
    if given.lora:
        params.lora_adapters = [llama.CommonAdapterLoraInfo(given.lora, 1.0)]
    server = llama.Server(params)  # its threads serve as long as it is held
    signal.pause()
    del server
