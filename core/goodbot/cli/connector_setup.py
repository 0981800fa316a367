# SPDX-License-Identifier: Apache-2.0
"""A connector's `ConnectorSetup`, made ready for use."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from goodbot.api.connector import ConnectorSpec
from goodbot.api.setup import ConnectorSetup
from goodbot.api.texts.terminal import phrase
from goodbot.config import Config
from goodbot.config.secrets import Secrets
from goodbot.daemon.http.http import Http


def setup_class(spec: ConnectorSpec) -> type[ConnectorSetup] | None:
    """The connector's `ConnectorSetup`, None if it has none."""
    if not spec.setup:
        return None
    module, _, name = spec.setup.partition(":")
    return getattr(import_module(module), name)


def prepared(made: type[ConnectorSetup], secrets: Secrets, settings: Any, config: Config) -> ConnectorSetup:
    """One that knows the state directory, and where the daemon is reached from this machine."""
    setup = made(secrets, settings)
    setup.home = config.home
    setup.address = Http(replace(config.http, url="")).address
    setup.socket = config.http.socket
    return setup


def changes_a_program(setup: type[ConnectorSetup]) -> bool:
    """Whether connecting it changes another program's settings."""
    return setup.install is not ConnectorSetup.install


def wrong_id(setup: type[ConnectorSetup] | None, value: str) -> str:
    """Why this can be nobody's user id, as a sentence; empty if it may be.

    Without its packages (None) a platform cannot say what its ids are like.
    """
    if not value or value.startswith("@") or len(value) > 64 or " " in value:
        return phrase("setup_no_name")
    return setup.wrong_user_id(value) if setup else ""
