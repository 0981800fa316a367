# SPDX-License-Identifier: Apache-2.0
"""docs/api.md says what the table says."""

from __future__ import annotations

import re
from pathlib import Path

from goodbot.conversation import under_way
from goodbot.daemon.http import server
from goodbot_connectors.api import handlers, schemas, table
from goodbot_connectors.api.proxy import waiters
from goodbot_connectors.web import api as web

TEXT = (Path(__file__).parents[3] / "docs" / "api.md").read_text()


def test_every_route_and_what_it_takes_is_told() -> None:
    for route in table.ROUTES:
        assert f"`{route.method} {route.path}`" in TEXT
    for schema in (schemas.MAIN, schemas.RATE, schemas.OUTCOME, schemas.COMMAND):
        for name in schema["properties"]:
            assert f"`{name}`" in TEXT or f'"{name}"' in TEXT, name


def test_every_command_that_may_be_passed_on_is_told() -> None:
    told = " ".join(TEXT.partition("`help`, `probe`, ")[2].partition("was made with `--admin`")[0].split())
    everybody, _, admins = ("`help`, `probe`, " + told).partition(" are for everybody; ")
    assert re.findall(r"`(\w+)`", everybody) == [*table.EVERYBODY]
    assert sorted(re.findall(r"`(\w+)`", admins)) == sorted(table.ADMIN), "the old words stand behind the new"


def test_its_limits_are_those_of_the_code() -> None:
    for told in (
        f"{server.WAITING} requests wait for an answer to begin",
        f"{under_way.MOST} questions and commands of one person",
        f"{handlers.AT_ONCE} requests of one client are answered at once, and {web.AT_ONCE} of one person's",
        f"{waiters.MOST} requests at most wait for the model at once, {waiters.EACH} of one client",
    ):
        assert told in TEXT
