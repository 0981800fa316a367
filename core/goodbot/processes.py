"""The one door for starting programs: no other module starts a process or names the interpreter.

Whatever is started here imports nothing from the directory that a person happens to be in, has an
environment of its own and none of our handles, dumps no core, and ends with us from its first
instruction on (`goodbot.cage` is what runs first).
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

_KEPT = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLUMNS", "TMPDIR",
    "XDG_*", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH",
    "HF_HOME", "HF_HUB_CACHE", "CUDA_*", "NVIDIA_*", "ROCM_*", "ROCR_*", "HIP_*", "HSA_*", "GPU_*",
    "MIOPEN_*", "ZE_*", "MLX_*", "METAL_*", "PYTORCH_*", "TORCH_*", "TORCHDYNAMO_*",
    "OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "GGML_*",
)  # fmt: skip
"""Of our environment, what any child may need: where things are, and which processors to use."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
PIP = (
    *PROXIES, *map(str.lower, PROXIES), "PIP_*", "UV_*", "SSL_CERT_*", "NETRC", "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE", "CC", "CXX", "CFLAGS", "LDFLAGS",
)  # fmt: skip
"""What an installer needs besides: how this machine reaches its package index."""
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "KEY")
_NEVER = ("PYTHONPATH", "PYTHONHOME", "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES")
"""What makes a program run other code than its own."""
Running = subprocess.Popen[bytes]
"""A program of which only the process is known."""
Done = subprocess.CompletedProcess[str]
"""A program that has ended: its `returncode`, `stdout` and `stderr`."""


def child_environment(*more: str) -> dict[str, str]:
    """What a child gets of our environment: no tokens, no other code, and no way to a hub's network.

    `more` are the names or patterns that this child needs besides.
    """
    kept = {name: value for name, value in os.environ.items() if _kept(name, more)}
    return {
        **kept,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }


def python(*words: str) -> tuple[str, ...]:
    """This interpreter as a command; the working directory is not where it looks for modules."""
    return (sys.executable, "-P", *words)


async def start(
    *command: str, environ: Mapping[str, str] | None = None, cwd: Path | str = os.sep,
    **options: Any,
) -> asyncio.subprocess.Process:  # fmt: skip
    """A child with pipes as `asyncio.create_subprocess_exec` has them. Raises OSError.

    It is cancelled only once the process is there: cancelled half way, CPython's own kills the child,
    then waits until the last process that holds its pipes is gone: for ever, where the child has
    started another. Here the process is returned, and the caller is cancelled at what it awaits next;
    let that be where it ends what it has started.
    """
    environ = child_environment() if environ is None else environ
    return await _there(_through(command, environ), env=environ, cwd=cwd, **options)


def run(
    *command: str, seconds: float | None, environ: Mapping[str, str] | None = None, **options: Any
) -> Done:
    """Run a program to its end; its words are kept unless `options` say otherwise. It blocks.

    Raises OSError, and TimeoutError after `seconds`.
    """
    environ = child_environment() if environ is None else environ
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    try:
        return subprocess.run(
            _through(command, environ), stdin=subprocess.DEVNULL, env=environ, cwd=os.sep, text=True,
            errors="replace", timeout=seconds, check=False, **options,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{command[0]} did not end within {seconds} s") from error


def leave_running(*command: str, cwd: Path, out: int) -> Running:
    """Start goodbot's own daemon, which goes on when we end and needs the tokens that we were given."""
    environ = {name: value for name, value in os.environ.items() if name not in _NEVER}
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ, cwd=cwd,
        start_new_session=True,  # Ctrl-C in this terminal is for the chat alone
    )  # fmt: skip


def ends(process: Running, seconds: float) -> bool:
    """Whether it ends by itself within so many seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _through(command: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command as `goodbot.cage` runs it. Raises FileNotFoundError."""
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    told = json.dumps({"parent": os.getpid()})
    return python("-m", "goodbot.cage", told, os.path.abspath(program), *command[1:])


def _kept(name: str, more: Sequence[str]) -> bool:
    secret = any(word in name for word in _SECRET)
    return name in more or (not secret and any(fnmatchcase(name, one) for one in (*_KEPT, *more)))


async def _there(command: Sequence[str], **options: Any) -> asyncio.subprocess.Process:
    starting = asyncio.ensure_future(asyncio.create_subprocess_exec(*command, **options))
    cancelled = False
    while not starting.done():
        try:
            await asyncio.wait({starting})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if starting.cancelled() or starting.exception() is not None:
            raise asyncio.CancelledError
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  a coroutine runs in a task
        task.uncancel()  # the same cancellation, put off: whoever counts them counts one
        task.cancel()
    return starting.result()
