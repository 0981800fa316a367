"""The REST API, by subject."""

from goodbot.testing.fakes.discord.rest import applications, channels, guilds, messages, responses
from goodbot.testing.fakes.discord.rest.routing import ROUTES, Answer, Call, Route

__all__ = ["ROUTES", "Answer", "Call", "Route", "applications", "channels", "guilds", "messages", "responses"]
