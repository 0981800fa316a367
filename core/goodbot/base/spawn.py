# SPDX-License-Identifier: Apache-2.0
"""The one door for starting programs: no other module starts a process or names the interpreter.

Whatever is started here imports nothing from the directory that a person happens to be in, has an
environment of its own and none of our handles, dumps no core, and ends with us from its first
instruction on (`goodbot.base.cage` is what runs first). With a `Cage` it can do little else than its job.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import site
import stat
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from goodbot.base import cage as cages
from goodbot.base import priority, scratch
from goodbot.base.scratch import Scratch
from goodbot.base.worded import Worded

_KEPT = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLUMNS", "TMPDIR"),
    *("XDG_*", "PYTHONUSERBASE", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"),
    *("HF_HOME", "HF_HUB_CACHE", "CUDA_*", "NVIDIA_*", "ROCM_*", "ROCR_*", "HIP_*", "HSA_*", "GPU_*"),
    *("MIOPEN_*", "ZE_*", "MLX_*", "METAL_*", "PYTORCH_*", "TORCH_*", "TORCHDYNAMO_*"),
    *("OMP_*", "GOMP_*", "KMP_*", "MKL_*", "OPENBLAS_*", "GGML_*"),
    priority.KEEP,
)
"""Of our environment, what any child may need: where things are, and which processors to use."""
_XDG = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
_CACHES = (
    *("XDG_CACHE_HOME", "CUDA_CACHE_PATH", "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR"),
    "TRITON_CACHE_DIR",
)
"""Where libraries keep what they have compiled; Mesa, Intel's and AMD's do below the first."""
_COMPILED = 1 << 30
_SIZES = {
    "CUDA_CACHE_MAXSIZE": str(_COMPILED),
    "NEO_CACHE_MAX_SIZE": str(_COMPILED),
    "MESA_SHADER_CACHE_MAX_SIZE": f"{_COMPILED >> 20}M",
    "__GL_SHADER_DISK_CACHE_SIZE": str(_COMPILED),
}
"""How much of that NVIDIA's CUDA, Intel's driver, Mesa and NVIDIA's Vulkan keep at most, in their words."""
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "KEY")
_NEVER = ("PYTHONPATH", "PYTHONHOME", "LD_PRELOAD", "LD_AUDIT", "DYLD_INSERT_LIBRARIES")
"""What makes a program run other code than its own."""
Running = subprocess.Popen[bytes]
"""A program of which only the process is known."""
Done = subprocess.CompletedProcess[str]
"""A program that has ended: its `returncode`, `stdout` and `stderr`."""
_SCRATCH = "goodbot-own-"
NOTHING = subprocess.DEVNULL
"""A stream of a child that leads nowhere."""
_NOTHING = dict.fromkeys(("stdin", "stdout", "stderr"), NOTHING)
"""Never our own, which may be a terminal: who types there, and what it does, is no child's business."""
SECONDS = 6 * 3600  # of one piece of work on foreign files, however large; only a training takes longer
_sweeping: set[asyncio.Task[None]] = set()


@dataclass(frozen=True, kw_only=True, slots=True)
class Cage:
    """What a child that reads foreign files may do besides computing (`docs/architecture.md`)."""

    reads: Sequence[Path] = ()
    """Files, and directories with all that is in them."""
    writes: Sequence[Path] = ()
    """Directories that are there. One of its own, which goes when it ends, comes on top."""
    cache: Path | None = None
    """One that is there, and where its libraries keep what they compile, for whoever is given the same next.
    None: they keep it in the one that goes."""
    first: bool = False
    """Where memory runs out, the kernel ends it before the others."""
    seconds: int | None = SECONDS
    """How long all processors together may compute for it; then it is ended. None: as long as it likes."""
    port: int | None = None
    """One of this machine that it may listen at, by TCP; it calls nobody."""

    def foreign(self) -> str:
        """The path of something in `writes` that is neither a file of its own nor a directory; empty: none.

        Whoever reads, moves or changes what a caged child has left asks this first, once it has ended: a link
        would lead out of its cage those who are in none. It blocks. Raises OSError.
        """
        folders = [str(path) for path in self.writes if path.is_dir()]
        while folders:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        folders.append(entry.path)
                    elif not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                        return entry.path
        return ""


def child_environment(*more: str, secrets: Collection[str] = ()) -> dict[str, str]:
    """What a child gets of our environment: no tokens, no other code, and no way to a hub's network.

    `more` are the names or patterns that this child needs besides; what sounds like a secret is not
    among them. `secrets` are the names of those that this child is there to use.
    """
    kept = {name: value for name, value in os.environ.items() if name in secrets or _kept(name, more)}
    return {**kept, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}


def python(*words: str) -> tuple[str, ...]:
    """This interpreter as a command; the working directory is not where it looks for modules."""
    return (sys.executable, "-P", *words)


async def start(
    *command: str,
    environ: Mapping[str, str] | None = None,
    cwd: Path | str = os.sep,
    cage: Cage | None = None,
    **options: Any,
) -> asyncio.subprocess.Process:
    """A child with pipes as `asyncio.create_subprocess_exec` has them, else with nothing. Raises OSError.

    It is cancelled only once the process is there: cancelled half way, CPython's own kills the child,
    then waits until the last process that holds its pipes is gone: for ever, where the child has
    started another. Here the process is returned, and the caller is cancelled at what it awaits next;
    let that be where it ends what it has started.
    """
    environ = child_environment() if environ is None else environ
    options = {**_NOTHING, **options}
    if cage is None:
        return await _there(_through(command, environ), env=environ, cwd=cwd, **options)
    await asyncio.to_thread(sweep)
    own = Scratch(_place(), _SCRATCH)
    try:
        environ = {**environ, **_at_home(own.path, cage.cache or own.path)}
        child = await _there(_through(command, environ, cage, own.path), env=environ, cwd=own.path, **options)
    except BaseException:
        own.remove()  # nobody has written into it yet
        raise
    task = asyncio.create_task(_swept(child, own), name="a child's own directory")
    _sweeping.add(task)
    task.add_done_callback(_sweeping.discard)
    return child


def why_not(error: OSError) -> str:
    """Why a child could not be started, and what helps, as a clause."""
    room, close = Worded("make room on the disk"), Worded("close other programs")
    helps = {
        errno.ENOSPC: room,
        errno.EDQUOT: room,
        errno.ENOMEM: close,
        errno.EAGAIN: close,
        errno.EMFILE: Worded("start goodbot with a higher `ulimit -n`"),
        errno.ENFILE: close,
    }.get(error.errno or 0, Worded("`goodbot doctor` looks for the cause"))
    return Worded("it cannot be started ({why}): {help}", why=error.strerror or str(error), help=helps)


def run(
    *command: str, seconds: float | None, environ: Mapping[str, str] | None = None, **options: Any
) -> Done:
    """Run a program to its end; its words are kept unless `options` say otherwise. It blocks.

    Raises OSError, and TimeoutError after `seconds`.
    """
    environ = child_environment() if environ is None else environ
    options = {**_NOTHING, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    try:
        return subprocess.run(
            _through(command, environ),
            env=environ,
            cwd=os.sep,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
            **options,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{command[0]} did not end within {seconds} s") from error


def leave_running(*command: str, cwd: Path, out: int) -> Running:
    """Start goodbot's own daemon, which goes on when we end and needs the tokens that we were given."""
    environ = {name: value for name, value in os.environ.items() if name not in _NEVER}
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        env=environ,
        cwd=cwd,
        start_new_session=True,  # Ctrl-C in this terminal is for the chat alone
    )


def ends(process: Running, seconds: float) -> bool:
    """Whether it ends by itself within so many seconds."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def abandoned() -> list[Path]:
    """What the children of a goodbot that was killed had for themselves; changes nothing."""
    return scratch.abandoned(_place(), _SCRATCH)


def sweep() -> None:
    """Delete that."""
    scratch.sweep(_place(), _SCRATCH)


def _place() -> Path:
    return Path(tempfile.gettempdir())


def _through(
    command: Sequence[str], environ: Mapping[str, str], cage: Cage | None = None, scratch: Path | None = None
) -> tuple[str, ...]:
    """The command as `goodbot.base.cage` runs it. Raises FileNotFoundError."""
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath))
    if program is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command[0])
    told: dict[str, Any] = {"parent": os.getpid(), "cage": None}
    if cage and scratch:
        told["cage"] = {
            "reads": [str(path.absolute()) for path in cage.reads],
            "writes": [str(path.absolute()) for path in (*cage.writes, cage.cache, scratch) if path],
            "hidden": [str(path) for path in (Path.home(), *cages.hidden)],
            "first": cage.first,
            "seconds": None if cage.seconds is None else cage.seconds * (os.cpu_count() or 1),
            "port": cage.port,
        }
    return python("-m", "goodbot.base.cage", json.dumps(told), os.path.abspath(program), *command[1:])


def _at_home(scratch: Path, cache: Path) -> dict[str, str]:
    """Where a child keeps what its libraries would keep in a person's home, which it cannot see."""
    return {
        **dict.fromkeys(("HOME", "TMPDIR", "HF_HOME", "HF_HUB_CACHE", *_XDG), str(scratch)),
        **dict.fromkeys(_CACHES, str(cache.absolute())),
        **_SIZES,
        **({"PYTHONUSERBASE": site.getuserbase()} if site.ENABLE_USER_SITE else {}),
    }


async def _swept(process: asyncio.subprocess.Process, own: Scratch) -> None:
    try:
        await process.wait()
    except asyncio.CancelledError:  # the event loop ends before the child has
        own.remove()
        raise
    await asyncio.to_thread(own.remove)


def _kept(name: str, more: Sequence[str]) -> bool:
    secret = any(word in name.upper() for word in _SECRET)
    return not secret and any(fnmatchcase(name, one) for one in (*_KEPT, *more))


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
