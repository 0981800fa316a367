# SPDX-License-Identifier: Apache-2.0
"""A worker that tries what foreign code in a child would try, and reports how each attempt ended.

It stands where code of a model, a template, a tokenizer or an adapter would stand if it ever came to run:
in the trainer, the sampler, the converter, the examiner and what looks for doctor, started as they are.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from goodbot.base.cage import places

RESERVED = 0x4000
"""MAP_NORESERVE: of what is mapped so, the kernel does not ask whether it is there."""
MACHINE = ("cpuinfo", "meminfo", "stat", "filesystems", "mounts", "sys/vm/overcommit_memory")
ITSELF = ("cgroup", "cmdline", "limits", "maps", "mountinfo", "oom_score_adj", "stat", "statm", "status")
LINKS = "links.json"
"""In its model: what it is to leave, name → where that leads."""
SPINS = "spins"
"""In its model: it is to compute for ever."""
LIMITS = ("AS", "CPU", "DATA", "FSIZE", "NOFILE")
libc = ctypes.CDLL(None, use_errno=True)


def system(name: str, *arguments: int) -> None:
    if getattr(libc, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def post(name: bytes) -> None:
    """Make a queue that others can open, as far as it can be made."""
    libc.mq_open.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
    if libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    libc.mq_unlink(name)


def grow(path: str) -> None:
    with open(path, "wb") as file:
        os.ftruncate(file.fileno(), 1 << 46)


def write_into(place: Path) -> None:
    (place / "x" if place.is_dir() else place).write_text("fine")


def show() -> None:
    """Leave a file that everybody may read."""
    os.umask(0)
    handle = os.open("shown", os.O_CREAT | os.O_WRONLY, 0o666)
    shown = os.fstat(handle).st_mode & 0o077
    os.close(handle)
    if not shown:
        raise PermissionError(errno.EPERM, "it is for its own user")


def hoard() -> None:
    handles: list[int] = []
    try:
        for _ in range(100_000):
            handles.append(os.dup(0))
    finally:
        for handle in handles:
            os.close(handle)


def attempts(told: dict[str, Any]) -> dict[str, Callable[[], object]]:
    """`told["model"]` is its model; beside it lie `secrets.env`, and a home that is not its own."""
    model = Path(told["model"])
    home, secrets = model.parent / "home", model.parent / "secrets.env"
    parent = os.getppid()
    kept = open("kept", "wb")  # noqa: SIM115  as long as this process
    forbidden: dict[str, Callable[[], object]] = {
        "connect": lambda: socket.create_connection(("127.0.0.1", told.get("port", 9)), 5),
        "socket v6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
        "socket raw": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
        "socket unix": lambda: socket.socket(socket.AF_UNIX, socket.SOCK_STREAM),
        "socket netlink": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "pair that can be turned": lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM),
        "io_uring": lambda: system("syscall", 425, 1, 0),
        "secrets": secrets.read_bytes,
        "secrets by a link": lambda: (os.symlink(secrets, "link"), Path("link").read_bytes()),
        "secrets by the root": lambda: Path(f"/proc/self/root{secrets}").read_bytes(),
        "secrets' mode": lambda: os.chmod(secrets, 0o666),
        "secrets' name": lambda: os.rename(secrets, "secrets"),
        "a hard link": lambda: os.link(secrets, "hard"),
        "secrets by a link of the model": (model / "link.json").read_bytes,
        "the mode of an open file": lambda: os.fchmod(sys.stdin.fileno(), 0o666),
        "the owner of an open file": lambda: os.fchown(sys.stdin.fileno(), os.getuid(), os.getgid()),
        "an attribute of an open file": lambda: os.setxattr(kept.fileno(), "user.x", b"x"),
        "who opens files": lambda: system("inotify_init1", 0),
        "a flag of an open file": lambda: fcntl.ioctl(kept.fileno(), 0x40086602, struct.pack("l", 0)),
        "when the session runs": lambda: Path("/proc/self/autogroup").write_text("10"),
        "a file for everybody": show,
        "the secrets' time": lambda: os.utime(secrets, (0, 0)),
        "shared memory": lambda: system("shmget", 0, 4096, 0o1600),
        "semaphores": lambda: system("semget", 0, 1, 0o1600),
        "a queue": lambda: system("msgget", 0, 0o1600),
        "a POSIX queue": lambda: post(b"/goodbot-burglar"),
        "no secrets": lambda: os.truncate(secrets, 0),
        "list home": lambda: os.listdir(home),
        "write home": lambda: (home / ".bashrc").write_text("evil"),
        "write the model": lambda: (model / "config.json").write_text("{}"),
        "write into /tmp": lambda: Path("/tmp/burglar").write_text("evil"),
        "write Python": lambda: Path(os.__file__).write_text("evil"),
        "exec": lambda: os.execv("/bin/sh", ["sh", "-c", "exit 0"]),
        "run": lambda: subprocess.run(["/bin/sh", "-c", "exit 0"], check=False),
        "fork": os.fork,
        "unshare": lambda: system("unshare", 0x10000000),
        "ptrace": lambda: system("ptrace", 16, parent, 0, 0),
        "the daemon's environment": lambda: Path(f"/proc/{parent}/environ").read_bytes(),
        "what the daemon is": lambda: Path(f"/proc/{parent}/status").read_bytes(),
        "the words that started it": lambda: Path(f"/proc/{parent}/cmdline").read_bytes(),
        "the words that started the first": lambda: Path("/proc/1/cmdline").read_bytes(),
        "who else runs": lambda: os.listdir("/proc"),
        "what is in /etc": lambda: os.listdir("/etc"),
        "what its name is": lambda: Path("/etc/hostname").read_bytes(),
        "who holds locks": lambda: Path("/proc/locks").read_bytes(),
        "who shares memory": lambda: Path("/proc/sysvipc/shm").read_bytes(),
        "the daemon's memory": lambda: os.open(f"/proc/{parent}/mem", os.O_RDONLY),
        "kill the daemon": lambda: os.kill(parent, 0),
        "kill the group": lambda: os.kill(0, 0),
        "limit the daemon": lambda: system("prlimit", parent, 1, 0, 0),
        "outlive the daemon": lambda: system("prctl", 1, 0),
        "type for others": lambda: system("ioctl", 0, 0x5412, 0),
        "more memory than there is": lambda: bytearray(1 << 46),
        "an endless file": lambda: grow("endless"),
        "handles without end": hoard,
    }
    if not places.has_gpu():  # there no limit of memory holds
        forbidden |= {
            "a file that is in memory": lambda: os.memfd_create("endless"),
            "the machine's connections": lambda: Path("/proc/self/net/tcp").read_bytes(),
            "where its packets go": lambda: Path(f"/proc/{os.getpid()}/net/route").read_bytes(),
            "what there is of its network": lambda: os.listdir("/proc/self/net"),
            "how it was started": lambda: Path("/proc/self/environ").read_bytes(),
            "its own memory by a file": lambda: os.open("/proc/self/mem", os.O_RDONLY),
            "connections, by a thread": lambda: Path("/proc/thread-self/net/tcp").read_bytes(),
            "who is ended first": lambda: Path("/proc/thread-self/oom_score_adj").write_text("0"),
        }
    if not (places.has_gpu() or places.has_card()):
        forbidden["shared addresses without end"] = lambda: mmap.mmap(
            -1, 1 << 46, flags=mmap.MAP_SHARED | RESERVED
        )
    needed: dict[str, Callable[[], object]] = {
        "read the model": lambda: (model / "config.json").read_bytes(),
        "write its directory": lambda: Path("own").write_text("fine"),
        "a temporary file": lambda: __import__("tempfile").TemporaryFile(),
        "a thread": lambda: (thread := threading.Thread(target=int), thread.start(), thread.join()),
        "a connected pair": socket.socketpair,
        "its own signal": lambda: signal.raise_signal(signal.SIGCHLD),
        "an event loop": lambda: __import__("asyncio").new_event_loop().close(),
        "what the machine has": lambda: [Path("/proc", name).read_bytes() for name in MACHINE],
        "what it is itself": lambda: [Path("/proc/self", name).read_bytes() for name in ITSELF],
        "its threads": lambda: os.listdir("/proc/self/task"),
        "its handles": lambda: os.listdir("/proc/self/fd"),
        "randomness": lambda: os.close(os.open("/dev/urandom", os.O_RDONLY)),
    }
    if places.has_gpu():
        needed["name its threads, as CUDA does"] = lambda: Path("/proc/thread-self/comm").write_text("cuda")
    for name in ("output", "checkpoints"):
        if name in told:
            needed[f"write {name}"] = lambda name=name: write_into(Path(told[name]))
    return {**forbidden, **{f"may {name}": work for name, work in needed.items()}}


def leave(told: dict[str, Any], links: dict[str, str]) -> None:
    """Leave a result with links beside it or in its place, and say that the work is done."""
    output = Path(told["output"])
    if not output.is_dir() and output.name not in links:
        output.write_text("made")
    for name, to in links.items():
        path = (output if output.is_dir() else output.parent) / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(to)
    done = {"event": "done", "proof": {}, "metrics": {}, "baseline": {}}
    print(json.dumps(done), flush=True)


def spin() -> NoReturn:
    """Compute for ever, and speak: whoever says that it gets on is not taken for one that hangs."""
    while True:
        sum(range(1_000_000))
        print(json.dumps({"event": "progress", "phase": "train", "step": 1, "steps": 2}), flush=True)


def report(all_of: Mapping[str, Callable[[], object]]) -> str:
    """Try each, and tell how it ended, and what this process is."""
    ended: dict[str, str] = {}
    for name, work in all_of.items():
        try:
            work()
            ended[name] = "done"
        except (OSError, MemoryError) as error:
            ended[name] = errno.errorcode.get(getattr(error, "errno", 0), "MemoryError")
    return json.dumps(
        {
            "core": Path("/proc/self/limits").read_text().count("core file size        0 "),
            "privileges": "NoNewPrivs:\t1" in Path("/proc/self/status").read_text(),
            "limits": {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[0] for name in LIMITS},
            "environ": sorted(os.environ),
            "ends": int(Path("/proc/self/oom_score_adj").read_text()),
            "ended": ended,
        }
    )


def main() -> None:
    told = json.loads(sys.stdin.readline() or json.dumps({"model": sys.argv[-1]}))
    told.setdefault("model", told.get("after"))
    if Path(told["model"], SPINS).exists():
        spin()
    if (links := Path(told["model"], LINKS)).exists():
        return leave(told, json.loads(links.read_text()))
    reason = report(attempts(told))
    said = {"event": "failed", "kind": "error", "reason": reason, "refused": reason, "trace": ""}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
