# SPDX-License-Identifier: Apache-2.0
"""A model of gigabytes is downloaded only where a person says so."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from goodbot import config
from goodbot.api.plugins import PluginHost
from goodbot.cli.setup import model
from goodbot.cli.setup.dialogue import Dialogue
from goodbot.cli.setup.draft import Draft, StateFound
from goodbot.cli.setup.extras import MOST_UNASKED
from goodbot.config.file import ConfigFile
from goodbot.config.secrets import SecretStore
from goodbot.inference.models import choose, obtain
from goodbot.inference.models.obtain import Obtained

from tests.core.cli.setup.test_serving import proposal

NAME = "Qwen/Qwen3-4B"
GOT = Obtained(name=NAME, reference=f"{NAME}@abc", path=Path("/nowhere"))


def taken(
    home: Path, monkeypatch: pytest.MonkeyPatch, download: int, given: dict[str, str], *, asks: bool = False
) -> tuple[Draft, bool]:
    """What became of the step, and whether anything was downloaded."""
    fetched: list[str] = []

    def found(*_: object, **__: object) -> Any:
        return replace(proposal({}), download=download)

    def fetch(source: str, *_: object, **__: object) -> Obtained:
        fetched.append(source)
        return GOT

    monkeypatch.setattr(choose, "propose", found)
    monkeypatch.setattr(choose, "choose", found)
    monkeypatch.setattr(obtain, "obtain", fetch)
    plugins = PluginHost()
    plugins.load_entry_points(())
    place = StateFound(
        config=config.load(home, None),
        file=ConfigFile(home, None),
        plugins=plugins,
        secrets=SecretStore(home),
    )
    draft = Draft(backend="auto")
    model.ask_model(Dialogue(given, asks=asks, out=io.StringIO()), place, draft)
    return draft, bool(fetched)


@pytest.mark.parametrize("given", [{}, {"--model": "auto"}])
def test_the_best_that_fits_is_missing_with_the_words_that_bring_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    draft, fetched = taken(tmp_path, monkeypatch, 8_000_000_000, given)
    assert not fetched
    assert draft.model == ""
    assert draft.missing["model"] == (
        f"there is no model yet: {NAME} would be 8.0 GB to download, and so much is fetched only if you "
        f"name it: add --model {NAME}"
    )


@pytest.mark.parametrize(
    ("download", "given"), [(MOST_UNASKED, {}), (0, {"--model": "auto"}), (8_000_000_000, {"--model": NAME})]
)
def test_a_small_one_one_that_is_here_and_one_that_was_named_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, download: int, given: dict[str, str]
) -> None:
    draft, fetched = taken(tmp_path, monkeypatch, download, given)
    assert fetched
    assert (draft.model, draft.missing) == (GOT.reference, {})


def test_a_person_is_asked_whatever_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["", "y"])

    def typed(_: Dialogue, prompt: str) -> str:
        return next(answers)

    monkeypatch.setattr(Dialogue, "_line", typed)
    draft, fetched = taken(tmp_path, monkeypatch, 8_000_000_000, {}, asks=True)
    assert fetched
    assert draft.model == GOT.reference
