# SPDX-License-Identifier: Apache-2.0
"""The manifest asks for what the code needs, and for nothing else."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import ChannelKind, MessageEvent, RatingEvent, Reply
from goodbot.testing.connector_base import build, eventually
from goodbot.testing.host import RecordingHost
from goodbot_connectors.slack import SPEC, manifest, normalize
from goodbot_connectors.slack.config import SlackSettings
from goodbot_connectors.slack.methods import METHODS, READING
from goodbot_connectors.slack.presses import MODAL, SHORTCUT, SLASH
from goodbot_fakes.slack import EVENTS as DELIVERED
from goodbot_fakes.slack import SCOPES as KNOWN
from goodbot_fakes.slack import FakeSlack, app
from goodbot_fakes.slack.api import METHODS as OFFERED

from tests.connectors.slack.peer import SlackPeer
from tests.support import require

FOLDER = Path(manifest.__file__).parent
MADE = manifest.manifest(SlackSettings())


def called() -> set[str]:
    """The methods that the connector's code names when it calls Slack."""
    found: set[str] = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                first = node.args[0] if node.args else None
                if node.func.attr in ("call", "_call") and isinstance(first, ast.Constant):
                    found.add(first.value)
    return found


def test_every_method_that_is_called_is_covered_and_no_other() -> None:
    assert called() == set(METHODS)
    assert set(METHODS) >= READING


@pytest.mark.parametrize("method", METHODS)
def test_a_methods_scope_is_the_one_that_slack_wants(method: str) -> None:
    offered = OFFERED[method]
    if offered.app_token:
        assert (METHODS[method], offered.scopes) == ("", (manifest.APP_SCOPE,))
    else:
        histories = ("im:history", "channels:history", "groups:history", "mpim:history")
        by_kind = {  # of conversation; a person's chat is opened
            "conversations.open": ("im:write",),
            "conversations.history": histories,
            "conversations.replies": histories,
        }
        assert METHODS[method] in (offered.scopes or by_kind.get(method, ("",)))


def test_every_event_that_is_read_is_asked_for_with_its_scope() -> None:
    source = (FOLDER / "normalize.py").read_text(encoding="utf-8")
    compared = set(re.findall(r'"((?:app|message|reaction|assistant)[a-z_]*)"', source))
    listened = {name.partition(".")[0] for name in normalize.EVENTS}
    assert listened <= compared
    assert set(manifest.EVENT_SCOPES) == set(normalize.EVENTS)
    assert set(normalize.EVENTS) <= set(DELIVERED)
    for name, scope in manifest.EVENT_SCOPES.items():
        if name.startswith("message."):
            kind = {"channels": "channel", "groups": "group"}.get(name[8:], name[8:])
            assert scope == app.history_scope(kind)


def test_every_scope_is_needed_known_and_explained_in_a_line() -> None:
    scopes = manifest.scopes()
    assert list(scopes) == sorted(set(scopes))
    assert set(scopes) == set(manifest.WHY)
    assert set(scopes) <= set(KNOWN)
    assert all(0 < len(why) <= 90 and "\n" not in why for why in manifest.WHY.values())
    assert MADE["oauth_config"] == {"scopes": {"bot": list(scopes)}}


def test_features_are_those_of_the_code() -> None:
    features = MADE["features"]
    assert [one["command"] for one in features["slash_commands"]] == [SLASH]
    assert features["slash_commands"][0]["should_escape"] is True
    assert [(s["type"], s["callback_id"]) for s in features["shortcuts"]] == [("message", SHORTCUT)]
    assert features["app_home"]["home_tab_enabled"] is True
    assert features["agent_view"]["agent_description"]
    assert set(manifest.FEATURE_SCOPES) <= set(features)
    assert SHORTCUT != MODAL


def test_it_keeps_within_slacks_limits() -> None:
    assert len(MADE["display_information"]["name"]) <= 35
    assert len(MADE["display_information"]["description"]) <= 140
    for shortcut in MADE["features"]["shortcuts"]:
        assert len(shortcut["name"]) <= 24
        assert len(shortcut["description"]) <= 150
    for command in MADE["features"]["slash_commands"]:
        assert len(command["description"]) <= 2000
        assert len(command["usage_hint"]) <= 1000
    assert len(MADE["features"]["agent_view"]["agent_description"]) <= 300


def test_socket_mode_opens_nothing_and_http_mode_names_one_address() -> None:
    assert MADE["settings"]["socket_mode_enabled"] is True
    assert "request_url" not in str(MADE)
    url = "https://bot.example/slack/events"
    http = manifest.manifest(SlackSettings(mode="http"), url=url)
    assert http["settings"]["socket_mode_enabled"] is False
    addresses = [
        http["settings"]["event_subscriptions"]["request_url"],
        http["settings"]["interactivity"]["request_url"],
        http["features"]["slash_commands"][0]["url"],
    ]
    assert addresses == [url] * 3


@pytest.mark.parametrize("mode", ["socket", "http"])
def test_the_yaml_says_the_same(mode: str) -> None:
    yaml: Any = require("yaml")
    made = manifest.manifest(SlackSettings(mode=mode), name='a "good": bot #1')
    text = manifest.to_yaml(made)
    assert yaml.safe_load(text) == made
    for scope, why in manifest.WHY.items():
        assert f'- "{scope}"  # {why}\n' in text


async def test_an_app_of_this_manifest_can_do_its_work(tmp_path: Path) -> None:
    """With the scopes and events of the manifest alone, nothing is refused."""
    require("slack_sdk")
    async with FakeSlack() as slack:
        slack.app.scopes = set(manifest.scopes())
        slack.app.events = set(MADE["settings"]["event_subscriptions"]["bot_events"])
        peer = SlackPeer(slack)
        host = RecordingHost(SPEC, state_dir=tmp_path, environ=peer.environ)
        connector = build(SPEC, host, peer)
        await connector.start()
        for room in (ChannelKind.PRIVATE, ChannelKind.SHARED):
            await peer.say("hello", room=room, mention=room is ChannelKind.SHARED)
            asked = (await host.received(MessageEvent, 1 + (room is ChannelKind.SHARED)))[-1]
            stream = connector.stream(asked.channel, asked.message_id)
            await stream.append("An ans")
            [ref] = await stream.finish(Reply(text="An answer.", turn="abc"))
            await peer.react(ref, new=peer.good)

        async def both() -> bool:
            return len([e for e in host.events if isinstance(e, RatingEvent)]) == 2

        assert await eventually(both)
        await connector.private(asked.user.id)
        await connector.stop()
        await host.close()
        refused = [call.response for call in slack.calls if not call.response.get("ok")]
        assert refused == []
        assert host.failures == []
