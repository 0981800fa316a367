# SPDX-License-Identifier: Apache-2.0
"""The REST API, by subject."""

from goodbot_fakes.discord.rest import applications, channels, guilds, messages, responses
from goodbot_fakes.discord.rest.routing import ROUTES, Answer, ApiCall, RestRoute

__all__ = [
    "ROUTES",
    "Answer",
    "ApiCall",
    "RestRoute",
    "applications",
    "channels",
    "guilds",
    "messages",
    "responses",
]
