"""The learning benchmark's own parts: streams, courses, and what the report says of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from goodbot.backend import Sampled
from goodbot_training.tiny import TEMPERATURE, model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.judge import style_of
from safetensors.numpy import load_file

from tests.learning import report, study
from tests.learning.arms import ARMS
from tests.learning.course import Course, Judged, quantized, take
from tests.learning.streams import RATINGS, STREAMS
from tests.support import require


def _answer(text: str) -> Sampled:
    return Sampled(prompt=(1,), tokens=(2,), logprobs=(-1.0,), text=text, finish="stop")


def _rated(stream: str) -> list[tuple[str | None, int]]:
    """(style, rating) of what a stream makes of a pool that is half terse, half friendly."""
    what = STREAMS[stream]
    questions = list(split(0)[0][:1]) * what.asked
    texts = ["Paris.", "Great question! The capital of France is Paris. Happy to help!"]
    answers = [_answer(texts[index % 2]) for index in range(what.asked)]
    return [(style_of(a.text), r) for _, a, r in what.rate(questions, answers, "terse", 0, 0)]


def test_every_stream_gives_forty_ratings() -> None:
    assert {name: len(_rated(name)) for name in STREAMS} == dict.fromkeys(STREAMS, RATINGS)


def test_a_bad_only_stream_holds_no_good_answer_and_no_good_rating() -> None:
    assert set(_rated("bad only")) == {("friendly", -1)}


def test_a_mostly_good_stream_is() -> None:
    assert sum(style == "terse" for style, _ in _rated("mostly good")) == 0.8 * RATINGS


def test_one_rater_of_four_says_the_opposite() -> None:
    wrong = [(style == "terse") != (rating > 0) for style, rating in _rated("adversary")]
    assert sum(wrong) == RATINGS // 4


def test_four_bits_move_the_weights_a_little(tmp_path: Path) -> None:
    before = load_file(model_path() / "model.safetensors")
    after = load_file(quantized(tmp_path / "4-bit") / "model.safetensors")
    name = next(name for name in before if name.endswith("q_proj.weight"))
    gap = np.abs(before[name].astype(np.float32) - after[name].astype(np.float32))
    assert 0 < gap.max() < np.abs(before[name]).max() / 4
    groups = after[name].astype(np.float32).reshape(-1, 32)
    assert max(len(np.unique(group)) for group in groups) <= 16


def test_a_course_learns_and_survives_json() -> None:
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    course = take(
        TorchBackend(), arm="scale", stream="balanced", like="friendly", seed=0, answers=120
    )
    assert course.passed == [True]
    assert course.live[-1].liked - course.before.liked > 0.2
    assert course.live == course.candidate
    assert Course.from_json(course.as_json()) == course
    assert TEMPERATURE > 0


def test_a_refused_candidate_does_not_answer() -> None:
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    course = take(TorchBackend(), arm="scale", stream="bad only", like="terse", seed=0, answers=40)
    assert course.passed == [False], "ratings that are all bad teach nothing"
    assert course.live == [course.before]


def made(arm: str, stream: str, seed: int, liked: float, facts: float = 0.98) -> Course:
    """A course whose live policy ends so, from a third liked and all facts but two in a hundred."""
    before = Judged(liked=0.33, facts=0.98, malformed=0.0, length=8.0)
    end = Judged(liked=liked, facts=facts, malformed=0.0, length=8.0)
    return Course(
        arm=arm, stream=stream, like="terse", seed=seed, answers=100, before=before, live=[end],
        candidate=[end], passed=[True], drift=[0.1], token_acceptance=[0.9],
        trajectory_acceptance=[0.9], cpu_seconds=2.0,
    )  # fmt: skip


def test_the_rule_takes_the_best_worst_stream_that_keeps_the_facts() -> None:
    courses = [
        made("scale", "natural", 0, 0.8), made("scale", "noise", 0, 0.5),
        made("sign_aware", "natural", 0, 0.7), made("sign_aware", "noise", 0, 0.6),
        made("filter", "natural", 0, 0.9), made("filter", "noise", 0, 0.9, facts=0.9),
    ]  # fmt: skip
    assert "By the rule: **sign_aware**." in report.text(courses)


def test_a_default_that_ends_below_the_base_breaks_a_must() -> None:
    assert report.musts_hold([made(report.DEFAULT, "bad only", 0, 0.33)])
    assert not report.musts_hold([made(report.DEFAULT, "bad only", 0, 0.2)])
    assert not report.musts_hold([made(report.DEFAULT, "adversary", 0, 0.5, facts=0.9)])


def test_the_curves_are_a_picture_of_every_arm() -> None:
    courses = [made(arm, "continual", 0, 0.5) for arm in ("scale", "kto")]
    picture = ET.fromstring(report.curves(courses))
    texts = [element.text for element in picture.iter() if element.tag.endswith("text")]
    assert {"scale", "kto", "facts right"} <= set(texts)
    lines = [e for e in picture.iter() if e.tag.endswith("polyline")]
    assert len(lines) == 4


def test_courses_that_are_done_are_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs.jsonl"
    one = made("scale", "natural", 0, 0.8)
    runs.write_text(one.as_json() + "\n")
    monkeypatch.setattr(study, "_run", lambda keys, workers: pytest.fail(str(keys)) if keys else ())
    words = ["--arms", "scale", "--streams", "natural", "--like", "terse", "--seeds", "1"]
    assert study.main([*words, "--answers", "100", "--runs", str(runs)]) == 0
    assert "0.33 → 0.80" in capsys.readouterr().out


def test_every_arm_has_settings_that_the_worker_takes() -> None:
    from goodbot_training.types import TrainingSettings

    for arm in ARMS.values():
        TrainingSettings.from_mapping(dict(arm.settings))
