# SPDX-License-Identifier: Apache-2.0
"""`goodbot connect`, `manifest` and `disconnect`, as a person and as a script meet them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Bot, need_backend, until
from tests.cli.screens import CTRL_C, CTRL_D, Screen
from tests.cli.setting_up import Far, call, configured, far_side, listing, tokens
from tests.connectors.telegram.peer import SECRET, serve
from tests.support import require

slack_bolt = require("slack_bolt")
from goodbot_connectors.slack import manifest as made  # noqa: E402
from goodbot_fakes.slack import FakeSlack  # noqa: E402

BOT, APP = "GOODBOT_SLACK_BOT_TOKEN", "GOODBOT_SLACK_APP_TOKEN"
PLATFORMS = "api, claude_code, codex, discord, openclaw, slack, teams, telegram, web"
CONFIG = '[connectors.slack]\napi_base = "{url}"\n'
WITH_MODEL = '# my bot\n[model]\npath = "demo"\n\n' + CONFIG


@pytest.fixture
def far() -> Iterator[Far[FakeSlack]]:
    with far_side(FakeSlack) as far:
        yield far


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home directory, with nothing of goodbot's in it."""
    home = tmp_path / "ada"
    home.mkdir()
    return home


def test_a_bot_that_is_set_up_comes_to_slack(home: Path, far: Far[FakeSlack]) -> None:
    file = configured(home, WITH_MODEL.format(url=far.there.api_url))
    with Screen("connect", "slack", home=home) as ada:
        ada.sees("connects the bot that is set up here to Slack", "Step 1 of 3")
        shown = ada.sees("This link has all that Slack asks for filled in", "?new_app=1&manifest_json=")
        assert "socket_mode_enabled: true" not in shown, "62 lines of YAML are in the way"
        ada.shoot("connect-slack")
        ada.answer("Bot token (xoxb-…) (not shown", far.there.app.app_token)
        ada.sees("That is the other token")
        ada.answer("Bot token (xoxb-…) (not shown", far.there.app.bot_token)
        ada.answer("App-level token (xapp-…) (not shown", far.there.app.app_token)
        ada.sees("It belongs to @goodbot in")
        ada.answer("keep it?")
        ada.answer("Step 2 of 3: Who is its owner?")
        ada.answer("Step 3 of 3: Ready", "no")
        shown = ada.sees("Rate good answers too")
        assert ada.ends() == 0
        assert far.there.app.bot_token not in ada.raw
        assert far.there.app.app_token not in ada.raw
    assert re.search(r"Send [A-Z0-9]{4}-[A-Z0-9]{4} to @goodbot in", shown)
    set_up = tomllib.loads(file.read_text())
    assert set_up["connectors"]["slack"]["owners"] == []
    assert set(set_up) == {"model", "connectors"}, "nothing else was touched"
    assert file.read_text().startswith("# my bot\n")
    kept = {f"{BOT}={far.there.app.bot_token}", f"{APP}={far.there.app.app_token}"}
    assert kept < set(tokens(home).splitlines())
    manifest = home / ".goodbot" / "connectors" / "slack" / "slack-manifest.yaml"
    assert manifest.read_text() == call(home, "manifest", "slack").stdout


def test_who_has_no_bot_yet_is_asked_for_the_rest_too(home: Path, far: Far[FakeSlack]) -> None:
    file = configured(home, CONFIG.format(url=far.there.api_url))
    backend = need_backend()
    flags = ("--backend", backend, "--model", "demo", "--preset", "careful", "--schedule", "auto")
    with Screen("connect", "slack", *flags, "--start", "no", home=home) as ada:
        ada.sees("Step 1 of 7")
        ada.answer("Bot token (xoxb-…) (not", "")
        ada.sees("Nothing was typed")
        ada.answer("Bot token (xoxb-…) (not", far.there.app.bot_token)
        ada.answer("App-level token", far.there.app.app_token)
        ada.answer("keep it?")
        ada.answer("Step 6 of 7", "2")
        ada.answer("Your user id", "U0ADA")
        ada.sees("Written to")
        assert ada.ends() == 0
    set_up = tomllib.loads(file.read_text())
    assert set_up["model"]["path"] == "demo"
    assert set_up["connectors"]["slack"]["owners"] == ["U0ADA"]


def test_from_nothing_to_an_answer(home: Path, far: Far[FakeSlack]) -> None:
    need_backend()
    configured(home, CONFIG.format(url=far.there.api_url))

    def told() -> str:
        found = far.there.workspace.in_channel(far.there.people.direct("ada").id)
        mine = [m for m in found if m.user == far.there.app.user.id]
        return "\n".join(m.text + json.dumps(m.blocks) for m in mine)

    flags = ("--backend", "auto", "--model", "demo", "--preset", "balanced", "--schedule", "auto")
    with Screen("connect", "slack", *flags, "--start", "now", home=home) as ada:
        ada.answer("Bot token (xoxb-…) (not", far.there.app.bot_token)
        ada.answer("App-level token (xapp-…) (not", far.there.app.app_token)
        ada.answer("keep it?")
        ada.answer("Step 6 of 7")
        shown = ada.sees("Ctrl-C stops", seconds=90)
        [code] = re.findall(r"Send ([A-Z0-9]{4}-[A-Z0-9]{4}) to", shown)
        far.do(lambda slack: slack.people.say("ada", code))
        ada.until(lambda: "You are my owner now" in told())
        far.do(lambda slack: slack.people.say("ada", "What is 2 + 2?"))
        ada.until(lambda: "[demo model]" in told())
        ada.type(CTRL_C)
        assert ada.ends() == 0


@pytest.mark.parametrize("question", range(4))
def test_leaving_at_any_question_leaves_nothing(question: int, home: Path, far: Far[FakeSlack]) -> None:
    configured(home, WITH_MODEL.format(url=far.there.api_url))
    before = listing(home)
    answers = [
        ("Bot token", far.there.app.bot_token),
        ("App-level token", far.there.app.app_token),
        ("keep it?", ""),
        ("Step 2 of 3", ""),
    ]
    with Screen("connect", "slack", home=home) as ada:
        for asked, answer in answers[:question]:
            ada.answer(asked, answer)
        ada.sees(answers[question][0])
        ada.type((CTRL_C, "q\r", CTRL_D)[question % 3])
        ada.sees("Left. Nothing was written.")
        assert ada.ends() == 130
    assert listing(home) == before


def test_back_shows_the_manifest_again_and_asks_for_the_tokens_again(home: Path, far: Far[FakeSlack]) -> None:
    configured(home, WITH_MODEL.format(url=far.there.api_url))
    with Screen("connect", "slack", home=home) as ada:
        ada.answer("Bot token (xoxb-…) (not", "b")
        ada.answer("This is the first question")
        ada.answer("Bot token (xoxb-…) (not", far.there.app.bot_token)
        ada.answer("App-level token (xapp-…) (not", "b")
        ada.sees("Step 1 of 3", "manifest_json=")
        ada.answer("Bot token (xoxb-…) (not", far.there.app.bot_token)
        ada.answer("App-level token (xapp-…) (not", far.there.app.app_token)
        ada.answer("keep it?")
        ada.answer("Step 2 of 3", "b")
        ada.sees("Step 1 of 3")
        ada.type(CTRL_C)
        ada.sees("Nothing was written")
        assert ada.ends() == 130
    assert tokens(home) == ""


def test_a_missing_scope_is_said_with_its_reason_and_looked_at_again(home: Path, far: Far[FakeSlack]) -> None:
    configured(home, WITH_MODEL.format(url=far.there.api_url))
    far.do(lambda slack: slack.app.scopes.discard("reactions:read"))
    with Screen("connect", "slack", "--owner", "U0ADA", "--start", "no", home=home) as ada:
        ada.answer("Bot token (xoxb-…) (not", far.there.app.bot_token)
        ada.answer("App-level token (xapp-…) (not", far.there.app.app_token)
        ada.sees(f"Missing: reactions:read: {made.WHY['reactions:read']}", "goodbot manifest slack")
        far.do(lambda slack: slack.app.scopes.add("reactions:read"))
        ada.answer("Try again")
        ada.answer("keep it?")
        ada.sees("Written to")
        assert ada.ends() == 0


def test_a_script_answers_with_flags(home: Path, far: Far[FakeSlack]) -> None:
    file = configured(home, WITH_MODEL.format(url=far.there.api_url))
    both = f"{far.there.app.bot_token}\n{far.there.app.app_token}\n"
    flags = ("--yes", "--json", "--token-stdin", "--keep-token", "file", "--owner", "U0ADA")
    done = call(home, "connect", "slack", *flags, input=both)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["platform"], told["owners"], told["missing"]) == ("slack", ["U0ADA"], [])
    assert tomllib.loads(file.read_text())["connectors"]["slack"]["owners"] == ["U0ADA"]
    assert not (home / ".goodbot" / "connectors").exists(), "nobody was asked to paste a manifest"

    gone = call(home, "disconnect", "slack", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert "connectors" not in tomllib.loads(file.read_text())
    assert tokens(home) == ""
    assert "is not connected" in call(home, "disconnect", "slack", "--yes").stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("connect", "pigeon"), f"no platform 'pigeon' can be set up; there are: {PLATFORMS}"),
        (("connect", "telgram"), "no platform 'telgram' can be set up; did you mean 'telegram'?"),
        (("connect", "terminal"), "is set up by hand: write [connectors.terminal] into config.toml"),
        (("connect", "slack"), "connect asks questions and this is no terminal"),
        (("connect", "slack", "--yes"), f"give --token-stdin, or set {BOT}"),
        (("connect", "slack", "--yes", "--token", "xoxb-1"), "it was not copied whole"),
        (("connect", "slack", "--yes", "--token", "xoxb-" + "1" * 40), f"--token-stdin, or set {APP}"),
        (
            ("manifest", "pigeon"),
            f"no connector is named 'pigeon'; there are: {PLATFORMS.replace(', web', '')}",
        ),
        (("manifest", "telegram"), "takes no manifest: `goodbot connect telegram` sets it up"),
        (("disconnect", "telegram"), "is not connected; there are: none"),
    ],
)
def test_words_that_are_off_are_a_sentence(words: tuple[str, ...], sentence: str, home: Path) -> None:
    done = call(home, *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert listing(home) == {}


def test_a_platform_is_connected_while_goodbot_runs(home: Path, far: Far[FakeSlack]) -> None:
    """Which knows it only after a restart; the code is good then."""
    need_backend()
    file = configured(home, '[model]\npath = "demo"\n')
    bot = Bot(home / ".goodbot")
    both = f"{far.there.app.bot_token}\n{far.there.app.app_token}\n"

    def told() -> str:
        found = far.there.workspace.in_channel(far.there.people.direct("ada").id)
        mine = [m for m in found if m.user == far.there.app.user.id]
        return "\n".join(m.text + json.dumps(m.blocks) for m in mine)

    bot.start()
    try:
        file.write_text(WITH_MODEL.format(url=far.there.api_url))
        flags = ("--yes", "--token-stdin", "--keep-token", "file", "--start", "no")
        done = call(home, "connect", "slack", *flags, input=both)
        assert done.returncode == 0, done.stderr
        assert re.search(r"Restart goodbot, then send [A-Z0-9]{4}-[A-Z0-9]{4} to", done.stdout)
        assert "Next: restart the goodbot that runs as process" in done.stdout
        code, _, word = call(home, "pair", "slack").stdout.partition("\n")
        assert "Restart goodbot, then send this" in word
        assert call(home, "pair", "telegram").returncode == 2, "nobody has set that up"
        bot.stop()
        bot.start()
        far.do(lambda slack: slack.people.say("ada", code))
        until(lambda: "You are my owner now" in told(), 20)
    finally:
        bot.stop()


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (("--model", "demo"), "--model: the bot is set up already"),
        (("--preset", "bold", "--schedule", "auto"), "--preset, --schedule: the bot is set up"),
        (("--token-stdin", "--owner", "alice"), "a user id on Slack is like U0123ABCDEF"),
    ],
)
def test_a_flag_that_would_do_nothing_or_harm_is_refused(
    flags: tuple[str, ...], sentence: str, home: Path, far: Far[FakeSlack]
) -> None:
    configured(home, WITH_MODEL.format(url=far.there.api_url))
    before = listing(home)
    both = f"{far.there.app.bot_token}\n{far.there.app.app_token}\n"
    done = call(home, "connect", "slack", "--yes", *flags, input=both)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert listing(home) == before


def test_the_manifest_is_what_the_code_needs(home: Path) -> None:
    yaml = require("yaml")
    text = call(home, "manifest", "slack").stdout
    found = yaml.safe_load(text)
    assert found["oauth_config"]["scopes"]["bot"] == list(made.scopes())
    told = json.loads(call(home, "manifest", "slack", "--json").stdout)
    assert told["text"] == text
    assert {one["name"] for one in told["permissions"]} == set(made.scopes())
    assert all(one["why"] for one in told["permissions"])


def test_a_bot_comes_to_telegram_and_leaves_it(home: Path) -> None:
    require("telegram")
    with serve() as (port, _):
        text = f'[model]\npath = "demo"\n[connectors.telegram]\napi_base = "http://127.0.0.1:{port}/bot"\n'
        file = configured(home, text)
        with Screen("connect", "telegram", home=home) as ada:
            ada.sees("Step 1 of 3", "BotFather")
            ada.answer("Token (not shown", SECRET)
            ada.sees("It belongs to @the_good_bot")
            ada.answer("keep it?")
            ada.answer("Step 2 of 3")
            ada.answer("Step 3 of 3", "no")
            shown = ada.sees("to @the_good_bot (https://t.me/the_good_bot)", "press Start")
            [code] = re.findall(r"Send ([A-Z0-9]{4}-[A-Z0-9]{4}) to", shown)
            ada.sees(f"https://t.me/the_good_bot?start={code}")
            assert ada.ends() == 0
        assert "GOODBOT_TELEGRAM_TOKEN" in tokens(home)
        with Screen("disconnect", "telegram", home=home) as ada:
            ada.answer("Leave telegram?", "n")
            assert ada.ends() == 1
        assert "telegram" in file.read_text()
        done = call(home, "disconnect", "telegram", "--yes")
        assert done.returncode == 0, done.stderr
        assert "telegram" not in file.read_text()
        assert tokens(home) == ""
