"""Contracts and fakes for plugin authors. Imports pytest; the host never imports this."""

import pytest

pytest.register_assert_rewrite("goodbot.testing.backend")
pytest.register_assert_rewrite(
    "goodbot.testing.connector",
    "goodbot.testing.connector_base",
    "goodbot.testing.connector_events",
    "goodbot.testing.connector_ratings",
    "goodbot.testing.connector_replies",
)
