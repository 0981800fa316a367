# SPDX-License-Identifier: Apache-2.0
"""What a server tells of first tokens, laid beside the trainer's fingerprint."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from goodbot.api import fingerprint as fingerprint_check
from goodbot.api.events import Message
from goodbot.api.fingerprint import FILE, Fingerprint, FingerprintProbe, ServedAs, compare, distance, prove
from goodbot.base.errors import AdapterError
from goodbot.inference.servers.health import HealthMonitor

WORDS = [f"word{number}" for number in range(40)]


def spread(seed: int, sharp: float = 2.0) -> dict[str, float]:
    """Log-probs of a whole vocabulary of forty words."""
    dice = random.Random(seed)
    return normal({word: dice.gauss(0, sharp) for word in WORDS})


def normal(logits: Mapping[str, float]) -> dict[str, float]:
    total = math.log(sum(map(math.exp, logits.values())))
    return {word: logit - total for word, logit in logits.items()}


def shaken(logprobs: Mapping[str, float], by: float, seed: int) -> dict[str, float]:
    """As from the same weights in coarser numbers."""
    dice = random.Random(seed)
    return normal({word: logprob + dice.gauss(0, by) for word, logprob in logprobs.items()})


def top(logprobs: Mapping[str, float], count: int) -> dict[str, float]:
    likeliest = sorted(logprobs, key=lambda word: -logprobs[word])[:count]
    return {word: logprobs[word] for word in likeliest}


def measured(
    base: Sequence[Mapping[str, float]], adapter: Sequence[Mapping[str, float]]
) -> list[FingerprintProbe]:
    return [
        FingerprintProbe(messages=[], base=top(b, 20), adapter=top(a, 20))
        for b, a in zip(base, adapter, strict=True)
    ]


BASE = [spread(seed) for seed in range(4)]
ADAPTER = [
    normal({w: lp + random.Random(f"{n}{w}").gauss(0, 0.7) for w, lp in b.items()})
    for n, b in enumerate(BASE)
]
PROMPTS = measured(BASE, ADAPTER)


@pytest.mark.parametrize("count", [3, 5, 20, 40])
def test_a_server_that_tells_some_of_its_likeliest_tokens_is_seen_through(count: int) -> None:
    """Five are all that some servers tell."""
    assert compare(PROMPTS, [top(a, count) for a in ADAPTER]) is ServedAs.ADAPTER
    assert compare(PROMPTS, [top(b, count) for b in BASE]) is ServedAs.BASE


def test_one_token_each_convicts_nobody() -> None:
    of_adapter = compare(PROMPTS, [top(a, 1) for a in ADAPTER])
    of_base = compare(PROMPTS, [top(b, 1) for b in BASE])
    assert of_adapter is not ServedAs.BASE
    assert of_base is not ServedAs.ADAPTER


@pytest.mark.parametrize("seed", range(20))
def test_coarser_weights_are_still_told_apart(seed: int) -> None:
    """Four bits move log-probs by a tenth of a nat or so."""
    assert compare(PROMPTS, [top(shaken(a, 0.15, seed), 10) for a in ADAPTER]) is ServedAs.ADAPTER
    assert compare(PROMPTS, [top(shaken(b, 0.15, seed), 10) for b in BASE]) is ServedAs.BASE


@pytest.mark.parametrize("seed", range(20))
def test_another_model_is_neither(seed: int) -> None:
    others = [top(spread(100 + 4 * seed + n), 10) for n in range(4)]
    assert compare(PROMPTS, others) is ServedAs.NEITHER


def test_the_more_of_the_adapter_the_nearer_to_it() -> None:
    def mixed(part: float) -> list[dict[str, float]]:
        return [
            normal({w: part * a[w] + (1 - part) * b[w] for w in WORDS})
            for a, b in zip(ADAPTER, BASE, strict=True)
        ]

    assert [compare(PROMPTS, mixed(part)) for part in (0.0, 0.2, 0.8, 1.0)] == [
        ServedAs.BASE,
        ServedAs.BASE,
        ServedAs.ADAPTER,
        ServedAs.ADAPTER,
    ]


def test_an_adapter_that_changes_next_to_nothing_cannot_be_proven() -> None:
    barely = [shaken(b, 0.02, 1) for b in BASE]
    assert compare(measured(BASE, barely), [top(b, 20) for b in BASE]) is ServedAs.TOO_CLOSE


def test_what_is_told_of_some_prompts_only_is_enough() -> None:
    assert compare(PROMPTS, [{}, BASE[1], {}, {}]) is ServedAs.BASE
    assert compare(PROMPTS, [{}, ADAPTER[1], {}, {}]) is ServedAs.ADAPTER
    assert compare(PROMPTS, [{}, {}, {}, {}]) is ServedAs.UNTOLD


def test_a_distance_is_one_between_distributions() -> None:
    one, other = spread(1), spread(2)
    assert distance(one, one) == 0
    assert distance(one, other) == pytest.approx(distance(other, one))
    assert 0 < distance(top(one, 5), other) <= distance(one, other) + 1e-9 <= 2
    assert distance({"a": 0.0}, {"b": 0.0}) == 0, "what is told of neither may be anything"
    assert distance({"a": -0.01, "b": -6.0}, {"c": -0.01, "d": -6.0}) > 1.5


# -- asking


class Told:
    """A server of which only the first tokens matter."""

    def __init__(self, *answers: Mapping[str, float], error: Exception | None = None) -> None:
        self.answers, self.error = list(answers), error
        self.asked: list[tuple[str, int, int]] = []

    async def first_tokens(
        self, messages: Sequence[Message], *, version: int, top: int
    ) -> Mapping[str, float]:
        if self.error:
            raise self.error
        self.asked.append((messages[0]["content"], version, top))
        return self.answers[len(self.asked) - 1]


def written(directory: Path, **changes: Any) -> Path:
    prompts = [
        {"messages": [{"role": "user", "content": f"prompt {n}"}], "base": top(b, 20), "adapter": top(a, 20)}
        for n, (b, a) in enumerate(zip(BASE, ADAPTER, strict=True))
    ]
    directory.mkdir(exist_ok=True)
    given = {"format": 1, "top": 20, "prompts": prompts} | changes
    (directory / FILE).write_text(json.dumps(given))
    return directory


async def test_the_most_telling_prompts_are_asked_about_first(tmp_path: Path) -> None:
    fingerprint = Fingerprint.of(written(tmp_path))
    assert fingerprint is not None
    apart = [prompt.apart for prompt in fingerprint.prompts]
    assert apart == sorted(apart, reverse=True)
    first = fingerprint.prompts[0].messages[0]["content"]
    server: Any = Told(ADAPTER[int(first[-1])])
    assert await prove(server, 7, fingerprint, 1) is ServedAs.ADAPTER
    assert server.asked == [(first, 7, 20)]


async def test_nothing_is_asked_where_the_answer_would_prove_nothing(tmp_path: Path) -> None:
    same = [{"messages": [{"role": "user", "content": "x"}], "base": BASE[0], "adapter": BASE[0]}]
    fingerprint = Fingerprint.of(written(tmp_path, prompts=same))
    assert fingerprint is not None
    server: Any = Told()
    assert await prove(server, 7, fingerprint, 4) is ServedAs.TOO_CLOSE
    assert server.asked == []


async def test_nonsense_from_a_server_is_left_out(tmp_path: Path) -> None:
    nonsense = {"a": math.nan, "b": math.inf, "c": 4.0, "\ufffd": -0.5}
    fingerprint = Fingerprint.of(written(tmp_path))
    assert fingerprint is not None
    at = int(fingerprint.prompts[0].messages[0]["content"][-1])
    server: Any = Told({**nonsense, **ADAPTER[at]}, nonsense)
    assert await prove(server, 7, fingerprint, 1) is ServedAs.ADAPTER
    server = Told(nonsense)
    assert await prove(server, 7, fingerprint, 1) is ServedAs.UNTOLD


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 2}',
        '{"format": 1, "top": 20, "prompts": [{"messages": 3}]}',
        '{"format": 1, "top": 20, "prompts": [{"messages": [], "base": [1], "adapter": {}}]}',
        '{"format": 1, "top": "many", "prompts": []}',
        "[" * 100_000,
    ],
)
def test_a_fingerprint_that_is_none_is_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(AdapterError, match=r"fingerprint\.json cannot be read"):
        Fingerprint.of(tmp_path)


def test_an_adapter_without_a_fingerprint_has_none(tmp_path: Path) -> None:
    assert Fingerprint.of(tmp_path) is None


async def test_the_witness_never_raises_and_says_what_it_could_not_find_out(tmp_path: Path) -> None:
    from goodbot.base.errors import ServerError

    server: Any = Told(error=ServerError("it is gone"))
    health = HealthMonitor(server)
    found = await health.examine(3, tmp_path, thorough=True)
    assert (found.verdict, "took no fingerprint" in found.why) == (ServedAs.UNTOLD, True)
    found = await health.examine(3, written(tmp_path), thorough=True)
    assert (found.verdict, "it is gone" in found.why) == (ServedAs.UNTOLD, True)
    (tmp_path / FILE).write_text("{")
    found = await health.examine(3, tmp_path, thorough=True)
    assert (found.verdict, "cannot be read" in found.why) == (ServedAs.UNTOLD, True)


async def test_a_server_that_is_silent_for_once_takes_nothing_back(tmp_path: Path) -> None:
    """Ollama is not asked the same while nobody talks, so that it may let go of its memory."""
    health = HealthMonitor(Told())  # type: ignore[arg-type]
    directory = written(tmp_path)
    for answers, expected in ((ADAPTER, ""), ([{}] * 4, ""), (BASE, "v3 is not really served")):
        fingerprint = Fingerprint.of(directory)
        assert fingerprint is not None
        by = [int(prompt.messages[0]["content"][-1]) for prompt in fingerprint.prompts]
        health._server = Told(*(answers[at] for at in by))  # type: ignore[assignment]
        health.keep(await health.examine(3, directory, thorough=True))
        assert health.found.why.startswith(expected)
        assert bool(health.found.why) == bool(expected)


def test_an_honest_bound_stands_in_for_what_is_not_told() -> None:
    assert fingerprint_check.distance({"a": -0.1}, {"a": -0.1, "b": -9.0}) == 0
