# SPDX-License-Identifier: Apache-2.0
"""Notes that a round is to try its candidate without, as a job names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.events import Message
from goodbot.api.noted import with_line

from goodbot_training.job.rated import as_list, as_mapping, parse_messages
from goodbot_training.job.settings import as_whole, data_error


@dataclass(frozen=True, kw_only=True, slots=True)
class NotePrompt:
    """A conversation that nobody has answered in this round, as prompts have it."""

    noted: Sequence[Message]
    """With all notes that its answer follows."""
    without: Sequence[Message]
    """Without the one that is tried."""

    @classmethod
    def parse(cls, raw: object) -> NotePrompt:
        """Of `messages` without any note, and what is said of the notes `with` and `without` that one."""
        one = as_mapping(raw, "notes: a prompt")
        messages = parse_messages(one.get("messages"), "notes: messages")
        noted, without = one.get("with"), one.get("without")
        if not isinstance(noted, str) or not isinstance(without, str):
            raise data_error("notes: with and without must be text.")
        return cls(noted=with_line(messages, noted), without=with_line(messages, without))


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteTrial:
    """One note by its number, and what the candidate is asked with and without it."""

    id: int
    questions: tuple[NotePrompt, ...]

    @classmethod
    def parse(cls, raw: object) -> NoteTrial:
        """One entry of the job's `notes`. Raises TrainingError(kind="data")."""
        entry = as_mapping(raw, "An entry of notes")
        prompts = as_list(entry.get("prompts"), "notes: prompts")
        questions = tuple(NotePrompt.parse(one) for one in prompts)
        return cls(id=as_whole(entry.get("id"), "notes: id"), questions=questions)


@dataclass(frozen=True, kw_only=True, slots=True)
class RatedLine:
    """What somebody has asked for, by its number, and which answers of the round they have rated how."""

    id: int
    text: str
    """What a prompt says that has this line and no other."""
    good: frozenset[str]
    bad: frozenset[str]

    @classmethod
    def parse(cls, raw: object) -> RatedLine:
        """One entry of the job's `lines`. Raises TrainingError(kind="data")."""
        entry = as_mapping(raw, "An entry of lines")
        text = entry.get("text")
        if not isinstance(text, str) or not text:
            raise data_error("lines: text must be text.")
        good, bad = (frozenset(map(str, as_list(entry.get(name), f"lines: {name}"))) for name in _SIDES)
        return cls(id=as_whole(entry.get("id"), "lines: id"), text=text, good=good, bad=bad)


_SIDES = ("good", "bad")
