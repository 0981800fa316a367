# SPDX-License-Identifier: Apache-2.0
"""goodbot with the real OpenClaw: its gateway and Telegram channel, our plugin in it, our daemon beside."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.setup import CheckState
from goodbot.config.secrets import Secrets
from goodbot_connectors.openclaw.config import OpenClawSettings
from goodbot_connectors.openclaw.setup import OpenClawSetup

from tests.agents import programs
from tests.agents.openclaw_relay import Relay
from tests.agents.openclaw_world import Gateway, Model, Telegram, until
from tests.end_to_end.daemon import Daemon, running
from tests.support import free_port

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1800)]

ADA, BEN, EVE = 42, 43, 44
CONFIG = """
[http]
port = {port}

[connectors.openclaw]
owners = ["telegram:default:42"]
raters = ["telegram:default:43"]
program = "{program}"
state_dir = "{state}"
"""


class World:
    """All of it, running."""

    def __init__(
        self,
        telegram: Telegram,
        model: Model,
        gateway: Gateway,
        daemon: Daemon,
        relay: Relay,
        setup: OpenClawSetup,
    ) -> None:
        self.telegram, self.model, self.gateway = telegram, model, gateway
        self.daemon, self.relay, self.setup = daemon, relay, setup
        self.ada = telegram.person("Ada", id=ADA)
        self.ben = telegram.person("Ben", id=BEN)
        self.eve = telegram.person("Eve", id=EVE)

    def texts(self, person: Any, chat: Any = None) -> list[str]:
        return [message.json.get("text", "") for message in person.sees(chat)]

    async def answer(self, person: Any, text: str, *, chat: Any = None, **fields: Any) -> Any:
        """Say something, and wait for the next message of the bot there."""
        before = len(person.sees(chat))
        person.says(text, chat=chat, **fields)
        await until(lambda: len(person.sees(chat)) > before, 180, self.told)
        return person.sees(chat)[-1]

    def labels(self) -> list[tuple[str, str, float]]:
        """Who rated which answer how, as the store has it."""
        return [
            (str(answer), str(rater), float(value))
            for answer, rater, value in self.daemon.rows(
                "SELECT turns.response, labels.rater, labels.value FROM labels"
                " JOIN turns ON turns.id = labels.turn ORDER BY turns.created_at, labels.rater"
            )
        ]

    def told(self) -> str:
        return self.gateway.log.read_text()[-2500:] + self.daemon.log()[-2000:]


def program(folder: Path) -> Path:
    """An `openclaw` such as npm puts on PATH."""
    found = folder / "openclaw"
    command = " ".join(f"'{word}'" for word in programs.openclaw())
    found.write_text(f'#!/bin/sh\nPATH="{programs.path()}"; export PATH\nexec {command} "$@"\n')
    found.chmod(found.stat().st_mode | stat.S_IXUSR)
    return found


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    gateway = Gateway(tmp_path / "someone")
    openclaw = program(tmp_path)
    port = free_port()
    config = CONFIG.format(port=port, program=openclaw, state=gateway.state)
    daemon = Daemon(tmp_path / "goodbot", config, {})
    async with Telegram() as telegram, Model() as model, Relay(f"http://127.0.0.1:{port}") as relay:
        gateway.configure(
            telegram=telegram.api.removesuffix("/bot"),
            model=model.port,
            owners=[f"telegram:{ADA}", f"telegram:{EVE}"],
            users=[str(ADA), str(BEN), str(EVE)],
        )
        settings = OpenClawSettings(program=str(openclaw), state_dir=str(gateway.state), group_buttons=True)
        setup = OpenClawSetup(Secrets((), {}), settings)
        setup.home, setup.address = daemon.home, relay.url
        async with running(daemon):
            try:
                yield World(telegram, model, gateway, daemon, relay, setup)
            finally:
                await gateway.stop()


async def test_answers_are_rated_where_they_were_asked(world: World) -> None:
    """From a bare OpenClaw to rated answers and back again."""
    ada, ben, eve, gateway = world.ada, world.ben, world.eve, world.gateway
    before = (gateway.state / "openclaw.json").read_bytes()

    # connected by its own command; a second time changes nothing
    told = await world.setup.install(dry_run=False)
    assert any("plugins install --link" in line for line in told)
    assert await world.setup.install(dry_run=False) == ()
    assert stat.S_IMODE(world.setup.token_file.stat().st_mode) == 0o600
    assert "gb_" not in (gateway.state / "openclaw.json").read_text()

    await gateway.start()
    await until(lambda: 200 in world.relay.pings, 120, world.told)
    await until(lambda: bool(world.telegram.calls("getUpdates")), 120, world.told)

    # an answer with buttons on itself, captured with the trace that the model's server saw
    first = await world.answer(ada, "What is the capital of France?")
    assert first.json["text"] == "Answer 1."
    [row] = first.json["reply_markup"]["inline_keyboard"]
    assert [button["text"] for button in row] == ["👍 Good", "👎 Bad"]
    await until(lambda: len(world.relay.sent("capture")) == 1, 120, world.told)
    [captured] = world.relay.sent("capture")
    assert captured["trace"] == world.model.headers[0]["traceparent"].split("-")[1]
    assert captured["name"] == str(first.id)
    [(turn, talker, origin, model)] = world.daemon.rows("SELECT id, talker, origin, answered_by FROM turns")
    assert (talker, origin, model) == ("telegram:default:42", "captured", "local/fake-1")

    # pressed
    ada.presses_label(first.id, "👎 Bad")
    await until(
        lambda: world.labels() == [("Answer 1.", "openclaw:telegram:default:42", -1.0)], 60, world.told
    )
    await until(lambda: "👎 Bad ✓" in str(ada.sees()[0].json["reply_markup"]), 120, world.told)

    # another person in the same session: their own answer, their own rating
    second = await world.answer(ben, "And of Spain?")
    assert second.json["text"] == "Answer 2."
    await until(lambda: len(world.relay.sent("capture")) == 2, 120, world.told)
    assert "telegram:default:43" in str(world.daemon.rows("SELECT talker FROM turns WHERE id <> ?", turn))
    ben.reacts(second.id, "👍")
    await until(lambda: ("Answer 2.", "openclaw:telegram:default:43", 1.0) in world.labels(), 120, world.told)
    assert len(world.labels()) == 2

    # typed: of one's own answer, never of the one that came last in the session
    said = await world.answer(ada, "/rl good")
    assert "Answer 1." in said.json["text"]
    assert ("Answer 1.", "openclaw:telegram:default:42", 1.0) in world.labels()
    said = await world.answer(ada, "/rl undo")
    assert "Answer 1." in said.json["text"]
    assert [label[0] for label in world.labels()] == ["Answer 2."]
    said = await world.answer(eve, "/rl good")
    assert "do not know which answer" in said.json["text"]

    # an owner is one whom both know as one
    said = await world.answer(ada, "/rladmin train")
    assert "ratings are not enough to train on" in said.json["text"]
    said = await world.answer(ben, "/rladmin train")
    assert "operator.admin" in said.json["text"]
    said = await world.answer(eve, "/rladmin train")
    assert "goodbot does not let you" in said.json["text"]
    said = await world.answer(ada, "/rl train")
    assert "/rladmin train" in said.json["text"]
    assert world.daemon.rows("SELECT count(*) FROM runs") == [(0,)]

    # a group, once an owner has switched it on
    lab = world.telegram.group("The lab", [ada, ben, eve], admin=True)
    said = await world.answer(ada, "/rladmin enable", chat=lab)
    third = await world.answer(ben, "What now?", chat=lab, mention=True)
    await until(lambda: len(world.relay.sent("capture")) == 3, 120, world.told)
    eve.reacts(third.id, "👎", chat=lab)  # nobody has let her rate
    ada.reacts(third.id, "👎", chat=lab)
    await until(lambda: ("Answer 3.", "openclaw:telegram:default:42", -1.0) in world.labels(), 60, world.told)
    assert not any("44" in rater for _, rater, _ in world.labels())
    said = await world.answer(ben, "/rl good", chat=lab)
    assert said.json["text"] == "👌", "what one person thinks is nobody else's affair"
    assert ("Answer 3.", "openclaw:telegram:default:43", 1.0) in world.labels()

    # goodbot away: answers come all the same, one notice, and nothing is lost
    await world.daemon.end()
    fourth = await world.answer(ada, "And of Italy?")
    assert fourth.json["text"] == "Answer 4."
    ada.presses_label(fourth.id, "👍 Good")
    await until(lambda: sum("not running" in text for text in world.texts(ada)) == 1, 120, world.told)
    await world.daemon.start()
    await until(lambda: ("Answer 4.", "openclaw:telegram:default:42", 1.0) in world.labels(), 120, world.told)

    checks = await world.setup.examine()
    assert {check.state for check in checks} == {CheckState.OK}, checks

    if os.environ.get("GOODBOT_RECORD") == "1":
        world.relay.write(Path(__file__).parent.parent / "connectors" / "openclaw" / "recorded")

    # typed while the next answer is being written, or after one that never came: of none
    rated = world.labels()
    asked = len(world.model.requests)
    world.model.free.clear()
    ada.says("And of Portugal?")
    await until(lambda: len(world.model.requests) > asked, 180, world.told)
    said = await world.answer(ada, "/rl bad")
    assert "do not know which answer" in said.json["text"]
    assert world.labels() == rated
    world.model.free.set()
    await until(lambda: len(world.relay.sent("capture")) == 5, 180, world.told)
    said = await world.answer(ada, "/rl bad")
    assert "Answer 5." in said.json["text"]
    rated = world.labels()
    assert ("Answer 5.", "openclaw:telegram:default:42", -1.0) in rated
    world.model.broken = True
    failed = await world.answer(ada, "And of Malta?")
    assert "Answer" not in failed.json["text"]
    said = await world.answer(ada, "/rl good")
    assert "do not know which answer" in said.json["text"]
    assert world.labels() == rated

    # taken out again
    await gateway.stop()
    assert await world.setup.remove(dry_run=False)
    left = (gateway.state / "openclaw.json").read_bytes()
    if left != before:  # the gateway has written its own version into it meanwhile
        assert "goodbot" not in left.decode()
        kept = json.loads(left)
        kept.pop("meta", None)
        assert kept == json.loads(before)
    assert not world.setup.token_file.exists()


async def test_the_command_line_connects_it_through_the_socket(tmp_path: Path) -> None:
    """`goodbot connect` and `disconnect` as a person types them; the port is closed to the plugin."""
    gateway = Gateway(tmp_path / "someone")
    config = CONFIG.format(port=free_port(), program=program(tmp_path), state=gateway.state)
    daemon = Daemon(tmp_path / "goodbot", config, {})
    async with Telegram() as telegram, Model() as model:
        gateway.configure(
            telegram=telegram.api.removesuffix("/bot"),
            model=model.port,
            owners=[f"telegram:{ADA}"],
            users=[str(ADA)],
        )
        before = json.loads((gateway.state / "openclaw.json").read_text())
        await daemon.cli("connect", "openclaw", "--yes", "--model", "demo", "--start", "no")
        connected = json.loads((gateway.state / "openclaw.json").read_text())
        told = connected["plugins"]["entries"]["goodbot"]["config"]
        status, said = await gateway.run(
            "config", "set", "plugins.entries.goodbot.config.url", f"http://127.0.0.1:{free_port()}"
        )
        assert status == 0, said
        ada = telegram.person("Ada", id=ADA)
        async with running(daemon):
            assert stat.S_ISSOCK(Path(told["socket"]).stat().st_mode)
            await gateway.start()
            try:
                await until(lambda: bool(telegram.calls("getUpdates")), 120)
                ada.says("What is the capital of France?")
                await until(lambda: bool(ada.sees()), 180, gateway.log.read_text)
                ada.presses_label(ada.sees()[-1].id, "👍 Good")
                labels = "SELECT rater, value FROM labels"
                rated = [("openclaw:telegram:default:42", 1.0)]
                await until(lambda: daemon.rows(labels) == rated, 120, daemon.log)
            finally:
                await gateway.stop()
        await daemon.cli("disconnect", "openclaw", "--yes")
        after = json.loads((gateway.state / "openclaw.json").read_text())
        after.pop("meta", None)
        # What `config set` has put there meanwhile is OpenClaw's own: the empty room stays.
        assert after.pop("plugins", {"entries": {}}) == {"entries": {}}
        assert after == before
