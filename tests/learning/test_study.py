# SPDX-License-Identifier: Apache-2.0
"""The learning benchmark's own parts: streams, bases, courses, and what the report says of them."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from goodbot.api.sampler import Sampled
from goodbot_training.job.types import Job
from goodbot_training.round.batches import planned_steps
from goodbot_training.tiny import model_path
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.judge import style_of
from safetensors.numpy import load_file

from tests.learning import across, bases, curves, goals, report, study, sweep
from tests.learning.arms import ARMS, DEFAULT, TRL
from tests.learning.bases import BASES, Base
from tests.learning.course import Course, dealt, take
from tests.learning.exam import Judged
from tests.learning.figures import reached
from tests.learning.plan import FULL, QUICK, keys
from tests.learning.recipes import recipe
from tests.learning.streams import RATINGS, STREAMS, Rated
from tests.learning.writers import quantized
from tests.support import require


def _answer(text: str) -> Sampled:
    return Sampled(prompt=(1,), tokens=(2,), logprobs=(-1.0,), text=text, finish="stop")


def _rated(stream: str) -> list[Rated]:
    """What a stream makes of a pool that is half terse, half friendly."""
    what = STREAMS[stream]
    questions = list(split(0)[0][:1]) * what.asked
    texts = ["Paris.", "Great question! The capital of France is Paris. Happy to help!"]
    answers = [_answer(texts[index % 2]) for index in range(what.asked)]
    return what.rate(questions, answers, "terse", 0, 0)


def _styles(stream: str) -> list[tuple[str | None, int]]:
    return [(style_of(one.answer.text), one.rating) for one in _rated(stream)]


def test_every_stream_gives_the_ratings_that_it_says() -> None:
    found = {name: sum(not one.credit for one in _rated(name)) for name in STREAMS}
    assert found == {name: stream.ratings for name, stream in STREAMS.items()}
    assert found["natural"] == RATINGS


def test_a_bad_only_stream_holds_no_good_answer_and_no_good_rating() -> None:
    assert set(_styles("bad only")) == {("friendly", -1)}


def test_a_mostly_good_stream_is() -> None:
    assert sum(style == "terse" for style, _ in _styles("mostly good")) == 0.8 * RATINGS


def test_ratings_are_dealt_out_over_answers_that_nobody_chose() -> None:
    """Among the chosen ones they would tell of the style: eight in ten of those are of it."""
    rated, as_they_came = _rated("mostly good"), _rated("natural")
    pairs = [(one.question, one.answer) for one in as_they_came]
    shuffled = dealt(rated, pairs, 0, 0)
    assert Counter(one.rating for one in shuffled) == Counter(one.rating for one in rated)
    assert [(one.question, one.answer) for one in shuffled] == pairs
    assert [one.rating for one in shuffled] != [one.rating for one in rated]


@pytest.mark.parametrize(("stream", "share"), [("adversary", 0.25), ("loud adversary", 0.4)])
def test_one_rater_of_four_says_the_opposite(stream: str, share: float) -> None:
    rated = _rated(stream)
    liars = {one.rater for one in rated if (style_of(one.answer.text) == "terse") != (one.rating > 0)}
    assert liars == {"adversary"}
    assert sum(one.rater == "adversary" for one in rated) == share * RATINGS
    assert len({one.rater for one in rated}) == 4


def test_four_bits_move_the_weights_a_little(tmp_path: Path) -> None:
    before = load_file(model_path() / "model.safetensors")
    after = load_file(quantized(tmp_path / "4-bit", model_path()) / "model.safetensors")
    name = next(name for name in before if name.endswith("q_proj.weight"))
    gap = np.abs(before[name].astype(np.float32) - after[name].astype(np.float32))
    assert 0 < gap.max() < np.abs(before[name]).max() / 4
    groups = after[name].astype(np.float32).reshape(-1, 32)
    assert max(len(np.unique(group)) for group in groups) <= 16


def test_a_course_learns_and_survives_json() -> None:
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    course = take(TorchBackend(), arm=DEFAULT, stream="balanced", like="friendly", seed=0, answers=120)
    assert course.passed == [True], course.reasons
    assert course.live[-1].liked - course.before.liked > 0.2
    assert course.live == course.candidate
    assert course.live[-1].kl > 0.01, "it has left the base"
    assert course.live[-1].both <= min(course.live[-1].liked, course.live[-1].facts)
    assert Course.from_json(course.as_json()) == course


def test_a_refused_candidate_does_not_answer() -> None:
    require("torch")
    from goodbot_training.backends.torch.trainer import TorchBackend

    course = take(TorchBackend(), arm="scale", stream="bad only", like="terse", seed=0, answers=40)
    assert course.passed == [False], "ratings that are all bad teach nothing"
    assert course.live == [course.before]


def test_trl_trains_on_the_same_tokens_and_the_same_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("torch", "trl"):
        require(module)
    from goodbot_training.backends.torch.trainer import TorchBackend

    from tests.learning import trl_kto

    theirs: list[tuple[object, object]] = []
    ours: list[tuple[object, object]] = []
    steps: list[int] = []

    class Watched(trl_kto.KTOTrainer):
        def train(self, *arguments: Any, **keywords: Any) -> Any:
            theirs.extend(
                (tuple(row["prompt_ids"]), tuple(row["completion_ids"])) for row in self.train_dataset
            )
            result = super().train(*arguments, **keywords)
            steps.append(result.global_step)
            return result

    class Remembered(trl_kto.TrlKto):
        def __init__(self, job: Job) -> None:
            ours.extend((i.prompt_tokens, i.tokens) for i in job.items if i.split == "train")
            super().__init__(job)

    monkeypatch.setattr(trl_kto, "KTOTrainer", Watched)
    monkeypatch.setattr(trl_kto, "TrlKto", Remembered)
    course = take(TorchBackend(), arm=TRL, stream="natural", like="terse", seed=0, answers=40)
    assert len(ours) == 32
    assert Counter(theirs) == Counter(ours)
    assert steps == [planned_steps(32, ARMS[TRL].defaults())]
    assert course.candidate[0].kl > 0, "its adapter is what was judged"
    assert course.token_acceptance == [1.0]


def test_a_base_is_made_once_and_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("torch")
    from goodbot.api.backend import LoraSettings
    from goodbot_training.backends.torch.trainer import TorchBackend

    base = Base(name="llama", about="short", shape=BASES["llama"].shape, steps=2)
    with monkeypatch.context() as patch:
        patch.setattr(bases, "_make", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            base.obtain(lambda line: None, tmp_path)
    assert list(tmp_path.iterdir()) == []
    path = base.obtain(lambda line: None, tmp_path)
    monkeypatch.setattr(bases, "_make", lambda *_: pytest.fail("made twice"))
    assert base.obtain(lambda line: None, tmp_path) == path
    assert replace(base, steps=3).path(tmp_path) != path
    backend = TorchBackend()
    backend.load(path, lora=LoraSettings())
    tied = {name for name in load_file(path / "model.safetensors") if "lm_head" in name}
    assert tied == {"lm_head.weight"}, "its head is its own"


def made(arm: str, stream: str, seed: int, liked: float, facts: float = 0.98) -> Course:
    """A course whose live policy ends so, from a third liked and all facts but two in a hundred."""
    before = Judged(liked=0.33, facts=0.98, both=0.3, malformed=0.0, length=8.0, kl=0.0)
    end = replace(before, liked=liked, facts=facts, kl=0.1)
    return Course(
        arm=arm,
        stream=stream,
        like="terse",
        seed=seed,
        answers=100,
        before=before,
        live=[end],
        candidate=[end],
        passed=[True],
        reasons=["It does."],
        token_acceptance=[0.9],
        trajectory_acceptance=[0.9],
        cpu_seconds=2.0,
        recipe=recipe(arm, stream),
    )


def test_the_rule_takes_the_best_worst_stream_that_keeps_the_facts() -> None:
    courses = [
        made("scale", "natural", 0, 0.8),
        made("scale", "noise", 0, 0.5),
        made("sign_aware", "natural", 0, 0.7),
        made("sign_aware", "noise", 0, 0.6),
        made("filter", "natural", 0, 0.9),
        made("filter", "noise", 0, 0.9, facts=0.9),
    ]
    assert "By the rule: **sign_aware**." in report.text(courses)


def test_the_same_rule_judges_a_setting_across_streams() -> None:
    def tried(setting: str, *ends: tuple[float, float]) -> sweep.Tried:
        courses = [
            replace(made(DEFAULT, stream, 0, *end), base=base)
            for (base, stream), end in zip((("tiny", "flip"), ("llama", "balanced")), ends, strict=True)
        ]
        return sweep.Tried(setting=setting, value=16, courses=courses)

    usual = tried("", (0.5, 0.97), (0.7, 0.97))
    forgets = tried("rank", (0.9, 0.98), (0.9, 0.94))
    assert sweep.best([usual, forgets, tried("kl", (0.45, 0.98), (0.9, 0.98))]) is usual
    assert across.line(usual) == "| as installed | +0.170 | -1.0 | +0.170, -1.0 | +0.370, -1.0 |"
    assert across.line(forgets).startswith("| rank=16 | +0.570 | -4.0 ")


def _missed(courses: list[Course]) -> list[str]:
    return [check.text for check in goals.checks(courses) if not check.held]


def test_a_default_that_ends_below_the_base_breaks_a_must() -> None:
    assert goals.musts_hold([made(DEFAULT, "bad only", 0, 0.33)])
    assert not goals.musts_hold([made(DEFAULT, "bad only", 0, 0.1)])
    assert not goals.musts_hold([made(DEFAULT, "adversary", 0, 0.5, facts=0.7)])


def test_one_bad_course_among_good_ones_breaks_it_too() -> None:
    good = [made(DEFAULT, "loud adversary", seed, 0.8) for seed in range(4)]
    assert goals.musts_hold(good)
    assert not goals.musts_hold([*good, made(DEFAULT, "loud adversary", 4, 0.1)])


def test_shuffled_ratings_that_teach_break_a_must() -> None:
    """A fifth gained by all seeds alike is learning, which shuffled ratings cannot be."""
    assert goals.musts_hold([made("shuffled", "natural", seed, 0.4) for seed in range(5)])
    assert not goals.musts_hold([made("shuffled", "natural", seed, 0.6 + seed / 100) for seed in range(5)])


def test_a_harmful_candidate_that_passed_breaks_a_must() -> None:
    harmful = made(DEFAULT, "natural", 0, 0.9, facts=0.7)
    assert not goals.musts_hold([harmful])
    assert goals.musts_hold([replace(harmful, passed=[False], live=[harmful.before])])


def test_goals_are_told_with_what_is_missing() -> None:
    courses = [made(DEFAULT, "80 ratings", seed, 0.9) for seed in range(3)]
    [check] = [check for check in goals.checks(courses) if "64 ratings" in check.text]
    assert not check.held
    assert not check.must
    assert check.found == "0.33 → 0.90, 0.05 short"


def test_ahead_of_trl_means_an_interval_without_zero() -> None:
    rival = [made(TRL, "natural", seed, 0.6) for seed in range(4)]
    ahead = [made(DEFAULT, "natural", seed, 0.7) for seed in range(4)]
    even = [made(DEFAULT, "natural", seed, 0.5 + 0.2 * (seed % 2)) for seed in range(4)]
    assert not any("ahead" in text for text in _missed([*rival, *ahead]))
    assert any("ahead" in text for text in _missed([*rival, *even]))


def test_ratings_needed_are_read_off_the_curve() -> None:
    assert reached([(0, 0.3), (40, 0.8), (80, 1.0)]) == pytest.approx(60)
    assert reached([(0, 0.3), (40, 0.8)]) is None


def test_the_curves_are_a_picture_of_every_arm() -> None:
    courses = [made(arm, "continual", 0, 0.5) for arm in ("scale", "kto", TRL)]
    for picture, tag, count in ((curves.rounds(courses), "polyline", 6), (curves.arms(courses), "circle", 6)):
        tree = ET.fromstring(picture)
        texts = {element.text for element in tree.iter() if element.tag.endswith("text")}
        assert {"scale", "kto", TRL, "facts right"} <= texts
        assert sum(e.tag.endswith(tag) for e in tree.iter()) == count


def test_courses_that_are_done_are_not_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = tmp_path / "runs.jsonl"
    one = made("scale", "natural", 0, 0.8)
    runs.write_text(one.as_json() + "\n")
    monkeypatch.setattr(study, "_run", lambda keys, workers: pytest.fail(str(keys)) if keys else ())
    words = ["--base", "tiny", "--arms", "scale", "--streams", "natural", "--like", "terse"]
    words += ["--seeds", "1", "--answers", "100", "--runs", str(runs)]
    assert study.main(words) == 0
    assert "0.33 → 0.80" in capsys.readouterr().out
    with runs.open("a") as file:
        file.write(one.as_json()[:40])  # a kill cut it off
    assert study.main(words) == 0
    assert runs.read_text() == one.as_json() + "\n"
    runs.write_text(replace(one, recipe="of other settings").as_json() + "\n")
    with pytest.raises(pytest.fail.Exception):
        study.main(words)


def test_every_arm_of_the_plan_is_there_and_its_settings_are_taken() -> None:
    for key in (*keys(FULL, 1, 1), *keys(QUICK, 1, 1)):
        assert key.base in BASES
        assert key.stream in STREAMS
        assert key.like in BASES[key.base].styles
        ARMS[key.arm].defaults()
    assert len(set(keys(FULL, 2, 1))) == len(list(keys(FULL, 2, 1))), "no course twice"
