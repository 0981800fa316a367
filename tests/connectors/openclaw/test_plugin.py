# SPDX-License-Identifier: Apache-2.0
"""The compiled plugin, run by node with what the real gateway has called it with."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.events import CaptureEvent, CommandEvent, RatingEvent
from goodbot_connectors.openclaw.setup import PLUGIN

from tests.agents.programs import node
from tests.connectors.openclaw import build
from tests.connectors.openclaw.conftest import Plugin
from tests.connectors.openclaw.test_events import valid
from tests.support import patience

HERE = Path(__file__).parent
RECORDED: dict[str, Any] = json.loads((HERE / "recorded" / "gateway.json").read_text())
STEPS: list[list[Any]] = RECORDED["steps"]
CONFIG = {"url": "http://127.0.0.1:8321", "token": "gb_of-this-test"}
STUBS = {
    "entry.js": "export const definePluginEntry = (entry) => entry;",
    "events.js": "export const peekSystemEventEntries = (session) =>"
    " globalThis.openclawNotes.filter((note) => note.session === session);",
    "package.json": json.dumps(
        {
            "name": "openclaw",
            "type": "module",
            "exports": {
                "./plugin-sdk/plugin-entry": "./entry.js",
                "./plugin-sdk/system-event-runtime": "./events.js",
            },
        }
    ),
}


class Played:
    """What came of it."""

    def __init__(self, out: dict[str, Any]) -> None:
        self.posts: list[dict[str, Any]] = out["posts"]
        self.results: list[Any] = out["results"]
        self.log: list[str] = out["log"]
        self.told: list[Any] = out["told"]
        self.commands: list[dict[str, Any]] = out["commands"]
        self.events: list[dict[str, Any]] = [e for post in self.posts for e in post["events"]]

    def of(self, type_: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == type_]


def play(folder: Path, steps: list[list[Any]], *, config: dict[str, Any] = CONFIG, **more: Any) -> Played:
    """Run the steps in a fresh plugin."""
    if not (folder / "plugin").exists():
        shutil.copytree(PLUGIN, folder / "plugin")
        stub = folder / "node_modules" / "openclaw"
        stub.mkdir(parents=True)
        for name, text in STUBS.items():
            (stub / name).write_text(text)
    given = {"plugin": str(folder / "plugin"), "config": config, "steps": steps, **more}
    done = subprocess.run(
        [str(node()), str(HERE / "replay.mjs")],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Played(json.loads(done.stdout))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    steps = [["start"], *STEPS, ["wait", 1300]]
    return play(tmp_path_factory.mktemp("plugin"), steps, notes=RECORDED["notes"])


def at(kind: str, name: str, number: int = 0) -> int:
    """The position of a recorded step."""
    return [n for n, step in enumerate(STEPS) if step[:2] == [kind, name]][number]


def test_the_compiled_plugin_is_of_these_sources() -> None:
    """Else: python -m tests.connectors.openclaw.build."""
    note = json.loads(build.NOTE.read_text())
    assert note == {"sources": build.sources(), "compiled": build.compiled(PLUGIN / "dist")}


def test_it_brings_nothing_along_and_starts_nothing() -> None:
    manifest = json.loads((PLUGIN / "package.json").read_text())
    assert not [name for name in manifest if name.endswith("ependencies")]
    code = "".join(path.read_text() for path in (PLUGIN / "src").glob("*.ts"))
    for banned in ("child_process", "process.env", "require(", "eval(", "execSync"):
        assert banned not in code
    plugin = json.loads((PLUGIN / "openclaw.plugin.json").read_text())
    assert plugin["activation"] == {"onStartup": True}
    assert plugin["uiHints"]["token"]["sensitive"] is True
    versions = {manifest["version"], plugin["version"]}
    assert len(versions) == 1
    assert f'VERSION = "{versions.pop()}"' in code


class TestARecordedDay:
    def test_each_answer_is_captured_once_and_exactly(self, played: Played) -> None:
        found = [(e["chat"], e["sender"], e["name"], e["answer"], e["group"]) for e in played.of("capture")]
        assert found == [
            ("42", "42", "2", "Answer 1.", False),
            ("43", "43", "11", "Answer 2.", False),
            ("-1001700000001", "42", "2", "Answer 3.", True),
        ]
        outputs = [step for step in STEPS if step[:2] == ["hook", "llm_output"]]
        assert [e["trace"] for e in played.of("capture")] == [s[3]["trace"]["traceId"] for s in outputs]
        assert [e["id"] for e in played.of("capture")] == [f"capture:{s[2]['runId']}" for s in outputs]
        assert played.log == []

    def test_the_question_is_what_the_person_wrote(self, played: Played) -> None:
        assert played.of("capture")[0]["messages"] == [{"role": "user", "content": "hello there"}]

    def test_buttons_are_on_the_answer_itself(self, played: Played) -> None:
        payload = played.results[1 + at("hook", "reply_payload_sending")]["payload"]
        assert payload["text"] == "Answer 1."
        [block] = payload["presentation"]["blocks"]
        values = [button["action"]["value"] for button in block["buttons"]]
        assert values == ["goodbot:g:c77171251db346d083c7", "goodbot:b:c77171251db346d083c7"]
        assert max(map(len, values)) <= 40

    def test_a_press_before_the_send_was_confirmed_is_of_that_answer(self, played: Played) -> None:
        """Telegram was so quick that the press came before `message_sent`."""
        assert at("press", "telegram") < at("hook", "message_sent")
        [rating] = played.of("rating")
        assert (rating["name"], rating["value"], rating["sender"]) == ("2", -1, "42")
        types = [event["type"] for event in played.events]
        assert types.index("capture") < types.index("rating")

    def test_a_command_is_of_ones_own_answer(self, played: Played) -> None:
        good, _, bad = played.of("command")
        assert (good["words"], good["name"], good["sender"]) == ("good", "2", "42")
        assert (bad["words"], bad["name"]) == ("bad", "2"), "though Ben's answer came last"

    def test_an_owner_is_marked_as_openclaw_says(self, played: Played) -> None:
        _, train, _ = played.of("command")
        assert (train["admin"], train["owner"]) == (True, True)
        [scopes] = [one["requiredScopes"] for one in played.commands if one["name"] == "rladmin"]
        assert scopes == ["operator.admin"]
        assert all(one["requireAuth"] for one in played.commands)

    def test_reactions_are_read_from_the_notes_once(self, played: Played) -> None:
        found = [(e["chat"], e["name"], e["sender"], e["emoji"], e["added"]) for e in played.of("reaction")]
        assert found == [("42", "3", "42", "👍", True), ("-1001700000001", "2", "43", "👎", True)]


def test_which_answer_is_asked_back_unless_it_is_named(tmp_path: Path) -> None:
    said = STEPS[at("command", "rl")][2]
    asked = [said | {"args": args} for args in ("good", "Bad", "stars 4", "better So.", "good 5f0c", "why")]
    out = play(tmp_path, [["command", "rl", one] for one in asked])
    assert ["do not know which" in result["text"] for result in out.results] == [True] * 4 + [False] * 2
    assert [event["words"] for event in out.of("command")] == ["good 5f0c", "why"]


GOOD = STEPS[at("command", "rl")]
ANSWERED = STEPS[: at("hook", "message_sent") + 1]
"""Ada has asked, and has her answer: message 2."""
SECOND: list[list[Any]] = json.loads(
    json.dumps([step for step in ANSWERED if step[0] == "hook"])
    .replace("c7717125-1db3", "d8828236-2ec4")
    .replace("Answer 1.", "Answer 9.")
    .replace('"messageId": "2"', '"messageId": "20"')
)
"""The same once more, of a second run: message 20."""
RECEIVED, BEGUN, ENDED, OUTPUT, SENDING, SENT = SECOND


def changed(step: list[Any], **event: Any) -> list[Any]:
    return [*step[:2], step[2] | event, *step[3:]]


class TestTypedAfterANewerQuestion:
    """`/rl good` is never of the answer before."""

    @pytest.mark.parametrize(
        "newer",
        [
            pytest.param([RECEIVED], id="not begun yet"),
            pytest.param([BEGUN], id="under way"),
            pytest.param([BEGUN, changed(ENDED, success=False)], id="failed"),
            pytest.param([changed(ENDED, success=False)], id="failed before it asked the model"),
            pytest.param([BEGUN, ENDED, OUTPUT], id="not sent"),
            pytest.param([*SECOND[:-1], changed(SENT, success=False)], id="could not be sent"),
            pytest.param([*SECOND[:-1], changed(SENT, content="Answer")], id="sent in other words"),
        ],
    )
    def test_it_is_asked_back(self, tmp_path: Path, newer: list[list[Any]]) -> None:
        out = play(tmp_path, [*ANSWERED, GOOD, *newer, GOOD])
        assert "do not know which" in out.results[-1]["text"]
        assert [event["name"] for event in out.of("command")] == ["2"], "as long as it was the last"

    def test_until_its_own_answer_is_there(self, tmp_path: Path) -> None:
        out = play(tmp_path, [*ANSWERED, *SECOND, GOOD])
        assert [event["name"] for event in out.of("command")] == ["20"]

    def test_or_its_button_was_pressed(self, tmp_path: Path) -> None:
        press = STEPS[at("press", "telegram")]
        callback = press[2]["callback"] | {"messageId": 20, "payload": "g:d88282362ec446d083c7"}
        own = ["press", "telegram", press[2] | {"callback": callback}]
        out = play(tmp_path, [*ANSWERED, *SECOND[:-1], own, GOOD])
        assert [event["name"] for event in out.of("command")] == ["20"]

    def test_it_may_be_part_of_the_run_that_is_under_way(self, tmp_path: Path) -> None:
        """OpenClaw steers what is written meanwhile into it: one run, one answer."""
        out = play(tmp_path, [*ANSWERED[:2], RECEIVED, *ANSWERED[2:], GOOD])
        assert [event["name"] for event in out.of("command")] == ["2"]

    def test_an_older_answer_that_goes_out_late_is_not_it(self, tmp_path: Path) -> None:
        """Before the newer one it is passed over; after it either could be meant."""
        first, sent = STEPS[: at("press", "telegram")], ANSWERED[-1]
        out = play(tmp_path, [*first, BEGUN, sent, GOOD, *SECOND[2:], GOOD])
        assert "do not know which" in out.results[len(first) + 2]["text"]
        assert [event["name"] for event in out.of("command")] == ["20"]
        out = play(tmp_path, [*first, *SECOND, sent, GOOD])
        assert [event["name"] for event in out.of("capture")] == ["20", "2"]
        assert "do not know which" in out.results[-1]["text"]

    @pytest.mark.parametrize(
        "other",
        [
            pytest.param({'"senderId": "42"': '"senderId": "43"'}, id="somebody else in that chat"),
            pytest.param({'"senderId": "42"': '"senderId": ""'}, id="nobody: a subagent"),
            pytest.param({'"trigger": "user"': '"trigger": "cron"'}, id="nobody: a schedule"),
            pytest.param({'"accountId": "default"': '"accountId": "b"'}, id="by another bot"),
        ],
    )
    def test_what_others_ask_changes_nothing(self, tmp_path: Path, other: dict[str, str]) -> None:
        text = json.dumps(SECOND if "cron" not in str(other) else SECOND[1:])
        for old, new in other.items():
            assert old in text
            text = text.replace(old, new)
        out = play(tmp_path, [*ANSWERED, *json.loads(text), GOOD])
        assert [event["name"] for event in out.of("command")] == ["2"]

    def test_a_command_is_no_question(self, tmp_path: Path) -> None:
        """Some channels tell of `/rl good` itself as of any message."""
        out = play(tmp_path, [*ANSWERED, changed(RECEIVED, content="/rl good"), GOOD])
        assert [event["name"] for event in out.of("command")] == ["2"]

    def test_what_was_said_while_it_was_stopped_is_not_known(self, tmp_path: Path) -> None:
        out = play(tmp_path, [["start"], *ANSWERED, ["stop"], ["start"], GOOD])
        assert "do not know which" in out.results[-1]["text"]


def test_two_answers_with_the_same_words_on_their_way_are_not_told_apart(tmp_path: Path) -> None:
    """By their messages, that is: the buttons name each exactly."""
    first = STEPS[: at("press", "telegram")]
    again = json.loads(json.dumps(first).replace("c7717125-1db3", "d8828236-2ec4"))
    again = [step for step in again if step[1] != "message_received"]
    sent = STEPS[at("hook", "message_sent")]
    other = [*sent[:2], sent[2] | {"messageId": "77"}, *sent[3:]]
    assert "messageId" in sent[2]
    out = play(tmp_path, [*first, *again, sent, other, ["wait", 20]])
    assert out.of("capture") == [], "neither the first message nor the second"
    press = STEPS[at("press", "telegram")]
    out = play(tmp_path, [*first, *again, press, ["wait", 20]])
    assert [event["id"][:16] for event in out.of("capture")] == ["capture:c7717125"]


def test_while_goodbot_is_away_one_notice_and_nothing_lost(tmp_path: Path) -> None:
    end = at("hook", "message_sent") + 1
    press = STEPS[at("press", "telegram")]
    again = ["press", "telegram", press[2] | {"callbackId": "another"}]
    out = play(tmp_path, [*STEPS[:end], again, ["up"], ["wait", 1500]], down=True)
    assert out.results[at("hook", "reply_payload_sending")]["payload"]["presentation"]
    assert len([said for said in out.told if "not running" in said.get("text", "")]) == 1
    assert [event["type"] for event in out.events] == ["capture", "rating", "rating"]
    assert len([line for line in out.log if "does not answer" in line]) == 1
    command = STEPS[at("command", "rl")]
    out = play(tmp_path, [*STEPS[:end], command, ["up"], ["wait", 1500]], down=True)
    assert "goodbot run" in out.results[-3]["text"]
    assert out.of("command") == [], "nobody wants an old command to be done later"


def test_runs_that_nobody_in_a_chat_set_off_are_left_alone(tmp_path: Path) -> None:
    steps = json.loads(json.dumps(STEPS[: at("press", "telegram")]).replace('"user"', '"heartbeat"'))
    out = play(tmp_path, [*steps, STEPS[at("hook", "message_sent")]])
    assert out.events == []
    assert out.results[at("hook", "reply_payload_sending")] is None


@pytest.mark.parametrize(("url", "told"), [("http://example.org", "on this machine"), ("x", "no address")])
def test_without_an_address_it_can_trust_it_does_nothing(tmp_path: Path, url: str, told: str) -> None:
    out = play(tmp_path, [], config={"url": url, "token": "t"})
    assert told in out.log[0]
    assert out.commands == []


def test_a_token_in_a_file_that_others_can_read_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("gb_secret\n")
    config = {"url": CONFIG["url"], "tokenFile": str(file)}
    steps = STEPS[: at("hook", "message_sent") + 1]
    file.chmod(0o644)
    out = play(tmp_path, steps, config=config)
    assert out.posts == []
    assert "chmod 600" in out.log[0]
    file.chmod(0o600)
    out = play(tmp_path, steps, config=config)
    assert out.posts[0]["authorization"] == "Bearer gb_secret"


def test_keys_of_notes_are_read_from_the_right(tmp_path: Path) -> None:
    given = [
        "telegram:reaction:add:-100:7:42:👍",
        "discord:reaction:removed:11:22:name:33:burst",
        "slack:reaction:T1:added:C1:17.5:U1:+1::skin-tone-2:Ev1",
        "slack:reaction:removed:C1:17.5:U1:tada:Ev2",
        "msteams:reaction:19:abc@thread.tacv2:1700000000001:29:xyz:like:added",
        "telegram:reaction:add:7",
        "telegram:message:1",
        "",
    ]
    play(tmp_path, [])
    code = (
        f"import {{ parse }} from {json.dumps((tmp_path / 'plugin/dist/reactions.js').as_uri())};"
        f"console.log(JSON.stringify({json.dumps(given)}.map((key) => parse(key) ?? null)));"
    )
    done = subprocess.run(
        [str(node()), "--input-type=module", "-e", code],
        capture_output=True,
        text=True,
        timeout=patience(60),
        check=True,
    )
    fields = ("added", "chat", "message", "sender", "emoji")
    found = [one and tuple(one[name] for name in fields) for one in json.loads(done.stdout)]
    assert found == [
        (True, "-100", "7", "42", "👍"),
        (False, "", "11", "22", "name:33"),
        (True, "C1", "17.5", "U1", "+1::skin-tone-2"),
        (False, "C1", "17.5", "U1", "tada"),
        (True, "19:abc@thread.tacv2", "1700000000001", "29:xyz", "like"),
        None,
        None,
        None,
    ]


async def test_the_recorded_day_as_goodbot_takes_it(played: Played, plugin: Plugin) -> None:
    """From the gateway's own payloads to events of the core, through both halves."""
    for post in played.posts:
        if post["events"]:
            status, body = await plugin.post(*post["events"])
            assert status == 200, body
            assert all(valid(event) for event in post["events"])
    captures = [one for one in plugin.host.events if isinstance(one, CaptureEvent)]
    assert [(one.user.id, one.channel.id, one.message_id) for one in captures] == [
        ("telegram:default:42", "telegram:default:42", "2"),
        ("telegram:default:43", "telegram:default:43", "11"),
        ("telegram:default:42", "telegram:default:-1001700000001", "2"),
    ]
    assert captures[1].messages[-1] == {"role": "user", "content": "and me?"}
    ratings = [one for one in plugin.host.events if isinstance(one, RatingEvent)]
    assert [(one.user.id, one.channel.id, one.message_id, one.value) for one in ratings] == [
        ("telegram:default:42", "telegram:default:42", "2", -1.0),
        ("telegram:default:42", "telegram:default:42", "3", 1.0),
        ("telegram:default:43", "telegram:default:-1001700000001", "2", -1.0),
    ]
    commands = [one for one in plugin.host.events if isinstance(one, CommandEvent)]
    assert [(one.name, one.reply_to) for one in commands] == [("good", "2"), ("train", ""), ("bad", "2")]
