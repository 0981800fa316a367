# SPDX-License-Identifier: Apache-2.0
"""Which kept courses a change of a setting leaves valid: those of rounds in which it does not count."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.learning import study
from tests.learning.arms import ARMS
from tests.learning.course import Course
from tests.learning.recipes import recipe
from tests.learning.streams import STREAMS

OUTVOTED = {"adversary", "loud adversary"}


@pytest.mark.parametrize(
    ("setting", "counts"),
    [("contested_strength", OUTVOTED), ("strength", set(STREAMS)), ("kl", set(STREAMS))],
)
def test_a_course_is_another_one_where_a_setting_counts(
    setting: str, counts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {stream: recipe("scale", stream) for stream in STREAMS}
    changed = {**ARMS["scale"].settings, setting: 0.7}
    monkeypatch.setitem(ARMS, "scale", replace(ARMS["scale"], settings=changed))
    assert {stream for stream in STREAMS if recipe("scale", stream) != before[stream]} == counts


def test_no_kept_course_had_such_a_round_elsewhere() -> None:
    lines = gzip.decompress(study.KEPT.read_bytes()).decode().splitlines()
    courses = [Course.from_json(line) for line in lines]
    assert streams_that_say("starts from the base", courses) == {"flip"}
    assert streams_that_say("wants the opposite", courses) == OUTVOTED


def streams_that_say(words: str, courses: Iterable[Course]) -> set[str]:
    return {course.stream for course in courses if words in " ".join(course.reasons)}
