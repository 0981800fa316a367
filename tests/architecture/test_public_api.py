# SPDX-License-Identifier: Apache-2.0
"""What a plugin relies on, as a snapshot that `API_VERSION` numbers.

When this fails you have changed the plugin API. If no released goodbot had the old one, write the
snapshot anew; else raise `API_VERSION` first::

    python -m tests.architecture.test_public_api
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import goodbot
import goodbot.inference.api
import goodbot_training.api
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
from goodbot.cli.plugin.command import KINDS, render

from tests.architecture.source import ROOT

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


STANDS_ON = (goodbot.inference.api, goodbot_training.api)
"""Code of ours that two kinds of plugins build on: the names stay where they are."""
PUBLIC = {one.__name__: set(one.__all__) for one in (goodbot, testing, *STANDS_ON)}


def describe() -> str:
    """The API as text: one line a name, a field, a method."""
    lines = [f"API_VERSION {API_VERSION}", "", "goodbot:"]
    lines += [f"  {name}" for name in sorted(goodbot.__all__)]
    for module in STANDS_ON:
        lines += ["", f"{module.__name__}:", *(f"  {name}" for name in sorted(module.__all__))]
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


def is_public(name: str) -> bool:
    """Whether an author may count on a name, given in full; a module of `goodbot.api` is one."""
    module, _, own = name.rpartition(".")
    if name in PUBLIC or own in PUBLIC.get(module, ()):
        return True
    if f"{name}.".startswith("goodbot.api."):
        return pkgutil.resolve_name(name) is not None
    return False


def imported(text: str) -> Iterator[str]:
    """Every name of ours that a plugin's module imports."""
    for node in ast.walk(ast.parse(text)):
        names = [one.name for one in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        at = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
        ours = [f"{at}{name}" for name in names]
        yield from (name for name in ours if name.partition(".")[0] in ("goodbot", "goodbot_training"))


def asked_for() -> Iterator[tuple[str, str]]:
    """Where an author is told to use a name of ours, and the name."""
    for kind in KINDS:
        for file, text in render(kind, "pigeon").items():
            if file.endswith(".py"):
                yield from ((f"{kind}: {file}", name) for name in imported(text))
    for page in ("plugins.md", "hooks.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.M | re.S)
        yield from ((page, name) for block in blocks for name in imported(block))
        yield from ((page, name) for name in re.findall(r"`(goodbot(?:_training)?(?:\.\w+)+)", text))


def test_an_author_is_told_to_use_public_names_only() -> None:
    asked = set(asked_for())
    for name in ("goodbot.inference.api.RemoteServer", "goodbot_training.api.Objective", "goodbot.proxy_url"):
        assert name in {one for _, one in asked}, "the scan has lost its subject"
    assert {(where, name) for where, name in asked if not is_public(name)} == set()


@pytest.mark.parametrize(
    "name", ["goodbot.base.clock.Clock", "goodbot.inference.servers.remote.RemoteServer", "goodbot.nothing"]
)
def test_what_is_ours_alone_is_seen(name: str) -> None:
    assert not is_public(name)
    assert [*imported(f"from {name.rpartition('.')[0]} import {name.rpartition('.')[2]}")] == [name]


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
