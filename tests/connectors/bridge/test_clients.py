# SPDX-License-Identifier: Apache-2.0
"""Tokens of programs: shown once, kept as hashes, gone from the next request on."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from goodbot.base.errors import ConfigError, UsageError
from goodbot.testing.clock import VirtualClock
from goodbot_connectors.kit.bridge import clients
from goodbot_connectors.kit.bridge.clients import Clients


def kept(home: Path) -> Path:
    return home / "connectors" / "api" / "clients.json"


def known(home: Path) -> Clients:
    return Clients(home / "connectors" / "api")


def test_a_token_opens_for_its_client_alone(tmp_path: Path) -> None:
    mine, ci = (clients.create(tmp_path, "api", "me", admin=True), clients.create(tmp_path, "api", "ci"))
    assert mine != ci
    assert len(mine) == clients.LENGTH
    assert mine.startswith("gb_")
    api = known(tmp_path)
    found = api.who(mine)
    assert found is not None
    assert (found.name, found.admin, found.created > 1.7e9) == ("me", True, True)
    assert (found := api.who(ci)) is not None
    assert (found.name, found.admin) == ("ci", False)
    assert [one.name for one in clients.listed(tmp_path, "api")] == ["ci", "me"]


def test_the_file_is_its_owners_alone_and_holds_no_token(tmp_path: Path) -> None:
    token = clients.create(tmp_path, "api", "me")
    assert stat.S_IMODE(kept(tmp_path).stat().st_mode) == 0o600
    assert stat.S_IMODE(kept(tmp_path).parent.stat().st_mode) == 0o700
    text = kept(tmp_path).read_text()
    assert token not in text
    assert token[3:] not in text
    assert [path.name for path in kept(tmp_path).parent.iterdir()] == ["clients.json"]


@pytest.mark.parametrize(
    "token", ["", "gb_", "gb_" + "a" * 43, "x" * 46, "gb_" + "é" * 43, "gb_" + "a" * 4300]
)
def test_what_is_no_token_opens_nothing(token: str, tmp_path: Path) -> None:
    real = clients.create(tmp_path, "api", "me")
    api = known(tmp_path)
    assert api.who(token) is None
    assert api.who(real[:-1]) is None
    assert api.who(real + "a") is None
    assert api.who(real.swapcase()) is None
    assert api.who(real) is not None


def test_a_new_token_of_a_name_replaces_the_old_one_in_a_running_daemon(tmp_path: Path) -> None:
    api = known(tmp_path)
    assert api.who("gb_" + "a" * 43) is None, "there is no file yet"
    first = clients.create(tmp_path, "api", "me")
    assert api.who(first) is not None
    second = clients.create(tmp_path, "api", "me")
    assert api.who(first) is None
    assert api.who(second) is not None
    assert clients.remove(tmp_path, "api", "me")
    assert api.who(second) is None
    assert not clients.remove(tmp_path, "api", "me")
    assert clients.listed(tmp_path, "api") == []


def test_each_connector_has_clients_of_its_own(tmp_path: Path) -> None:
    token = clients.create(tmp_path, "codex", "me")
    assert known(tmp_path).who(token) is None
    assert Clients(tmp_path / "connectors" / "codex").who(token) is not None


@pytest.mark.parametrize("name", ["", "a b", "../x", "a/b", "a:b", "x" * 65, "é", "a\n"])
def test_a_name_that_cannot_be_one_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot name a client"):
        clients.create(tmp_path, "api", name)
    assert not kept(tmp_path).exists()


def test_a_file_that_is_broken_or_a_link_is_said(tmp_path: Path) -> None:
    clients.create(tmp_path, "api", "me")
    kept(tmp_path).write_text("{")
    with pytest.raises(ConfigError, match=r"clients\.json: is no list of clients: remove it"):
        clients.listed(tmp_path, "api")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(json.dumps({"clients": []}))
    kept(tmp_path).unlink()
    kept(tmp_path).symlink_to(elsewhere)
    with pytest.raises(ConfigError, match="cannot be read"):
        clients.create(tmp_path, "api", "me")
    assert json.loads(elsewhere.read_text()) == {"clients": []}


def test_ten_wrong_tokens_a_minute_are_looked_at(tmp_path: Path) -> None:
    clock = VirtualClock()
    api = Clients(tmp_path, clock)
    assert [api.wrong() for _ in range(10)] == [0.0] * 10
    assert 59 < api.wrong() <= 60
    clock.advance(59)
    assert 0 < api.wrong() <= 1
    clock.advance(2)
    assert [api.wrong() for _ in range(10)] == [0.0] * 10
    assert api.wrong() > 0
