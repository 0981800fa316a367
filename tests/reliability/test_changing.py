# SPDX-License-Identifier: Apache-2.0
"""Small files that several processes read, change and write again: none writes over another's change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from goodbot.base.errors import ConfigError
from goodbot.config.file import ConfigFile
from goodbot.config.secrets import SecretStore
from goodbot.inference.models import fetched
from goodbot_connectors.kit.bridge import clients

Change = Callable[[Path, str], object]
Known = Callable[[Path, Sequence[str]], Sequence[str]]


def download(home: Path, name: str) -> None:
    entry = fetched.Fetched(repo=name, commit="0" * 40, path=f"/cache/{name}", blobs=())
    fetched.record(home, entry)


def kept_secrets(home: Path, names: Sequence[str]) -> list[str]:
    store = SecretStore(home)
    return [name for name in names if store.where(name) == "file"]


@pytest.mark.parametrize(
    ("change", "known"),
    [
        (download, lambda home, _: [one.repo for one in fetched.entries(home)]),
        (lambda home, name: SecretStore(home).set(name, "value"), kept_secrets),
        (
            lambda home, name: clients.create(home, "api", name),
            lambda home, _: [one.name for one in clients.listed(home, "api")],
        ),
    ],
    ids=["what was downloaded", "tokens", "programs that may call"],
)
def test_what_several_change_at_once_loses_nothing(tmp_path: Path, change: Change, known: Known) -> None:
    """The lock is one of open files: threads here are to it what processes are."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    names = [f"NAME_{number}" for number in range(60)]
    with ThreadPoolExecutor(6) as several:
        assert len(list(several.map(lambda name: change(home, name), names))) == len(names)
    assert sorted(known(home, names)) == sorted(names)


def test_a_setting_that_somebody_else_has_changed_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    mine, theirs = ConfigFile(home), ConfigFile(home)
    theirs.set("training.min_ratings", 12)
    theirs.save()
    text = (home / "config.toml").read_text()
    mine.set("training.min_ratings", 50)
    with pytest.raises(ConfigError, match="was changed meanwhile"):
        mine.save()
    assert (home / "config.toml").read_text() == text
    theirs.set("training.min_ratings", 13)
    theirs.save()
    with pytest.raises(ConfigError, match="was changed meanwhile"):
        mine.restore(None)
    assert ConfigFile(home).get("training.min_ratings") == 13
    theirs.restore(text)
    assert (home / "config.toml").read_text() == text
