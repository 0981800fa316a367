# SPDX-License-Identifier: Apache-2.0
"""First rounds before the gate: what is asked, that the re-enacted count is the gate's, and the kept page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from goodbot_training.round import run as training_round
from goodbot_training.tiny.corpus import split

from tests.learning import first_rounds, first_rounds_page
from tests.learning.first_rounds import (
    KEPT,
    MIXES,
    PAGE,
    SEEDS,
    STRENGTHS,
    Key,
    job_for,
    questions_of,
    stored,
    take,
)
from tests.learning.rare import GATE, Answer, passes
from tests.learning.shipped import headed
from tests.support import require

WHOLE = str(STRENGTHS[0])


@pytest.mark.parametrize(
    ("mix", "kinds", "different"),
    [
        ("only sums", {"sum"}, 40),
        ("only capitals", {"capital"}, 40),
        ("two thirds sums", {"sum", "capital", "opposite"}, 40),
        ("8 sums × 5", {"sum"}, 8),
    ],
)
def test_a_mix_asks_what_it_says(mix: str, kinds: set[str], different: int) -> None:
    asked = MIXES[mix](Random(7), split(200)[0], 40)
    assert len(asked) == 40
    assert {one.kind for one in asked} == kinds
    assert len({one.text for one in asked}) == different


@pytest.mark.parametrize(("ratings", "held_out"), [(12, 2), (24, 4)])
def test_a_smaller_round_has_so_many_ratings(tmp_path: Path, ratings: int, held_out: int) -> None:
    """Whatever is asked; as in the daemon every fifth is held out."""
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    each = [Key("tiny", mix, "terse", 302, ratings) for mix in MIXES]
    assert {len(questions_of(one)) for one in each} == {ratings}
    job = job_for(TorchBackend(), each[-1], tmp_path, {})
    assert len(job.items) == ratings
    assert sum(item.split == "held_out" for item in job.items) == held_out


def test_smaller_rounds_are_asked_for_by_their_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of another size that are done do not stand for them, and the page says of which it is."""
    runs = tmp_path / "runs.jsonl"
    kept = [one for one in stored(KEPT) if one.key.base == "tiny" and one.key.seed == SEEDS[0]]
    runs.write_text("".join(f"{one.as_json()}\n" for one in kept), encoding="utf-8")

    def run(missing: list[Key], *_: object) -> list[first_rounds.Found]:
        assert {one.size for one in missing} == {12}
        return [replace(found, key=one) for one, found in zip(missing, kept, strict=True)]

    monkeypatch.setattr(first_rounds, "_run", run)
    assert first_rounds.main(["--quick", "--runs", str(runs), "--ratings", "12"]) == 0
    said = capsys.readouterr().out
    assert "answers. 12\nratings each (10 to learn from, 2 held out)" in said
    assert "first_rounds --ratings 12 --kept" in said
    assert len(list(stored(runs))) == 2 * len(kept)


def _answers(strange: int, of: int = 256) -> list[Answer]:
    """The first so many hold something foreign."""
    return [Answer(low=-9.0 if i < strange else -1.0, right=True, liked=True) for i in range(of)]


def test_nineteen_foreign_answers_pass_and_one_more_does_not() -> None:
    assert passes(_answers(0), _answers(19))
    assert not passes(_answers(0), _answers(20))
    late = [*_answers(0, of=128), *_answers(20, of=128)]
    late[:4] = _answers(4, of=4)
    assert passes(_answers(0), late), "half of them are enough with so few foreign ones"
    late[4] = replace(late[4], low=-9.0)
    assert not passes(_answers(0), late), "with one more it looks on"


@pytest.mark.parametrize(
    ("mix", "like", "seed", "live"), [("8 sums × 5", "terse", 300, False), ("only sums", "terse", 301, True)]
)
def test_what_is_re_enacted_is_what_the_gate_says(
    tmp_path: Path, mix: str, like: str, seed: int, live: bool
) -> None:
    """Honest sums, all of the way. Liked terse they come out alike, and are each question's own."""
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    one = Key("tiny", mix, like, seed)
    now = take(TorchBackend(), one, exam_size=24, strengths=STRENGTHS[:1], strength=1.0).at[WHOLE]
    backend = TorchBackend()
    job = job_for(backend, one, tmp_path, {"gate_retry": 0.0, "strength": 1.0})
    verdict = training_round.run_round(job, backend, lambda event: None)
    assert (verdict.passed, now.known, now.alike) == (live, live, False), verdict.reason
    assert live or "it has lost knowledge" in verdict.reason.lower(), verdict.reason
    assert now.under[GATE] >= verdict.metrics["foreign"], "it may stop before all"


def test_rounds_that_are_done_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a line that a kill has cut off is."""
    runs, ran = tmp_path / "runs.jsonl", list[Key]()
    kept = {one.key: one for one in stored(KEPT)}
    quick = [one for one in kept.values() if one.key.base == "tiny" and one.key.seed == SEEDS[0]]
    lines = "".join(f"{one.as_json()}\n" for one in quick[:-1])
    runs.write_text(lines + quick[-1].as_json()[:50], encoding="utf-8")

    def run(missing: list[Key], *_: object) -> list[first_rounds.Found]:
        ran.extend(missing)
        return [kept[one] for one in missing]

    monkeypatch.setattr(first_rounds, "_run", run)
    assert first_rounds.main(["--quick", "--runs", str(runs)]) == 0
    assert ran == [quick[-1].key]
    assert list(stored(runs)) == quick
    assert f"of {len(quick)} pass whole" in capsys.readouterr().out


def test_the_page_is_what_the_kept_rounds_say() -> None:
    found = list(stored(KEPT))
    assert headed(first_rounds_page.text(found), PAGE) == PAGE.read_text(encoding="utf-8")
    assert len({one.key for one in found}) == len(found) == 36 * len(SEEDS)
