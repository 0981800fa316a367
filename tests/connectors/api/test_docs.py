# SPDX-License-Identifier: Apache-2.0
"""docs/api.md says what the table says."""

from __future__ import annotations

from pathlib import Path

from goodbot_connectors.api import schemas, table

TEXT = (Path(__file__).parents[3] / "docs" / "api.md").read_text()


def test_every_route_and_what_it_takes_is_told() -> None:
    for route in table.ROUTES:
        assert f"`{route.method} {route.path}`" in TEXT
    for schema in (schemas.MAIN, schemas.RATE, schemas.OUTCOME, schemas.COMMAND):
        for name in schema["properties"]:
            assert f"`{name}`" in TEXT or f'"{name}"' in TEXT, name


def test_every_command_that_may_be_passed_on_is_told() -> None:
    for names in (table.EVERYBODY, table.ADMIN):
        told = ", ".join(f"`{name}`" for name in names[:-1]) + f" and `{names[-1]}`"
        assert told in " ".join(TEXT.split()), told
