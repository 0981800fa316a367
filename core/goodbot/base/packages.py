# SPDX-License-Identifier: Apache-2.0
"""What an extra consists of on this machine, and the command that installs it.

An extra is installed as the packages that it names, not as `goodbot[extra]`: an index may have no goodbot,
or somebody else's under this name. That way it is right for a checkout, a wheel and an index alike.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from goodbot.base import proxies, spawn

NAME = "goodbot"
_NEEDED = (
    *proxies.VARIABLES,
    "SSL_CERT_*",
    "NETRC",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CC",
    "CXX",
    "CFLAGS",
    "LDFLAGS",
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where this goodbot was installed from."""

    checkout: Path | None = None
    """The source directory that it runs from."""
    file: Path | None = None
    """The wheel, archive or source directory that it was installed from."""


def origin() -> Origin:
    """Neither of both: a package index, by its name."""
    try:
        direct = json.loads(metadata.distribution(NAME).read_text("direct_url.json") or "{}")
        address = urlsplit(str(direct["url"]))
        path = Path(unquote(address.path)) if address.scheme == "file" else Path(direct["url"])
        if direct.get("dir_info", {}).get("editable"):
            return Origin(checkout=path)
        return Origin(file=path)
    except (ValueError, LookupError, TypeError, AttributeError, metadata.PackageNotFoundError):
        return Origin()


def install_line(extra: str) -> str:
    """What a person types to bring an extra into the environment that this goodbot runs in."""
    names = requirements(extra)
    return pip_line(*names) if names else "the page of its plugin says how"


def folder_line(folder: str = ".", *options: str) -> str:
    """What a person types to install goodbot itself from its folder, with the extras that are here."""
    extras = extras_here()
    return pip_line(*options, f"{folder}[{','.join(extras)}]" if extras else folder)


def install_command(extra: str) -> tuple[str, ...] | None:
    """The same for a child process; None where nothing that could install is here."""
    names = requirements(extra)
    pip = importlib.util.find_spec("pip") is not None
    if not names or (not pip and shutil.which("uv") is None):
        return None
    return (*(spawn.python("-m", "pip", "install") if pip else _installer()), *names)


def install_environment() -> dict[str, str]:
    """What an installer gets of ours: how this machine reaches its package index, and as whom."""
    own = [name for name in os.environ if name.startswith(("PIP_", "UV_"))]
    return spawn.child_environment(*_NEEDED, secrets=own)


def pip_line(*words: str) -> str:
    """A line of pip, or of uv where this environment has no pip."""
    return shlex.join((*_installer(), *words))


def _installer() -> tuple[str, ...]:
    if importlib.util.find_spec("pip") is None:  # an environment that uv has made
        return ("uv", "pip", "install", "--python", spawn.python()[0])
    program = os.path.join(sys.prefix, "bin", "pip")
    if os.path.exists(program):
        return (program, "install")
    return (*spawn.python("-m", "pip"), "install")


def requirements(extra: str) -> tuple[str, ...]:
    """What an extra of goodbot, or of a plugin, asks for on this machine: `("torch>=2.6", …)`."""
    for one in _distributions():
        if extra in (one.metadata.get_all("Provides-Extra") or ()):
            return tuple(dict.fromkeys(_expanded(one, extra)))
    return ()


def extras_here() -> list[str]:
    """Goodbot's extras whose packages are all here; `dev` is a developer's own affair."""
    ours = metadata.distribution(NAME)
    extras: list[str] = ours.metadata.get_all("Provides-Extra") or []
    return sorted(extra for extra in extras if extra != "dev" and all(map(_is_here, _expanded(ours, extra))))


def _distributions() -> Iterator[metadata.Distribution]:
    """Goodbot's own, then those of its plugins."""
    yield metadata.distribution(NAME)
    for point in metadata.entry_points(group=NAME):
        if point.dist is not None and point.dist.name != NAME:
            yield point.dist


def _expanded(distribution: metadata.Distribution, extra: str) -> Iterator[str]:
    """An extra may be made of others of the same distribution: `goodbot[torch]`."""
    for line in distribution.requires or ():
        requirement, _, marker = (part.strip() for part in line.partition(";"))
        terms = dict(_term(one) for one in marker.split(" and ") if one)
        if terms.pop("extra", None) != extra or terms.pop("sys_platform", sys.platform) != sys.platform:
            continue
        name, _, inner = requirement.partition("[")
        if inner and name == distribution.name:
            for other in inner.partition("]")[0].split(","):
                yield from _expanded(distribution, other.strip())
        else:
            yield requirement


def _term(text: str) -> tuple[str, str]:
    """`extra == 'torch'` → `("extra", "torch")`: all that our markers say."""
    name, _, value = text.strip(" ()").partition("==")
    return name.strip(), value.strip().strip("\"'")


def _is_here(requirement: str) -> bool:
    """Whether the distribution of `discord.py>=2.7` is installed, in any version."""
    name = "".join(itertools.takewhile(lambda c: c.isalnum() or c in "-_.", requirement))
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
