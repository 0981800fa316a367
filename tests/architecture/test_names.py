# SPDX-License-Identifier: Apache-2.0
"""One public class name for one thing.

A name stands twice only where the same role is played on several platforms, backends or fakes,
and there once in each.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict

from tests.architecture.source import modules

ROLES = {
    # of a connector, on each platform
    "Api": "the platform's calls, whose failures are ours",
    "RefusedError": "the platform said no",
    "BotIdentity": "our own account there",
    "Intake": "stores what the platform tells",
    "Normalizer": "makes events of it",
    "Cursor": "how far it is stored",
    "CatchUp": "reads what was missed",
    "MessageText": "what somebody wrote",
    "AnswerRef": "which answer a button or a form is about",
    "Feedback": "tells people what became of their ratings and commands",
    "Session": "one conversation of a coding agent",
    "Sessions": "all of them",
    # of a fake, or of a platform and its fake
    "ApiCall": "one call of the API and its answer",
    "Channel": "where messages stand",
    "Faults": "what goes wrong on demand",
    "Gateway": "Discord's, and the fake of it",
    "Interactions": "Discord's, and the fake of them",
    "Message": "one message, as it stands there",
    "Outbox": "what is on its way to the app",
    "Pace": "how long the platform waits",
    "Person": "somebody at their client",
    "User": "a person or a bot",
    "Webhook": "Telegram's, and the fake of it",
    "World": "all that the platform remembers",
    # of a training backend
    "Head": "hidden states to logits",
    "LoraProjection": "a matrix with LoRA beside it",
}
PICTURES = {
    # a picture of the thing: what the field calls it
    "Flights": "InFlight",
    "Chores": "BackgroundTasks",
    "Pulse": "Heartbeat",
    "Witness": "HealthMonitor",
    "Gauge": "LoadMonitor",
    "Tries": "Attempts",
    "GoingLive": "Publisher",
    "ForeignFile": "SettingsFile",
    "Shelf": "ConversationCache",
}
ROOTS = ("goodbot_connectors.", "goodbot_fakes.", "goodbot_training.backends.")


def _place(module: str) -> str:
    """The platform, fake or backend that a module belongs to; empty elsewhere."""
    for root in ROOTS:
        if module.startswith(root):
            return root + module.removeprefix(root).partition(".")[0]
    return ""


def _homes() -> dict[str, list[str]]:
    """Every public class of a module, with the modules that define it."""
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module.name)
    assert len(found) > 500, "the scan has lost its subject"
    return found


def test_no_public_class_name_means_two_things() -> None:
    twice = {name: where for name, where in _homes().items() if len(where) > 1 and name not in ROLES}
    assert twice == {}, "one of them needs another name; a role is listed above"


def test_a_role_is_played_once_on_each_of_several_platforms() -> None:
    homes = _homes()
    for role in ROLES:
        places = Counter(_place(module) for module in homes[role])
        assert len(places) > 1, f"{role} is no role any more: strike it out"
        assert "" not in places, f"{role} stands outside of the platforms: {homes[role]}"
        assert set(places.values()) == {1}, f"{role} stands twice on one platform: {homes[role]}"


def test_a_class_has_the_name_of_the_field() -> None:
    assert {name: PICTURES[name] for name in _homes() if name in PICTURES} == {}
