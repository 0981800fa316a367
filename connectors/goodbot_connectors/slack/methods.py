# SPDX-License-Identifier: Apache-2.0
"""The Web API methods that we call, and the scope of the bot token that each needs.

`Api.call` refuses any other method, and the manifest is made of this table.
"""

from __future__ import annotations

METHODS = {
    "apps.connections.open": "",  # an app-level token's, with connections:write
    "assistant.threads.setStatus": "chat:write",  # docs.slack.dev/changelog/2026/03/05
    "auth.test": "",
    "chat.appendStream": "chat:write",
    "chat.delete": "chat:write",
    "chat.postEphemeral": "chat:write",
    "chat.postMessage": "chat:write",
    "chat.startStream": "chat:write",
    "chat.stopStream": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "im:history",  # and those of channels, by what is read
    "conversations.open": "im:write",
    "conversations.replies": "im:history",
    "reactions.get": "reactions:read",
    "usergroups.list": "usergroups:read",
    "usergroups.users.list": "usergroups:read",
    "users.info": "users:read",
    "views.open": "",
    "views.publish": "",
}
"""Each method's scope; empty where any bot token will do."""
READING = {
    "auth.test",
    "conversations.history",
    "conversations.replies",
    "reactions.get",
    "usergroups.list",
    "usergroups.users.list",
    "users.info",
}
"""Methods that take no JSON body."""
