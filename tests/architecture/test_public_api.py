# SPDX-License-Identifier: Apache-2.0
"""What a plugin relies on, as a snapshot that `API_VERSION` numbers.

When this fails you have changed the plugin API. If no released goodbot had the old one, write the
snapshot anew; else raise `API_VERSION` first::

    python -m tests.architecture.test_public_api
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from pathlib import Path
from typing import Any

import goodbot
import pytest
from goodbot import testing
from goodbot.api import (
    connector,
    content_filter,
    events,
    export,
    feature,
    hookspecs,
    judge,
    objective,
    predicted,
    reply_stream,
    report,
    rewards,
    server,
    tracker,
)
from goodbot.api.connector import API_VERSION

SNAPSHOTS = Path(__file__).parent / "api"

PARTS = (
    connector.Capability,
    connector.ConnectorSpec,
    connector.OpenTurn,
    connector.SentAnswer,
    connector.ConnectorHost,
    connector.Connector,
    reply_stream.ReplyStream,
    events.OrderKey,
    events.ChannelKind,
    events.UserRef,
    events.ChannelRef,
    events.MessageRef,
    events.RatingKind,
    events.Event,
    events.MessageEvent,
    events.RatingEvent,
    events.CommandEvent,
    events.PressEvent,
    events.CaptureEvent,
    events.Outcome,
    events.Receipt,
    events.Button,
    events.Reply,
    events.Waiting,
    rewards.TurnRating,
    rewards.RewardPolicy,
    server.AdapterFormat,
    server.ServerSpec,
    server.ServerParts,
    server.GenerateRequest,
    server.Generated,
    server.Server,
    objective.ObjectiveSpec,
    export.ExportedPair,
    export.ExportedAnswer,
    export.ExportForm,
    predicted.CalibrationBin,
    predicted.PredictedAnswer,
    predicted.Predicted,
    report.ReportedAnswer,
    report.FixedQuestion,
    report.ReportedBot,
    report.ReportSection,
    report.ReportPart,
    report.ReportSpec,
    content_filter.FilterCase,
    content_filter.ContentFilter,
    content_filter.ContentFilterSpec,
    judge.Asks,
    judge.JudgeCase,
    judge.Judgement,
    judge.JudgeSpec,
    judge.Judge,
    feature.Figures,
    feature.HappenedWanted,
    feature.Happened,
    feature.FeatureHost,
    feature.Feature,
    feature.FeatureSpec,
    tracker.TrackerSpec,
    tracker.TrackedRun,
    tracker.Tracker,
)


def describe() -> str:
    """The API as text: one line a name, a field, a method."""
    lines = [f"API_VERSION {API_VERSION}", "", "goodbot:"]
    lines += [f"  {name}" for name in sorted(goodbot.__all__)]
    for part in PARTS:
        bases = ", ".join(base.__name__ for base in part.__bases__)
        lines += ["", f"{part.__module__}.{part.__name__}({bases}):"]
        lines += [f"  {line}" for line in _members(part)]
    lines += ["", "goodbot.api.hookspecs:"]
    for name, function in vars(hookspecs).items():
        if hasattr(function, "goodbot_spec"):
            lines.append(f"  {name}{inspect.signature(function)}")
    return "\n".join(lines) + "\n"


def _members(part: type[Any]) -> list[str]:
    if issubclass(part, enum.Enum):
        return [f"{member.name} = {member.value!r}" for member in part]
    if dataclasses.is_dataclass(part):
        return [f"{field.name}: {field.type}{_default(field)}" for field in dataclasses.fields(part)]
    lines = [
        f"{name}: {getattr(kind, '__forward_arg__', kind)}"
        for name, kind in inspect.get_annotations(part).items()
    ]
    for name, member in vars(part).items():
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, property):
            lines.append(f"{name}: {member.fget.__annotations__['return']}")
        elif inspect.isfunction(member) and member.__module__ != "typing":
            prefix = "async " if inspect.iscoroutinefunction(member) else ""
            mark = " (abstract)" if getattr(member, "__isabstractmethod__", False) else ""
            lines.append(f"{prefix}{name}{inspect.signature(member)}{mark}")
    return lines


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f" = {field.default!r}"
    return " = …" if field.default_factory is not dataclasses.MISSING else ""


def test_every_public_name_is_there() -> None:
    assert len(set(goodbot.__all__)) == len(goodbot.__all__)
    missing = [name for name in goodbot.__all__ if not hasattr(goodbot, name)]
    missing += [name for name in testing.__all__ if not hasattr(testing, name)]
    assert missing == []


def test_the_api_is_what_its_number_says() -> None:
    snapshot = SNAPSHOTS / f"{API_VERSION}.txt"
    assert snapshot.exists(), "a new API version needs a snapshot: see this module's docstring"
    assert describe() == snapshot.read_text(encoding="utf-8"), (
        "the plugin API has changed: see this module's docstring"
    )


def test_no_version_is_skipped_or_dropped() -> None:
    found = sorted(int(path.stem) for path in SNAPSHOTS.glob("*.txt"))
    assert found == list(range(1, API_VERSION + 1))


@pytest.mark.parametrize("part", [p for p in PARTS if dataclasses.is_dataclass(p)])
def test_values_are_frozen_and_given_by_name(part: type[Any]) -> None:
    parameters = part.__dataclass_params__
    assert parameters.frozen
    kinds = {p.kind for p in inspect.signature(part).parameters.values()}
    assert kinds <= {inspect.Parameter.KEYWORD_ONLY}


if __name__ == "__main__":
    SNAPSHOTS.mkdir(exist_ok=True)
    (SNAPSHOTS / f"{API_VERSION}.txt").write_text(describe(), encoding="utf-8")
