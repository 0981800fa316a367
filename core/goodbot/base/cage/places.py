# SPDX-License-Identifier: Apache-2.0
"""What a caged child may reach: the system's libraries, this Python, accelerators, and what it is told."""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import stat
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_BREW = os.path.join(os.sep, "home", "linuxbrew", ".linuxbrew")
"""Homebrew is there on every Linux: the same for all users."""
SYSTEM = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/bin",
    "/sbin",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/opengl-driver",
    "/run/current-system",
    *(os.path.join(_BREW, name) for name in ("Cellar", "lib", "opt")),
    "/sys",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/mime.types",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/group",
    "/etc/alternatives",
    "/etc/ld.so.conf.d",
    "/etc/OpenCL",
    "/etc/vulkan",
    "/etc/nvidia",
)
DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/nvidia*",
    "/dev/nvhost*",
    "/dev/nvmap",
    "/dev/kfd",
    "/dev/dri",
    "/dev/dxg",
    "/dev/accel",
)
ITSELF = (
    "auxv",
    "cgroup",
    "cmdline",
    "comm",
    "cpuset",
    "io",
    "limits",
    "maps",
    "mountinfo",
    "mounts",
    "numa_maps",
    "oom_score",
    "oom_score_adj",
    "sched",
    "schedstat",
    "smaps",
    "smaps_rollup",
    "stat",
    "statm",
    "status",
)
"""What the kernel tells of a process for itself, and what is mounted, which `/proc/mounts` names: of these
libraries read limits, memory and processors. Beside them is `net`, all connections of the machine."""
_OF_OTHERS = ("fs", "keys", "key-users", "locks", "sysvipc")
"""Of what is in `/proc` for the whole machine: who else runs, and which machines its disks are on."""
SHARED_MEMORY = "/dev/shm"  # noqa: S108  where OpenMP registers itself
CLEAR = "goodbot-clear-"
"""How directories in it begin whose files are encrypted on the disk (`goodbot.config.clear`)."""
_LIBRARIES = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "ROCM_PATH", "HIP_PATH")
_BESIDE = ("*.so", "*.so.*", "*.dylib", "*.metal", "*.metallib")
_ELF, _INTERPRETER = b"\x7fELF\x02\x01", 3
_INTERPRETERS = 5
"""The kernel follows no more of them."""
_GPUS = ("/dev/nvidiactl", "/dev/nvhost-gpu", "/dev/nvmap", "/dev/kfd", "/dev/dxg")
_MAKERS = ("0x1002", "0x8086", "0x10de")
"""AMD, Intel and NVIDIA, as PCI numbers them."""


def has_gpu() -> bool:
    """Whether there is a driver: it may reserve far more addresses than there is memory, and CUDA listens."""
    return any(os.path.exists(path) for path in _GPUS)


def has_card(root: Path = Path("/")) -> bool:
    """Whether there is a graphics card that a program may compute on. `root` holds `dev` and `sys`.

    What only fills a server's screen has no node to compute by, or another maker. A container has no node of
    the machine's cards, and sees them in `/sys` all the same.
    """
    for node in (root / "dev/dri").glob("renderD*"):
        with contextlib.suppress(OSError, ValueError):
            maker = (root / "sys/class/drm" / node.name / "device/vendor").read_text("ascii")
            if maker.strip().lower() in _MAKERS:
                return True
    return False


def clear() -> bool:
    """Whether somebody has files in shared memory that a child may read only by the name it is told."""
    return bool(glob.glob(f"{SHARED_MEMORY}/{CLEAR}*"))


def devices() -> list[str]:
    """Those of `DEVICES` that are there."""
    return [path for pattern in DEVICES for path in glob.glob(pattern)]


def system(hidden: Sequence[str], command: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """What is read to run this Python and its libraries; False: its names only.

    Of what is `hidden`, and of what lies above it, there is nothing but names.
    """
    named = [path for name in _LIBRARIES for path in os.environ.get(name, "").split(os.pathsep)]
    roots = [*SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *named, *_packages(command)]
    listed = [path for path in sys.path if os.path.isdir(path) and os.access(path, os.R_OK)]
    roots += [one for path in listed for one in _linked(path)]
    known = [*dict.fromkeys(os.path.realpath(path) for path in roots if os.path.exists(path))]
    private = [os.path.realpath(path) for path in hidden]
    for root in known:
        yield from _around(root, private)
    for place, files in beside(command[0]).items():
        if not any(_within(place, root) for root in known):
            yield from ((path, True) for path in files)
            if not any(_within(path, place) for path in private):
                yield place, False  # some libraries are looked for by the list
    yield from _machine()


def _machine() -> Iterator[tuple[str, bool]]:
    """What the kernel tells of the machine, and of no process."""
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        there = not entry.name.isdigit() and not entry.is_symlink() and entry.name not in _OF_OTHERS
        if there and entry.stat().st_mode & stat.S_IROTH:  # not what only root may read, where we are root
            yield entry.path, True


def told(places: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """What is read of what we are told, and what is written.

    Where a link in a foreign directory leads to is not read for it. The hub's cache is what we know: there
    a snapshot links to the files beside it, and those belong to it.
    """
    reads = [one for path in places["reads"] for one in (path, *blobs(path))]
    return reads, list(places["writes"])


def blobs(path: str | Path) -> list[str]:
    """Where the files of a snapshot of the hub's cache lie: `models--*/snapshots/COMMIT` → `blobs`."""
    snapshots = Path(path).absolute().parent
    place = snapshots.parent / "blobs"
    known = snapshots.name == "snapshots" and place.parent.name.startswith("models--")
    return [str(place)] if known and place.is_dir() and not place.is_symlink() else []


def shown(root: str, hidden: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """What we are told to show, but for what is hidden further in; False: its names only."""
    root = os.path.realpath(root)
    inside = [real for path in hidden if (real := os.path.realpath(path)) != root]
    yield from _around(root, inside)


def programs(command: str) -> list[str]:
    """What must be allowed to run: the program, and what loads it into memory."""
    loaders: set[str] = set()
    for line in Path("/proc/self/maps").read_text("utf-8", "replace").splitlines():
        path = line.partition("/")[2]
        if os.path.basename(path).startswith(("ld-", "ld64", "ld.so", "libc.musl")):
            loaders.add(f"/{path}")
    return [*started(command), *loaders]


def started(command: str) -> list[str]:
    """What the kernel runs for a program: itself, and whatever it names for that: a loader, or a script's
    interpreter with its own."""
    found = [os.path.realpath(command)]
    while len(found) < _INTERPRETERS and (named := _interpreter(found[-1])):
        found.append(os.path.realpath(named))
    return found


def beside(command: str) -> dict[str, list[str]]:
    """The libraries of a program that somebody has built or unpacked where they like, by their directories:
    they lie with it, or in `lib` beside its own."""
    here = os.path.dirname(os.path.realpath(command))
    places = (here, *(os.path.join(os.path.dirname(here), name) for name in ("lib", "lib64")))
    found = {place: [one for kind in _BESIDE for one in glob.glob(kind, root_dir=place)] for place in places}
    whole = {place: [os.path.join(place, one) for one in names] for place, names in found.items()}
    return {place: files for place, all_of in whole.items() if (files := [*filter(os.path.isfile, all_of)])}


def _interpreter(program: str) -> str:
    """What a program names to be run in its place; empty: nothing."""
    with contextlib.suppress(OSError, struct.error), open(program, "rb") as file:
        head = file.read(64)
        if head.startswith(b"#!"):
            file.seek(2)
            return os.fsdecode(b"".join(file.readline(256).split()[:1]))
        if head.startswith(_ELF):
            [at] = struct.unpack_from("<Q", head, 32)
            size, count = struct.unpack_from("<HH", head, 54)
            for number in range(count):
                file.seek(at + number * size)
                kind, _, begins, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
                if kind == _INTERPRETER:
                    file.seek(begins)
                    return os.fsdecode(file.read(min(length, 4096)).rstrip(b"\0"))
    return ""


def _packages(command: Sequence[str]) -> Iterator[str]:
    """Where the packages of its modules are: a backend that is being worked on may be on no path."""
    for name in {word.partition(":")[0].partition(".")[0] for word in command[1:]}:
        if name.isidentifier() and (found := importlib.util.find_spec(name)):
            yield from found.submodule_search_locations or ()


def _linked(path: str) -> Iterator[str]:
    """Where what is installed there really lies: some installers link to it, whole or file by file."""
    for entry in os.scandir(path):
        begins = os.path.join(entry.path, "__init__.py")
        if entry.is_symlink():
            yield entry.path
        elif os.path.islink(begins):
            yield os.path.dirname(os.path.realpath(begins))


def _around(root: str, hidden: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """The root, or the parts of it that neither are hidden nor hold what is."""
    inside = [path for path in hidden if _within(path, root)]
    if not inside:
        yield root, True
    elif root not in inside:
        yield root, False
        for entry in os.scandir(root):
            if not entry.is_symlink():
                yield from _around(entry.path, inside)


def _within(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")
