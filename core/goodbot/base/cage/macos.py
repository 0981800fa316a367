# SPDX-License-Identifier: Apache-2.0
"""A cage of macOS: a profile for its sandbox, by the program `sandbox-exec` that brings it.

What is not named is as it was, so that Metal and its compiler work; the network, people's files, other
processes and the keychain are denied. Of several rules that fit, the last one counts. Where the program
or its profile fails, nothing starts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from goodbot.base.cage import limits, places

_PROGRAM = "/usr/bin/sandbox-exec"
_USER_CACHE = 65538
"""confstr's name for where Metal keeps what it has compiled (_CS_DARWIN_USER_CACHE_DIR)."""
_PROFILE = """(version 1)
(allow default)
(deny network*)
{port}
(deny process-exec)
(allow process-exec {programs})
(deny signal (target others))
(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd.xpc")
  (global-name "com.apple.pasteboard.1") (global-name "com.apple.coreservices.launchservicesd"))
(deny file-write*)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper") {writes})
{reads}
"""
_PORT = """(allow network-bind (local tcp "localhost:{port}"))
(allow network-inbound (local tcp "localhost:{port}"))"""
_PEOPLE = ("/Users", "/Volumes")


def enter(told: Mapping[str, Any], command: list[str]) -> list[str]:
    """Set the limits that hold here; returns the command that runs in the sandbox."""
    reads, writes = places.told(told)
    limits.limit(reads, seconds=told["seconds"])
    return [_PROGRAM, "-p", profile(reads, writes, told["hidden"], command[:1], told["port"]), *command]


def missing() -> list[str]:
    """What this machine has not; empty where the cage is whole."""
    return [] if _takes(profile([], [], [])) else ["sandbox-exec"]


def profile(
    reads: Sequence[str],
    writes: Sequence[str],
    hidden: Sequence[str],
    started: Sequence[str] = (),
    port: int | None = None,
) -> str:
    """What the sandbox is given. Of what may be read, the place that lies further in decides.

    `started` is the program, where it is told; `port` the one that it may listen at.
    """
    python = [sys.prefix, sys.base_prefix, *filter(os.path.isdir, sys.path)]
    programs = [one for program in started for one in places.started(program)]
    libraries = [one for program in started for files in places.beside(program).values() for one in files]
    cache = os.confstr(_USER_CACHE) if sys.platform == "darwin" else None
    return _PROFILE.format(
        port="" if port is None else _PORT.format(port=port),
        programs=_below([sys.prefix, sys.base_prefix, *programs]),
        writes=_below([*writes, *filter(None, [cache])]),
        reads="\n".join(_readable(python, [*_PEOPLE, *hidden], [*reads, *writes, *programs, *libraries])),
    )


def _readable(python: Iterable[str], hidden: Iterable[str], told: Iterable[str]) -> Iterator[str]:
    """A rule a place. What we are told is stronger than what hides the same place, Python weaker."""
    ranks = (("allow", python), ("deny", hidden), ("allow", told))
    rules = [
        (len(Path(os.path.realpath(path)).parts), rank, f"({verb} file-read-data {_below([path])})")
        for rank, (verb, paths) in enumerate(ranks)
        for path in paths
        if _below([path])
    ]
    return (rule for *_, rule in sorted(rules))


def _below(paths: Iterable[str]) -> str:
    """As the profile's language has it; a path is a string in it as in JSON."""
    return " ".join(
        f"(subpath {json.dumps(os.path.realpath(path), ensure_ascii=False)})"
        for path in paths
        if path not in ("", os.sep)
    )


def _takes(profile: str) -> bool:
    """Whether the sandbox is there and understands it."""
    try:
        done = subprocess.run(
            [_PROGRAM, "-p", profile, sys.executable, "-I", "-S", "-c", ""],
            capture_output=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
