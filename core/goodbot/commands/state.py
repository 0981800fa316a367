# SPDX-License-Identifier: Apache-2.0
"""What a goodbot is at: as data, and in words for everybody or for its owners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goodbot.api import progress as told
from goodbot.api.sentences import Condition, clause_of, findings, words
from goodbot.api.sentences import version as name_of
from goodbot.api.texts import beside, explained, pauses, reworded, say
from goodbot.inference.servers.health import VersionHealth
from goodbot.learning.training.memory_sharing import Plan, Sharing
from goodbot.store.quarantined import FILTER

STOPPED = "stopped"
"""What `server` is while no goodbot runs."""
_FOUND = 8
"""So many reasons of filters are named."""


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
    own: Mapping[str, Any] | None = None
    """How it stands with versions of whoever asks, of their channel or team alone; None: there are none."""

    def for_everybody(self, language: str = "") -> list[str]:
        """A line a subject."""
        return self._lines(self.condition.for_everybody(language), language)

    def counter(self, next_: str, language: str = "") -> str:
        """How many ratings there are, and what the next training waits for: `next_` is a clause."""
        if self.condition.name == "ratings":
            return next_
        return say("status_counter", language, available=self.ratings, needed=self.needed, next=next_)

    def _lines(self, next_: str, language: str, *, details: bool = False) -> list[str]:
        lines = [*([self.starting] if self.starting else []), *self._answering(language)]
        if self.store != "ok":
            lines.append(say("status_store", language, why=reworded(self.store, language)))
        if self.server == "down" and not self.starting:
            lines.append(say("status_down", language))
        if self.training:
            lines.append(told.sentence(self.training, language, figures=details))
            if self.waits:
                lines.append(say("status_turns", language))
        else:
            lines.append(self.counter(next_, language))
        if self.own:
            lines.append(self.own["text"])
        if self.tainted:
            why = say("state_replaced", language, why=clause_of(self.tainted_by, language))
            lines.append(f"v{self.version} {why}")
        return lines

    def _answering(self, language: str) -> list[str]:
        """Who answers, or would."""
        if self.model is None:
            return [say("status_no_model", language)]
        stopped = self.server == STOPPED
        key = f"status_base_{'would' if stopped else 'answers'}"
        if not self.off:
            key = "status_would" if stopped else "status_answers"
        does = say(key, language, name=name_of(self.version or 0, language), model=self.model)
        return [say("status_stopped", language), does] if stopped else [does]


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
    retrying: Sequence[str]
    """Of these, whose start is tried again by itself."""
    clock: Sequence[str]
    address: str
    """Where the pages and the API are; empty: nowhere."""
    moved: str
    disk: str
    turned_away: int
    told_later: int
    """Calls by HTTP that were answered 429 or 503, since the start."""
    strangers: int
    """How often people who may not even talk have tried commands of owners, since the start."""
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

    def for_programs(self, language: str = "") -> dict[str, Any]:
        """What `--json` prints: why something is so in English, as the sentences beside it are.

        `server_told` is for `goodbot doctor`, which says it to its reader.
        """
        proof = {**asdict(self.proof), "cause": clause_of(self.proof.cause)}
        condition = asdict(self.condition)
        if "said" in condition["facts"]:
            condition["facts"]["said"] = clause_of(condition["facts"]["said"])
        told = {"server_told": reworded(self.server_trouble, language)}
        return {
            **asdict(self),
            **told,
            "tainted_by": clause_of(self.tainted_by),
            "proof": proof,
            "condition": condition,
        }

    def for_owners(self, language: str = "", *, details: bool = False) -> list[str]:
        """All of it; with `details` also the figures of the training."""
        said = (
            say("status_descriptors", language) if self.descriptors else "",
            self.moved,
            self.disk,
            reworded(self.server_trouble, language),
            self.proof.told(language),
            self.put_right,
            self.canary,
            self.unserved,
            reworded(self.thinking, language),
            *self.clock,
        )
        return [
            *self._lines(self.condition.for_owners(language), language, details=details),
            *filter(None, said),
            *self._left_over(language),
            *(alarm["text"] for alarm in self.alarms),
            *self._trains(language, details=details),
            *(say("status_pairing", language, name=name) for name in self.pairing_locked),
            *(
                explained(name, reworded(why, language), language)
                for name, why in self.connectors.items()
                if why != "running"
            ),
        ]

    def _left_over(self, language: str) -> list[str]:
        """What found no room or is not used, and what nobody rated."""
        counts = {
            "status_turned_away": self.turned_away,
            "status_told_later": self.told_later,
            "status_strangers": self.strangers,
            "status_unshared": self.waiting_for_consent,
            "status_others": self.off_policy,
        }
        lines = [say(key, language, count=count) for key, count in counts.items() if count]
        lines += self._judged(language)
        if too_long := (self.last_run or {"metrics": {}})["metrics"].get("too_long"):
            lines.append(say("status_too_long", language, count=too_long))
        return [*lines, *left_out(self.set_aside, language), *filtered(self.set_aside, language)]

    def _trains(self, language: str, *, details: bool) -> list[str]:
        """How trainings are done, and what came of the last one."""
        lines: list[str] = []
        if self.tenancy and self.tenancy.sharing != Sharing.TOGETHER:
            lines.append(say("status_memory", language, why=words(*self.tenancy.said, language=language)))
        if self.learning:
            lines.append(say("status_style", language, style=self.learning if details else self.preset))
        if self.reward != "binary":
            lines.append(say("status_rewards", language, reward=self.reward))
        if (last := self.last_run) and last["state"] != "running":
            same = self.model in (None, last["model"])
            key = "status_last_run" if same else "status_last_run_on"
            lines.append(say(key, language, model=last["model"], told=last["told"]))
        return lines

    def _judged(self, language: str) -> list[str]:
        """What a judge made of answers, apart from the ratings."""
        if not self.judged:
            return []
        failed = say("status_judge_failed", language, **self.judged) if self.judged["failed"] else ""
        return [say("status_judged", language, **self.judged), *filter(None, [failed])]


def left_out(found: Sequence[Mapping[str, Any]], language: str = "") -> list[str]:
    """What trainings have set aside, a line a reason."""
    return [
        say(
            "status_left_out",
            language,
            answers=one["answers"],
            run=one["run"],
            reason=reworded(one["reason"], language),
        )
        for one in found
        if one["kind"] != FILTER
    ]


def filtered(found: Sequence[Mapping[str, Any]], language: str = "") -> list[str]:
    """For owners: what filters leave out, and why, the most first; no line: nothing."""
    own = sorted((one for one in found if one["kind"] == FILTER), key=lambda one: -one["answers"])
    told = [beside(findings(one["reason"], language), str(one["answers"]), language) for one in own[:_FOUND]]
    count = sum(one["answers"] for one in own)
    return [say("status_filtered", language, answers=count, found=pauses(language, *told))] if own else []
