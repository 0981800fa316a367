# SPDX-License-Identifier: Apache-2.0
"""The models that goodbot makes in Ollama: what they are called, and a record of which are ours.

Each version is a tag, `qwen3-4b-goodbot:v7`. A tag is written down before it is made, so that one that a
crash left half made is made again, and nothing that somebody else made is ever removed.
"""

from __future__ import annotations

import json
import string
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from goodbot.base import durable
from goodbot.base.worded import Worded

_IN_NAMES = frozenset(string.ascii_letters + string.digits + "-_.")
_LONGEST = 60
_SUFFIX = "-goodbot"


def changed(base: str, now: str, first: str) -> str:
    """What to do where the base is another one than that of the first use; both by their first signs."""
    other = (
        "{name} in Ollama is not what it was ({now}, not {first}): somebody pulled or made it anew, "
        'and the versions belong to the old one. If it is the same model, put `digest = "{now}"` '
        "under [serving.settings]; if not, set [serving] model to the old one"
    )
    return Worded(other, name=base, now=now, first=first)


@dataclass(frozen=True, kw_only=True, slots=True)
class OllamaSettings:
    """`[serving.settings]` for Ollama."""

    name: str = ""
    """What the models are called there, before the `:`; empty: as the base, with `-goodbot`."""
    digest: str = ""
    """The base's digest that you accept, once `ollama pull` has changed it; empty: that of the first use."""
    keep: int = 3
    """Versions that stay on Ollama's disk; older ones are made again when they are wanted."""

    def __post_init__(self) -> None:
        if not set(self.name) <= _IN_NAMES or len(self.name) > _LONGEST:
            raise ValueError(f"name: letters, digits and - _ . only, {_LONGEST} at most")
        if self.digest and (len(self.digest) < 12 or not set(self.digest) <= set("0123456789abcdef")):
            raise ValueError("digest: at least the first 12 signs of what `ollama list` shows as ID")
        if self.keep < 1:
            raise ValueError("keep: at least 1")


def repository(base: str) -> str:
    """The name of our models beside a base: `hf.co/Qwen/Qwen3:Q8_0` → `Qwen3-Q8_0-goodbot`."""
    last = base.rpartition("/")[2].removesuffix(":latest")
    plain = "".join(sign if sign in _IN_NAMES else "-" for sign in last)
    return f"{plain[:_LONGEST].strip('-_.') or 'model'}{_SUFFIX}"


@dataclass(frozen=True, kw_only=True, slots=True)
class TaggedVersion:
    """A tag of ours: the version, and the digest of the file that it was made of."""

    version: int
    blob: str
    """Empty for one that is not to be used again."""


@dataclass(kw_only=True)
class Tags:
    """Which tags are ours, and which bases were used, in a file. An unreadable one counts as empty."""

    path: Path
    made: dict[str, TaggedVersion] = field(default_factory=dict[str, TaggedVersion])
    """By the whole name, `qwen3-4b-goodbot:v7`."""
    bases: dict[str, str] = field(default_factory=dict[str, str])
    """The digest of each base when an adapter was put on it first, by its name."""
    aliases: set[str] = field(default_factory=set[str])
    """What we made for other programs: only these are pointed to another version."""

    @classmethod
    def read(cls, path: Path) -> Tags:
        try:
            told: Any = json.loads(path.read_text("utf-8"))
            made = {str(name): TaggedVersion(**entry) for name, entry in told["made"].items()}
            bases = dict(cast("dict[str, str]", told["bases"]))
            aliases = {str(name) for name in told.get("aliases", ())}
            return cls(path=path, made=made, bases=bases, aliases=aliases)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return cls(path=path)

    def bases_among(self, names: Collection[str], ours: str) -> list[str]:
        """Those that no goodbot made. `ours` is what the owner has us call them, or empty."""
        made = {name.rpartition(":")[0] for name in self.made} | {ours}
        plain = [(name, name.rpartition(":")[0] or name) for name in names]
        return [name for name, repo in plain if repo not in made and not repo.endswith(_SUFFIX)]

    def save(self) -> None:
        """On the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = {name: asdict(entry) for name, entry in self.made.items()}
        kept = {"made": made, "bases": self.bases, "aliases": sorted(self.aliases)}
        durable.replace(self.path, json.dumps(kept, indent=1).encode())

    def name_for(self, repository: str, version: int, blob: str, *, taken: Collection[str]) -> str:
        """The tag for a file: its own from before, else one that nobody has."""
        for name, entry in self.made.items():
            if name.startswith(f"{repository}:") and entry == TaggedVersion(version=version, blob=blob):
                return name
        serial, name = 1, f"{repository}:v{version}"
        while name in taken or name in self.made:
            serial += 1
            name = f"{repository}:v{version}-{serial}"
        return name

    def old(self, *, in_use: Collection[str], keep: int) -> list[str]:
        """Those of ours that may go: all but those in use and the newest `keep` versions."""
        newest = sorted({entry.version for entry in self.made.values() if entry.blob})[-keep:]
        return [
            name
            for name, entry in self.made.items()
            if name not in in_use and not (entry.blob and entry.version in newest)
        ]
