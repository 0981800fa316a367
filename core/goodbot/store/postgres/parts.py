# SPDX-License-Identifier: Apache-2.0
"""The two libraries of the extra `postgres`, loaded only where the store is on PostgreSQL."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from goodbot.base.errors import MissingExtraError
from goodbot.base.worded import Worded

EXTRA = "postgres"


def load(name: str) -> Any:
    """A module of psycopg's or of sqlglot's. Raises MissingExtraError."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(Worded("a store on PostgreSQL"), EXTRA) from None
