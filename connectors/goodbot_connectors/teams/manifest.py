# SPDX-License-Identifier: Apache-2.0
"""The app package: a manifest and two icons in a zip, made of what the code needs.

The fields are those of Microsoft's schema (npm @microsoft/app-manifest), to which a test holds it.
No resource-specific consent is asked for: with it Teams would send every message of a chat or team
where the app is, and all we need are those that mention us, which come anyway.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import goodbot
from goodbot.api.commands import Command, menu

from goodbot_connectors.teams import icons
from goodbot_connectors.teams.config import TeamsSettings

FILE = "goodbot-teams.zip"
VERSION = "1.22"
"""Of the manifest's schema."""
NO_APP = "00000000-0000-0000-0000-000000000000"
"""Stands for the app's id where there is none yet."""
WHY = {
    "personal": "people talk to it and rate it in a chat of their own",
    "groupChat": "answers in group chats where somebody mentions it",
    "team": "answers in channels where somebody mentions it, in the thread",
}
"""What goodbot does in each scope of the app."""
PERMISSIONS = {
    "identity": "tells people apart by the id that Teams gives it for each",
    "messageTeamMembers": "tells somebody in their own chat what nobody else shall see",
}
"""What the app asks of people, and why."""
COMMANDS = {"personal": menu("private"), "groupChat": menu("shared"), "team": menu("shared")}
"""What the app suggests to type, by scope; a choice is only put into the text."""
_COLOUR, _OUTLINE = "color.png", "outline.png"
_DATE = (2026, 1, 1, 0, 0, 0)
"""One for all files: the same settings make the same package."""
_PAGE = "https://example.com"
"""Teams wants three pages of the publisher; an app for one's own organisation needs none."""


def manifest(settings: TeamsSettings, *, name: str = "goodbot") -> dict[str, Any]:
    """The manifest as Teams has it. Whoever publishes the app puts their own pages into `developer`."""
    app_id = settings.app_id or NO_APP
    return {
        "$schema": "https://developer.microsoft.com/en-us/json-schemas/teams/"
        f"v{VERSION}/MicrosoftTeams.schema.json",
        "manifestVersion": VERSION,
        "version": goodbot.__version__,
        "id": app_id,
        "developer": {"name": name, "websiteUrl": _PAGE, "privacyUrl": _PAGE, "termsOfUseUrl": _PAGE},
        "name": {"short": name, "full": f"{name}, a bot that learns from its ratings"},
        "description": {
            "short": "Answers, and learns from 👍 and 👎, on your own machine",
            "full": "A bot with a language model of your own. It answers you here, and every 👍 and "
            "👎 on its answers trains it a little. What you write goes to your machine and back, and "
            "nowhere else. Type /rl help for what it can do.",
        },
        "icons": {"color": _COLOUR, "outline": _OUTLINE},
        "accentColor": icons.ACCENT,
        "bots": [
            {
                "botId": app_id,
                "scopes": list(WHY),
                "isNotificationOnly": False,
                "supportsFiles": False,
                "commandLists": [
                    {"scopes": [scope], "commands": [_command(one) for one in commands]}
                    for scope, commands in COMMANDS.items()
                ],
            }
        ],
        "defaultInstallScope": "personal",
        "permissions": list(PERMISSIONS),
        "validDomains": [],
    }


def package(settings: TeamsSettings) -> bytes:
    """The zip that is uploaded to Teams."""
    files = {
        "manifest.json": json.dumps(manifest(settings), indent=2, ensure_ascii=False).encode(),
        _COLOUR: icons.colour(),
        _OUTLINE: icons.outline(),
    }
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, _DATE), content)
    return made.getvalue()


def _command(command: Command) -> dict[str, str]:
    return {"title": f"/rl {command.name}", "description": command.label}
