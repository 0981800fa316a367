# SPDX-License-Identifier: Apache-2.0
"""What a goodbot is at: as data, and in words for everybody or for its owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goodbot.api import progress as told
from goodbot.api.sentences import Condition
from goodbot.base.suggest import version_name
from goodbot.inference.servers.health import VersionHealth
from goodbot.learning.training.memory_sharing import Plan, Sharing

STOPPED = "stopped"
"""What `server` is while no goodbot runs."""
NO_MODEL = "goodbot is not running; no model is configured: `goodbot init` sets it up"


@dataclass(frozen=True, kw_only=True)
class Public:
    """What everybody may know."""

    model: str | None
    """None: none is configured, and no goodbot runs with the one that is only for a look."""
    version: int | None
    off: bool
    tainted: bool
    tainted_by: str
    server: str
    starting: str
    store: str
    training: Mapping[str, Any] | None
    waits: str
    ratings: int
    needed: int
    condition: Condition
    """What decides on the next training."""

    def for_everybody(self) -> list[str]:
        """A line a subject."""
        return self._lines(self.condition.for_everybody())

    def counter(self, next_: str) -> str:
        """How many ratings there are, and what the next training waits for: `next_` is a clause."""
        if self.condition.name == "ratings":
            return next_
        return f"{self.ratings} of {self.needed} ratings: {next_}"

    def _lines(self, next_: str) -> list[str]:
        lines = [self.starting] if self.starting else []
        who = "paused: the base model" if self.off else version_name(self.version or 0)
        if self.model is None:
            lines.append(NO_MODEL)
        elif self.server == STOPPED:
            lines += ["goodbot is not running: `goodbot run` starts it", f"{who} would answer ({self.model})"]
        else:
            lines.append(f"{who} answers ({self.model})")
        if self.store != "ok":
            lines.append(f"nothing can be stored, so ratings are not taken: {self.store}")
        if self.server == "down" and not self.starting:
            lines.append("the model is not running; goodbot tries again every half minute")
        if self.training:
            lines.append(told.sentence(self.training))
            if self.waits:
                lines.append("its memory is the model's: questions wait until it is done")
        else:
            lines.append(self.counter(next_))
        if self.tainted:
            lines.append(f"v{self.version} answers until it is replaced: {self.tainted_by}")
        return lines


@dataclass(frozen=True, kw_only=True)
class Status(Public):
    """With what concerns the machine and other people; what `--json` prints."""

    next: str
    backend: str
    paused: bool
    server_trouble: str
    proof: VersionHealth
    put_right: str
    canary: str
    unserved: str
    waiting_for_consent: int
    off_policy: int
    judged: Mapping[str, Any] | None
    """What judges made of answers that nobody rated: by whom, and how many; None: nothing is judged."""
    pressure: str | None
    last_run: Mapping[str, Any] | None
    tenancy: Plan | None
    connectors: Mapping[str, str]
    clock: Sequence[str]
    address: str
    """Where the pages and the API are; empty: nowhere."""
    moved: str
    disk: str
    turned_away: int
    descriptors: str
    set_aside: Sequence[Mapping[str, Any]]
    reward: str
    preset: str
    learning: str | None
    """What the preset comes to for this model, in figures; None: the backend does not say."""
    sampling: Mapping[str, Any]
    thinking: str
    alarms: Sequence[Mapping[str, Any]]
    pairing_locked: Sequence[str]
    acceptance: Sequence[Mapping[str, Any]]
    choices: Sequence[Mapping[str, Any]]
    comparison: Mapping[str, Any] | None
    home: str
    pid: int | None
    """None, as the two below: no goodbot runs."""
    uptime: float | None
    started_at: float | None

    def for_owners(self, *, details: bool = False) -> list[str]:
        """All of it; with `details` also the figures of the training."""
        said = (
            self.descriptors,
            self.moved,
            self.disk,
            self.server_trouble,
            self.proof.why,
            self.put_right,
            self.canary,
            self.unserved,
            self.thinking,
        )
        lines = [*self._lines(self.next), *(one for one in (*said, *self.clock) if one)]
        if self.turned_away:
            lines.append(f"{self.turned_away} calls by HTTP found no room: too many came at once")
        if self.waiting_for_consent:
            lines.append(f"{unshared(self.waiting_for_consent)} `/rl share on`")
        if self.off_policy:
            lines.append(f"{self.off_policy} of the ratings are of answers that other models wrote")
        lines += self._judged()
        last = self.last_run or {"metrics": {}, "state": "running"}
        if too_long := last["metrics"].get("too_long"):
            lines.append(f"the last run left out {too_long} answers that are too long with their prompts")
        lines.extend(left_out(self.set_aside))
        lines.extend(alarm["text"] for alarm in self.alarms)
        if self.tenancy and self.tenancy.sharing != Sharing.TOGETHER:
            lines.append(f"memory: {self.tenancy.why}")
        if self.learning:
            lines.append(f"learning style: {self.learning if details else self.preset}")
        if self.reward != "binary":
            lines.append(f"rewards: {self.reward}")
        if last["state"] != "running":
            place = f" on {last['model']}" if self.model not in (None, last["model"]) else ""
            lines.append(f"last run{place}: {last['told']}")
        lines.extend(
            f"{name}: the pairing code was guessed at and is locked; `goodbot pair {name}` makes another"
            for name in self.pairing_locked
        )
        lines.extend(f"{name}: {state}" for name, state in self.connectors.items() if state != "running")
        return lines

    def _judged(self) -> list[str]:
        """What a judge made of answers, apart from the ratings."""
        if not self.judged:
            return []
        told = "judged by {by}, and rated by nobody: {good} good, {bad} bad, {neither} neither"
        failed = self.judged["failed"]
        return [
            told.format(**self.judged),
            *([f"the judge did not answer about {failed} of them"] if failed else []),
        ]


def unshared(count: int) -> str:
    """How many ratings wait for consent; `/rl share on` follows."""
    if count == 1:
        return "1 rating from a private chat is not used until that person says"
    return f"{count} ratings from private chats are not used until those people say"


def left_out(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """What trainings have set aside, a line a reason."""
    return [
        f"{one['answers']} answer{'' if one['answers'] == 1 else 's'} left out of training since run "
        f"{one['run']}: {one['reason']}; `train retry` uses them again"
        for one in found
    ]
