# SPDX-License-Identifier: Apache-2.0
"""S5: whatever one answer holds, the round goes on without it and says which it was and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.backend import LoraSettings
from goodbot.api.events import CaptureEvent, ChannelKind, ChannelRef, OrderKey, UserRef
from goodbot.base.errors import TrainingError
from goodbot.base.sampling import Filters
from goodbot.conversation.capture_rules import storable, turn_of, unfit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import require
from tests.training.test_worker import make_job

require("torch")

from goodbot_training.backends.torch.trainer import TorchBackend  # noqa: E402
from goodbot_training.job.types import Job, RatedSample  # noqa: E402
from goodbot_training.planning import run_plan  # noqa: E402
from goodbot_training.round.reported import as_read  # noqa: E402
from goodbot_training.round.run import run_round  # noqa: E402

GOOD = 40
SHORT: dict[str, Any] = {
    "steps": 2,
    "rank": 2,
    "gate_anchors": 4,
    "gate_max_tokens": 4,
    "max_sequence_tokens": 200,
}
HUGE = {"prompt_tokens": [1, 5, 2_000_000_000], "tokens": [7], "logprobs": [-0.5]}
FIRST = {"prompt_tokens": [1, 5], "tokens": [320], "logprobs": [-0.5]}
"""The first id that the model does not know."""
LOW = {"prompt_tokens": [1, 5], "tokens": [7], "logprobs": [-1e300]}
EMPTY = {"messages": [], "response": ""}
REFUSED = {"messages": [{"role": "user", "content": "a forbidden word"}]}
BREAKS = {"messages": [{"role": "user", "content": "a divided word"}]}
CALLS = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [5]}]}


def rated(number: int, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"good-{number}",
        "messages": [{"role": "user", "content": f"{number} + 1?"}],
        "response": f"It is {number + 1}.",
        "temperature": 1.0,
        "version": 0,
        "weight": 1.0,
        "reward": 1.0 if number % 2 else -1.0,
        "split": "held_out" if number % 8 < 2 else "train",
        **changes,
    }


def job_of(model: Path, output: Path, bad: list[dict[str, Any]], good: int = GOOD) -> Job:
    """A job as it comes through the pipe, whose gate asks the bad ones first."""
    raw = make_job(model, output, items=[*bad, *map(rated, range(good))])
    raw["anchors"] = [item["messages"] for item in raw["items"][:8]]
    raw["settings"] |= SHORT
    return Job.parse(json.loads(json.dumps(raw)))


def ended(job: Job) -> tuple[dict[str, str], dict[str, Any]]:
    """What a round went without, and the event that it ended with."""
    events: list[dict[str, Any]] = []
    run_round(job, TorchBackend(), lambda event: events.append(json.loads(json.dumps(event))))
    told = [turn for event in events if event["event"] == "quarantine" for turn in event["turns"]]
    return {turn["id"]: turn["reason"] for turn in told}, events[-1]


@pytest.fixture
def strict_model(random_model: Path, tmp_path: Path) -> Path:
    """A template that refuses one word, and breaks on another: it is a program."""
    model = tmp_path / "strict"
    model.mkdir()
    for path in random_model.iterdir():
        (model / path.name).write_bytes(path.read_bytes())
    file = model / "tokenizer_config.json"
    config = json.loads(file.read_text())
    refusal = (
        "{% for m in messages %}{% if 'forbidden' in m['content'] %}{{ raise_exception('no') }}"
        "{% elif 'divided' in m['content'] %}{{ 1 // 0 }}{% endif %}{% endfor %}"
    )
    file.write_text(json.dumps({**config, "chat_template": refusal + config["chat_template"]}))
    return model


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (HUGE, "token ids that this model does not know"),
        (FIRST, "token ids that this model does not know"),
        (LOW, "not finite"),
        (EMPTY, "there is no message"),
        (REFUSED, "chat template refuses this conversation"),
        (BREAKS, "chat template fails with ZeroDivisionError"),
        (CALLS, "a message needs a role and a content"),
    ],
    ids=["huge", "first", "low", "empty", "refused", "breaks", "calls"],
)
def test_s5_a_round_goes_on_without_what_it_cannot_read(
    strict_model: Path, tmp_path: Path, bad: dict[str, Any], why: str
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    told, last = ended(job_of(strict_model, output, [rated(100, id="bad", split="train", **bad)]))
    assert last["event"] == "done"
    assert list(told) == ["bad"]
    assert why in told["bad"]
    assert last["metrics"]["left_out"] == 1


POSITIVE = {"prompt_tokens": [1, 5], "tokens": [7], "logprobs": [1.0]}
CAPTURED = {"prompt_tokens": [1, 5], "tokens": [7], "logprobs": [-0.5]}


@pytest.mark.parametrize(
    "bad", [HUGE, LOW, POSITIVE, {**CAPTURED, **REFUSED}], ids=["huge", "low", "positive", "better"]
)
def test_an_answer_and_the_better_one_are_left_out_together(
    strict_model: Path, tmp_path: Path, bad: dict[str, Any]
) -> None:
    """By the id of the answer: a run that has let it go has learnt no word about it. Of the last the answer
    can be read, and the better one cannot."""
    output = tmp_path / "out"
    output.mkdir()
    answer = rated(100, id="bad", split="train", **bad)
    better = rated(100, id="bad+better", split="train", version=None, messages=answer["messages"])
    told, last = ended(job_of(strict_model, output, [answer, {**better, "demonstration": True}]))
    assert list(told) == ["bad"]
    assert last["metrics"]["demonstrations"] == 0
    assert last["metrics"]["left_out"] == 1
    assert last["metrics"]["rollouts"] == GOOD * 3 // 4


@pytest.mark.parametrize("bad", [HUGE, REFUSED], ids=["huge", "refused"])
def test_s5_a_plan_goes_on_without_it_as_well(
    strict_model: Path, tmp_path: Path, bad: dict[str, Any]
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    job = job_of(strict_model, output, [rated(100, id="bad", split="train", **bad)])
    events: list[dict[str, Any]] = []
    run_plan(job, TorchBackend(), events.append)
    assert events[-1]["event"] == "done"


def test_s5_where_nothing_is_left_the_round_says_so_after_it_has_named_each(
    strict_model: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    bad = [rated(n, id=f"bad-{n}", split="train", **REFUSED) for n in range(3)]
    events: list[dict[str, Any]] = []
    with pytest.raises(TrainingError, match="no rated turn to train on"):
        run_round(job_of(strict_model, output, bad, good=0), TorchBackend(), events.append)
    [told] = [event for event in events if event["event"] == "quarantine"]
    assert [turn["id"] for turn in told["turns"]] == ["bad-0", "bad-1", "bad-2"]


# -- any accepted captures and 40 good ratings: a round that ends

words = st.text(max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "tool", "system", "", "critic"]) | words},
        optional={"content": words | values, "tool_calls": values, "name": values},
    ),
    min_size=1,
    max_size=3,
)
numbers = st.integers(0, 2**31 - 1) | st.integers(0, 400)
scores = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-5, 0)


@st.composite
def captures(draw: st.DrawFn) -> CaptureEvent:
    """What a program with a rater's token may send."""
    tokens = draw(st.lists(numbers, max_size=4))
    scored = tokens if draw(st.booleans()) else []
    return CaptureEvent(
        event_id="e",
        order=OrderKey(1),
        user=UserRef(connector="api", account="", id="ci"),
        channel=ChannelRef(connector="api", account="", id="ci", kind=ChannelKind.PRIVATE),
        messages=tuple(draw(messages)),
        response=draw(words),
        version=0,
        temperature=draw(st.floats(0, 100)),
        prompt_tokens=tuple(draw(st.lists(numbers, max_size=3))),
        tokens=tuple(tokens),
        logprobs=tuple(draw(scores) for _ in scored),
        thought=draw(words),
        lifts=tuple(draw(scores) for _ in scored) if draw(st.booleans()) else (),
        filters=Filters(top_k=draw(st.integers(0, 5))),
    )


def item_of(event: CaptureEvent, number: int) -> dict[str, Any] | None:
    """As the daemon gives a stored turn to its trainer; None for what is refused at the door."""
    if unfit(event):
        return None
    turn = turn_of(storable(event), base="base", scope="default", now=0.0, version=0)
    return rated(
        number,
        id=f"captured-{number}",
        messages=list(turn.messages),
        response=turn.response,
        thought=turn.thought,
        prompt_tokens=list(turn.prompt_tokens),
        tokens=list(turn.tokens),
        logprobs=list(turn.logprobs),
        lifts=list(turn.lifts),
        temperature=turn.temperature,
        filters=turn.filters.told(),
        split="train",
    )


@pytest.mark.parametrize("temperature", [1e-300, 1e-18, 1e-3])
def test_s5_a_temperature_of_next_to_nothing_is_none(
    random_model: Path, tmp_path: Path, temperature: float
) -> None:
    """Each such answer's gradient was 1 / temperature, and with half of a step's the round failed."""
    bad = [rated(n, id=f"captured-{n}", temperature=temperature, split="train") for n in range(GOOD // 2)]
    told, last = ended(job_of(random_model, tmp_path, bad))
    assert (last["event"], told) == ("done", {})
    assert last["metrics"]["rollouts"] == GOOD * 3 // 4 + GOOD // 2


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=st.lists(captures(), min_size=1, max_size=8))
def test_s5_any_accepted_captures_and_forty_good_ratings_end_in_a_verdict(
    strict_model: Path, tmp_path_factory: pytest.TempPathFactory, sent: list[CaptureEvent]
) -> None:
    bad = [item for n, event in enumerate(sent) if (item := item_of(event, n)) is not None]
    told, last = ended(job_of(strict_model, tmp_path_factory.mktemp("out"), bad))
    assert last["event"] == "done"
    assert not any(name.startswith("good-") for name in told), "only what is bad is left out"
    assert last["metrics"]["rollouts"] >= GOOD * 3 // 4


def reported(model: Path, words: str, spelt: str, asked: str = "100 + 1?") -> dict[str, Any]:
    """An answer in these words whose tokens spell others."""
    tokenizer = require("tokenizers").Tokenizer.from_file(str(model / "tokenizer.json"))
    item = rated(100, id="bad", split="train", response=words, reported=True)
    item["messages"] = [{"role": "user", "content": "100 + 1?"}]
    prompt, tokens = (tokenizer.encode(text).ids for text in (f"user: {asked}", spelt))
    return {**item, "prompt_tokens": prompt, "tokens": tokens, "logprobs": [-0.5] * len(tokens)}


def test_s5_of_an_answer_whose_tokens_spell_other_words_the_words_are_learnt(random_model: Path) -> None:
    """So it is where a server stops at some words, or keeps a thought; and where another prompt was sent."""
    backend = TorchBackend()
    backend.load(random_model, lora=LoraSettings(rank=2, alpha=4))
    one = reported(random_model, "It is 101.", "It is 101.")
    end = backend.tokenize(one["messages"], "It is 101.").response[-1]
    for item, kept in (
        (one, True),
        ({**one, "tokens": [*one["tokens"], end], "logprobs": [-0.5] * (len(one["tokens"]) + 1)}, True),
        ({**one, "tokens": [end, *one["tokens"]], "logprobs": [-0.5] * (len(one["tokens"]) + 1)}, False),
        ({**one, "tokens": [*one["tokens"], end, end], "logprobs": [-0.5] * (len(one["tokens"]) + 2)}, False),
        (reported(random_model, " It is 101. ", "It is 101."), True),
        (reported(random_model, "It is 101.", "It is\n\n\n101."), False),
        (reported(random_model, "It is 101.", "Nobody read this."), False),
        (reported(random_model, "It is 101.", "It is"), False),
        (reported(random_model, "It is 101.", "not It is 101."), False),
        (reported(random_model, "It is 101.", "It is 101.\nUser: and"), False),
        (reported(random_model, "It is 101.", "It is 101.", asked="Who is best?"), False),
        ({**reported(random_model, "It is 101.", "It is 99."), "reported": False}, True),
    ):
        parsed = RatedSample.parse(item)
        read = as_read(parsed, backend)
        assert (read is parsed) is kept, item
        assert bool(read.tokens) is kept
        assert read.response == parsed.response


def test_s5_a_round_goes_on_with_the_words(random_model: Path, tmp_path: Path) -> None:
    (output := tmp_path / "out").mkdir()
    told, last = ended(
        job_of(random_model, output, [reported(random_model, "It is 101.", "Nobody read this.")])
    )
    assert (last["event"], told) == ("done", {})
    assert last["metrics"]["rollouts"] == GOOD * 3 // 4 + 1
