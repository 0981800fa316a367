# SPDX-License-Identifier: Apache-2.0
"""`goodbot init` as a person at a terminal meets it, and as a script does."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import stat
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import goodbot_training
import pytest
from goodbot import config
from goodbot.api.texts import say
from goodbot.inference.models import catalogue

from tests.cli.program import PROGRAM, Bot, need_backend
from tests.cli.screens import CTRL_C, CTRL_D, Screen
from tests.cli.setting_up import call as goodbot
from tests.cli.setting_up import configured, listing
from tests.connectors.telegram.peer import SECRET, serve
from tests.core.cli.service.manager import FakeManager
from tests.core.inference.models.fake_hub import FakeHub
from tests.support import require

TOKEN = "GOODBOT_TELEGRAM_TOKEN"
MATTERS = say("setup_matters")


@pytest.fixture(scope="module")
def telegram() -> Iterator[int]:
    """The port of a local Telegram."""
    require("telegram")
    with serve() as (port, _):
        yield port


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A person's home directory, with nothing of goodbot's in it."""
    home = tmp_path / "ada"
    home.mkdir()
    return home


def on_telegram(home: Path, port: int) -> Path:
    return configured(home, f'[connectors.telegram]\napi_base = "http://127.0.0.1:{port}/bot"\n')


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeManager:
    """A systemd of the person's own."""
    monkeypatch.setattr("sys.platform", "linux")
    return FakeManager(tmp_path, monkeypatch, ("systemctl", "loginctl"))


MODEL = str(Path(goodbot_training.__file__).parent / "tiny" / "model")


def call(home: Path, *words: str, **more: str) -> Any:
    """`goodbot init WORDS` without a terminal, to its end."""
    return goodbot(home, "init", *words, **more)


def walk(ada: Screen, upto: int = 99, **given: str) -> None:
    """Answer the steps before step `upto` of a first set-up on Telegram."""
    answers = {
        "platform": ("Step 1 of 8", ""),
        "token": ("while you type", SECRET),
        "keep": ("keep it?", ""),
        "backend": ("Step 3 of 8", ""),
        "model": ("Step 4 of 8", "demo"),
        "preset": ("Step 5 of 8", ""),
        "schedule": ("Step 6 of 8", ""),
        "owner": ("Step 7 of 8", ""),
        "start": ("Step 8 of 8", "no"),
    }
    for name, (question, answer) in list(answers.items())[:upto]:
        ada.sees(question)
        if name != "token":
            ada.sees("Your choice [")
        ada.type(given.get(name, answer) + "\r")


def test_a_bot_on_telegram_from_nothing_to_a_code(home: Path, telegram: int) -> None:
    file = on_telegram(home, telegram)
    with Screen("init", home=home) as ada:
        walk(ada)
        code = re.search(r"Send (\S+) to @the_good_bot \(https://t.me/the_good_bot\)", ada.sees(MATTERS))
        assert ada.ends() == 0
        assert SECRET not in ada.raw, "what is hidden stays hidden"
        assert SECRET[8:] not in ada.raw
    assert code is not None
    assert len(code[1]) == 9
    set_up = tomllib.loads(file.read_text())
    assert set_up["model"]["path"] == "demo"
    assert set_up["training"] == {"backend": "auto", "schedule": "auto", "settings": {"preset": "balanced"}}
    assert set_up["connectors"]["telegram"]["owners"] == []
    kept = home / ".goodbot" / "secrets.env"
    assert f"{TOKEN}={SECRET}\n" in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_new_config_says_what_else_can_be_set(home: Path) -> None:
    done = call(home, "--yes", "--platform", "terminal", "--model", "demo")
    assert done.returncode == 0, done.stderr
    text = (home / ".goodbot" / "config.toml").read_text()
    for line in text.splitlines():
        if "=" in line:
            assert "#" in line.partition("=")[2], f"what is that? {line}"
    for name in ("max_tokens", "system_prompt", "min_ratings", "unrated_days"):
        assert f"# {name} = " in text
    uncommented = re.sub(r"^# (?=\w+ = )", "", text, flags=re.M)
    assert config.parse(uncommented, home=home) == dataclasses.replace(
        config.parse(text, home=home), source=uncommented
    ), "what is commented out is the default"


def test_wrong_answers_are_asked_again(home: Path, telegram: int) -> None:
    on_telegram(home, telegram)
    with Screen("init", home=home) as ada:
        ada.answer("Step 1 of 8", "11")
        ada.answer("Type a number from 1 to 10, b to go back, q to leave", "morse code")
        ada.answer("Type a number from 1 to 10")
        for wrong, sentence in (
            ("", "The token is empty"),
            ("good morning", "spaces in it"),
            ("hello", "That is no token"),
            (SECRET[:20], "It was not copied whole"),
            (SECRET[:-4] + "9999", "Telegram does not know the token"),
        ):
            ada.answer("while you type", wrong)  # the prompt drops what was typed before it
            ada.sees(sentence)
        ada.answer("while you type", SECRET)
        ada.answer("keep it?")
        ada.answer("Step 3 of 8", "cuda")
        ada.answer("Type a number from 1 to 3")
        ada.answer("Step 4 of 8", "/no/such/directory")
        ada.answer("is no directory, no name in the hub", str(home))
        ada.answer("is no model directory: it has no config.json", "99")
        ada.answer("or the name of a model", MODEL)
        ada.answer("Step 5 of 8", "bold")
        ada.answer("Type a number from 1 to 4")
        ada.answer("Step 6 of 8", "25:00")
        ada.answer("Type 1, 3 or a time such as 03:30", "2")
        ada.answer("Type the time itself, for example 03:30", "3:30 at night")
        ada.answer("Type 1, 3 or a time such as 03:30", "03:30")
        ada.answer("Step 7 of 8", "2")
        ada.answer("Your user id", "@ada")
        ada.answer("An id is needed, not a name", "1001")
        ada.answer("Step 8 of 8", "no")
        ada.sees("Written to")
        assert ada.ends() == 0
    set_up = tomllib.loads((home / ".goodbot" / "config.toml").read_text())
    assert set_up["training"]["schedule"] == "03:30"
    assert set_up["model"]["path"] == MODEL
    assert set_up["connectors"]["telegram"]["owners"] == [1001]


def test_back_works_at_every_step_and_answers_are_remembered(home: Path, telegram: int) -> None:
    file = on_telegram(home, telegram)
    backend = need_backend()
    with Screen("init", home=home) as ada:
        walk(ada, 8, backend=backend, preset="3", schedule="manual")
        for step in (8, 7, 6, 5, 4, 3):
            ada.answer(f"Step {step} of 8", "b")
        ada.answer("while you type", SECRET)
        ada.answer("keep it?", "b")  # to the first question of this step
        ada.answer("while you type", "b")
        ada.answer("Step 1 of 8", "b")
        ada.answer("This is the first question")
        ada.answer("while you type", SECRET)
        ada.answer("keep it?")
        for step in (3, 4, 5, 6, 7):
            ada.answer(f"Step {step} of 8")
        ada.answer("aggressive, manual", "no")
        ada.sees("Written to")
        assert ada.ends() == 0
    set_up = tomllib.loads(file.read_text())
    assert set_up["training"]["backend"] == backend
    assert set_up["training"]["settings"] == {"preset": "aggressive"}
    assert set_up["training"]["schedule"] == "manual"


def test_ctrl_c_leaves_though_the_parent_ignores_it(home: Path) -> None:
    """As under `nohup … &` in a script; the shell of this test hands it down."""
    command = ["sh", "-c", f"trap '' INT; exec {shlex.join(PROGRAM)} init"]
    with Screen(command=command, home=home) as ada:
        ada.sees("Step 1 of")
        ada.type(CTRL_C)
        assert ada.ends() == 130
    assert listing(home) == {}


@pytest.mark.parametrize("step", range(9))
def test_leaving_at_any_question_leaves_nothing(step: int, home: Path, telegram: int) -> None:
    way = (CTRL_C, CTRL_D, "q\r")[step % 3]
    on_telegram(home, telegram)
    before = listing(home)
    with Screen("init", home=home) as ada:
        walk(ada, step)
        ada.sees("while you type" if step == 1 else "Your choice [")
        ada.type(way)
        ada.sees("Left. Nothing was written.")
        assert ada.ends() == 130
    assert listing(home) == before


def test_leaving_makes_no_directory(home: Path) -> None:
    with Screen("init", home=home) as ada:
        ada.answer("Step 1 of 8", "terminal")
        ada.answer("Step 2 of 6")
        ada.sees("Step 3 of 6")
        ada.type(CTRL_C)
        assert ada.ends() == 130
    assert listing(home) == {}


OWN = """\
# my bot
[connectors.telegram]
owners = [1001]        # that is me
api_base = "http://127.0.0.1:{port}/bot"

[training]
schedule = "03:30"     # at night, for the neighbours
min_ratings = 20

# do not touch
[training.settings]
kl = 0.7               # found by trying
"""


def test_running_it_again_shows_how_it_is_and_keeps_every_comment(home: Path, telegram: int) -> None:
    file = configured(home, OWN.format(port=telegram))
    (file.parent / "secrets.env").write_text(f"{TOKEN}={SECRET}\n")
    (file.parent / "secrets.env").chmod(0o600)
    with Screen("init", home=home) as ada:
        ada.sees("goodbot is set up here")
        ada.answer("set up already")
        ada.answer("It belongs to @the_good_bot", "")
        ada.answer("Step 3 of 8")
        ada.answer("Step 4 of 8", "demo")
        ada.answer("the values in [training.settings] stay")
        ada.sees("as soon as there are 20 new ratings")
        ada.answer("Your choice [03:30]", "04:15")
        ada.answer("As it is: 1001")
        ada.answer("Step 8 of 8", "no")
        ada.sees("Written to")
        assert ada.ends() == 0
    text = file.read_text()
    for line in OWN.format(port=telegram).splitlines():
        assert line.replace("03:30", "04:15") in text
    assert 'path = "demo"' in text


def test_running_it_again_with_enter_alone_changes_nothing(home: Path, telegram: int) -> None:
    on_telegram(home, telegram)
    with Screen("init", home=home) as ada:
        walk(ada, preset="1", owner="2\r1001")
        assert ada.ends() == 0
    before = listing(home)
    with Screen("init", home=home) as ada:
        for step in range(1, 8):
            ada.answer(f"Step {step} of 8")
        ada.answer("Step 8 of 8", "no")
        assert ada.ends() == 0
    assert listing(home) == before


def test_a_platform_that_cannot_be_reached(home: Path, unused_tcp_port: int) -> None:
    on_telegram(home, unused_tcp_port)
    with Screen("init", home=home) as ada:
        ada.answer("Step 1 of 8")
        ada.answer("while you type", SECRET)
        ada.answer("Telegram cannot be reached")
        ada.answer("Telegram cannot be reached", "3")
        ada.answer("keep it?")
        for step in range(3, 8):
            ada.answer(f"Step {step} of 8", "demo" if step == 4 else "")
        ada.sees("Missing: the token was not checked; `goodbot doctor` does it later")
        ada.answer("Your choice", "3")
        ada.sees("to your bot", "Missing: the token was not checked", "goodbot doctor")
        assert ada.ends() == 1
    assert SECRET in (home / ".goodbot" / "secrets.env").read_text()


def test_without_colour_and_within_eighty_columns(home: Path, telegram: int) -> None:
    on_telegram(home, telegram)
    for surroundings in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        with Screen("init", home=home, **surroundings) as ada:
            walk(ada, 8)
            ada.sees("Step 8 of 8")
            ada.type(CTRL_C)
            assert ada.ends() == 130
            assert "\x1b" not in ada.raw
            own = [line for line in ada.raw.splitlines() if "/" not in line]
            assert max(map(len, own)) < 80


def test_own_values_can_be_chosen_before_there_are_any(home: Path) -> None:
    done = call(
        home,
        "--json",
        "--yes",
        "--platform",
        "terminal",
        "--model",
        "demo",
        "--preset",
        "custom",
        "--start",
        "no",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["preset"] == "custom"
    config = tomllib.loads((home / ".goodbot" / "config.toml").read_text())
    assert config["training"]["settings"] == {"preset": "custom"}


def test_everything_as_flags(home: Path, telegram: int) -> None:
    file = on_telegram(home, telegram)
    backend = need_backend()
    done = call(
        home,
        "--json",
        "--yes",
        "--platform",
        "telegram",
        "--token-stdin",
        "--keep-token",
        "file",
        "--backend",
        backend,
        "--model",
        MODEL,
        "--preset",
        "aggressive",
        "--schedule",
        "03:30",
        "--owner",
        "1001",
        "--start",
        "no",
        input=f"{SECRET}\n",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "ok": True,
        "pairing_link": "",
        "config": str(file),
        "platform": "telegram",
        "bot": "@the_good_bot",
        "link": "https://t.me/the_good_bot",
        "token": "file",
        "backend": backend,
        "model": MODEL,
        "preset": "aggressive",
        "schedule": "03:30",
        "owners": ["1001"],
        "pairing_code": "",
        "start": "no",
        "missing": [],
        "changed": [],
        "next": "goodbot run",
    }
    assert SECRET not in done.stdout + done.stderr + file.read_text()
    assert SECRET in (home / ".goodbot" / "secrets.env").read_text()


def test_yes_takes_the_defaults_and_makes_a_code(home: Path, telegram: int) -> None:
    on_telegram(home, telegram)
    done = call(home, "--yes", "--json", "--model", "demo", GOODBOT_TELEGRAM_TOKEN=SECRET)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["token"] == "environment"
    assert re.fullmatch(r"[A-Z0-9]{4}-[A-Z0-9]{4}", result["pairing_code"])
    assert not (home / ".goodbot" / "secrets.env").exists()


def test_a_token_in_a_flag_is_taken_with_a_warning(home: Path, telegram: int) -> None:
    on_telegram(home, telegram)
    done = call(home, "--yes", "--model", "demo", "--token", SECRET)
    assert done.returncode == 0, done.stderr
    assert "--token-stdin is better" in done.stderr
    dash = call(home, "--yes", "--model", "demo", "--token", "-", input=SECRET)
    assert (dash.returncode, dash.stderr) == (0, "")


@pytest.mark.parametrize(("platform", "status"), [("terminal", 0), ("telegram", 2)])
def test_the_order_of_flags_says_nothing(platform: str, status: int, tmp_path: Path) -> None:
    flags = (("--yes",), ("--platform", platform), ("--model", "demo"), ("--preset", "careful"))
    found: set[tuple[str, ...]] = set()
    for number, order in enumerate((flags, flags[::-1])):
        home = tmp_path / str(number)
        home.mkdir()
        done = call(home, *(word for one in order for word in one))
        assert done.returncode == status, done.stderr
        assert (status == 0) or "a token is needed" in done.stderr
        config = home / ".goodbot/config.toml"
        found.add((done.stdout, done.stderr, config.read_text() if config.exists() else ""))
    assert len(found) == 1


def test_flags_and_questions_mix(home: Path, telegram: int) -> None:
    on_telegram(home, telegram)
    flags = ("--platform", "telegram", "--model", "demo", "--schedule", "often", "--start", "no")
    with Screen("init", *flags, home=home) as ada:
        ada.answer("while you type", "b")
        ada.sees("This is the first question")
        ada.answer("while you type", SECRET)
        ada.answer("keep it?")
        ada.answer("Step 3 of 8")
        ada.answer("Step 5 of 8")
        ada.answer("--schedule: type 1, 3 or a time", "3")
        ada.answer("Step 7 of 8")
        ada.sees("Written to")
        assert ada.ends() == 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ((), "give --yes, and the answers as flags (--token-stdin, --keep-token"),
        (("--yes", "--model", "demo"), "--token-stdin, or set GOODBOT_TELEGRAM_TOKEN"),
        (("--yes", "--token", "hello"), "that is no token"),
        (("--yes", "--token", SECRET[:-4] + "9999"), "does not know the token"),
        (("--yes", "--token-stdin"), "no token came on standard input"),
        (("--yes", "--platform", "pigeon"), "--platform pigeon: it can be telegram, discord, slack"),
        (("--yes", "--token", SECRET, "--preset", "bold"), "it can be careful, balanced, aggr"),
        (("--yes", "--token", SECRET, "--schedule", "25:00"), 'auto, manual or a time such as "03'),
        (("--yes", "--token", SECRET, "--backend", "tpu"), "it can be auto, mlx, torch"),
        (("--yes", "--token", SECRET, "--model", "/no/such"), "is no directory, no name in the hub"),
        (("--yes", "--token", SECRET, "--owner", "@ada"), "an id is needed, not a name"),
        (("--yes", "--token", SECRET, "--owner", "alice"), "a user id on Telegram is a number"),
        (("--yes", "--token", SECRET, "--keep-token", "keyring"), "no keyring that goodbot can"),
    ],
)
def test_flags_that_are_off_are_a_sentence_and_write_nothing(
    flags: tuple[str, ...], sentence: str, home: Path, telegram: int
) -> None:
    on_telegram(home, telegram)
    before = listing(home)
    if "--model" not in flags:
        flags = (*flags, "--model", "demo")
    done = call(home, *flags, PYTHON_KEYRING_BACKEND="keyring.backends.null.Keyring")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert listing(home) == before


def test_tokens_that_cannot_be_kept_leave_the_config_as_it_was(home: Path, telegram: int) -> None:
    file = on_telegram(home, telegram)
    (file.parent / "secrets.env.new").mkdir()
    before = listing(home)
    done = call(home, "--yes", "--model", "demo", "--token-stdin", input=SECRET)
    assert done.returncode == 1
    assert "secrets.env.new" in done.stderr
    assert listing(home) == before


KEYRING = '''
import json, os, pathlib
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    """A session's keyring, as far as goodbot can tell."""

    priority = 5
    file = pathlib.Path(os.environ["HOME"], "keyring.json")

    def _all(self):
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def get_password(self, service, username):
        return self._all().get(username)

    def set_password(self, service, username, password):
        self.file.write_text(json.dumps({**self._all(), username: password}))

    def delete_password(self, service, username):
        self.file.write_text(json.dumps({k: v for k, v in self._all().items() if k != username}))
'''


def test_a_keyring_keeps_the_token_where_there_is_one(home: Path, tmp_path: Path, telegram: int) -> None:
    require("keyring")
    (tmp_path / "session_keyring.py").write_text(KEYRING)
    session = {"PYTHONPATH": str(tmp_path), "PYTHON_KEYRING_BACKEND": "session_keyring.Keyring"}
    file = on_telegram(home, telegram)
    with Screen("init", home=home, **session) as ada:
        walk(ada, keep="keyring")
        ada.sees("Written to")
        assert ada.ends() == 0
    assert SECRET in (home / "keyring.json").read_text()
    assert not (file.parent / "secrets.env").exists()
    moved = ("--yes", "--json", "--keep-token", "file", "--token-stdin")
    again = call(home, *moved, input=SECRET, **session)
    assert json.loads(again.stdout)["token"] == "file"
    assert SECRET in (file.parent / "secrets.env").read_text()


@pytest.fixture
def hub(home: Path) -> Iterator[tuple[Any, dict[str, str]]]:
    """A hub with the tiny model, and the environment of a person whose hub it is."""
    require("huggingface_hub")
    with FakeHub(models={"acme/tiny-chat": Path(MODEL)}) as hub:
        yield hub, {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"), "HF_TOKEN": ""}


def test_a_model_from_the_hub_is_shown_agreed_to_and_downloaded(
    home: Path, hub: tuple[Any, dict[str, str]]
) -> None:
    fake, surroundings = hub
    with Screen("init", "--platform", "terminal", home=home, **surroundings) as ada:
        ada.answer("Step 2 of 6")
        ada.answer("Step 3 of 6", "acme/tiny-chat")
        ada.answer("now? [Y/n]", "n")
        assert fake.bytes_of("model.safetensors") == 0
        ada.answer("Or type a name in the hub", "acme/tiny-chta")
        ada.answer("Your choice", "acme/tiny-chat")
        ada.answer("Download 2")
        ada.answer("Step 4 of 6")
        ada.answer("Step 5 of 6")
        ada.answer("model acme/tiny-chat@", "no")
        assert ada.ends() == 0
    set_up = tomllib.loads((home / ".goodbot" / "config.toml").read_text())
    assert set_up["model"]["path"] == f"acme/tiny-chat@{fake.commit('acme/tiny-chat')}"


def test_ctrl_c_while_a_model_is_downloaded(home: Path, hub: tuple[Any, dict[str, str]]) -> None:
    fake, surroundings = hub
    fake.delay = 0.5
    with Screen("init", "--platform", "terminal", home=home, **surroundings) as ada:
        ada.answer("Step 2 of 6")
        ada.answer("Step 3 of 6", "acme/tiny-chat")
        ada.answer("Download 2")
        ada.until(lambda: any("model.safetensors" in path for path in fake.asked))
        ada.type(CTRL_C)
        ada.sees("What was downloaded stays", "Nothing was written")
        assert ada.ends() == 130
    assert not (home / ".goodbot" / "config.toml").exists()
    fake.delay = 0.0
    flags = ("--yes", "--platform", "terminal", "--model", "acme/tiny-chat")
    done = call(home, *flags, **surroundings)
    assert done.returncode == 0, done.stderr
    assert (home / ".goodbot" / "config.toml").exists()


def test_without_a_network_the_config_is_written_and_says_what_is_missing(
    home: Path, unused_tcp_port: int
) -> None:
    nowhere = {"HF_ENDPOINT": f"http://127.0.0.1:{unused_tcp_port}", "HF_HOME": str(home / "hf")}
    flags = ("--yes", "--json", "--platform", "terminal", "--model", "acme/tiny-chat")
    done = call(home, *flags, **nowhere)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert result["next"] == "goodbot init"
    assert "the hub cannot be reached" in result["missing"][0]
    assert (home / ".goodbot" / "config.toml").exists()


@pytest.mark.parametrize("flags", [(), ("--model", "auto")])
def test_where_no_model_fits_the_config_is_written_and_says_what_is_missing(
    flags: tuple[str, ...], home: Path
) -> None:
    require("mlx")
    if sys.platform == "darwin":
        pytest.skip("MLX is quick enough there")
    given = ("--yes", "--json", "--platform", "terminal", "--backend", "mlx", *flags)
    done = call(home, *given, HF_HOME=str(home / "hf"))
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    # Of a quick processor one of the catalogue would do, and there is no hub to have it of.
    said = ("no model answers within 20 s here", "the hub cannot be reached")
    assert any(one in result["missing"][0] for one in said)
    assert (result["model"], result["next"]) == ("", "goodbot init")
    assert (home / ".goodbot" / "config.toml").exists()


def test_a_small_one_that_fits_best_is_proposed_and_downloaded_without_a_question(home: Path) -> None:
    require("torch")
    require("huggingface_hub")
    with FakeHub(models={one.name: Path(MODEL) for one in catalogue.entries()}) as hub:
        surroundings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"), "HF_TOKEN": ""}
        flags = ("--yes", "--json", "--platform", "terminal", "--backend", "torch")
        done = call(home, *flags, "--model", "auto", **surroundings)
    result = json.loads(done.stdout)
    if done.returncode:  # a machine that is too slow or too full just now says so
        assert "no model" in result["missing"][0]
        return
    name, _, commit = result["model"].partition("@")
    assert commit == hub.commit(name)
    assert hub.bytes_of("model.safetensors") > 0
    assert f"{name} is the largest that serves and trains" in " ".join(done.stderr.split())
    assert tomllib.loads(Path(result["config"]).read_text())["model"]["path"] == result["model"]


@pytest.mark.parametrize("flags", [(), ("--model", "auto")])
def test_a_large_one_is_downloaded_only_where_somebody_names_it(flags: tuple[str, ...], home: Path) -> None:
    require("torch")
    require("huggingface_hub")
    with FakeHub(models={one.name: Path(MODEL) for one in catalogue.entries()}) as hub:
        hub.more = 700_000_000
        surroundings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(home / "hf"), "HF_TOKEN": ""}
        given = ("--yes", "--json", "--platform", "terminal", "--backend", "torch", *flags)
        done = call(home, *given, **surroundings)
        assert hub.bytes_of("model.safetensors") == 0
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert (result["model"], result["next"]) == ("", "goodbot init")
    assert "there is no model yet" in result["missing"][0]
    assert (home / ".goodbot" / "config.toml").exists()


def test_while_a_goodbot_runs_it_says_what_takes_the_change(home: Path, telegram: int) -> None:
    need_backend()
    on_telegram(home, telegram)
    bot = Bot(home / ".goodbot")
    bot.start(GOODBOT_TELEGRAM_TOKEN=SECRET)
    try:
        with Screen("init", home=home) as ada:
            walk(ada, 8)
            screen = ada.sees("Step 8 of 8", "goes on as it is until it is restarted")
            assert "run it here now" not in screen
            ada.type("\r")
            ada.sees("Restart goodbot, then send", "to @the_good_bot", "restart the goodbot that runs")
            assert ada.ends() == 0
        assert bot.json("status")["pid"] == bot.process.pid
    finally:
        bot.stop()


def test_it_can_run_as_a_service(home: Path, telegram: int, supervisor: FakeManager) -> None:
    on_telegram(home, telegram)
    flags = ("--yes", "--json", "--token-stdin", "--model", "demo", "--start", "service")
    done = call(home, *flags, input=SECRET)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["start"], result["next"]) == ("service", "goodbot status")
    assert result["pairing_code"], "made before the service has the directory"
    assert any("restart" in line for line in supervisor.calls())
    unit = next(supervisor.person.rglob("*.service")).read_text()
    assert "--config" not in unit
    assert SECRET not in unit


def test_a_service_that_does_not_start_is_what_is_missing(
    home: Path, telegram: int, supervisor: FakeManager
) -> None:
    on_telegram(home, telegram)
    supervisor.set(there=False)
    flags = ("--yes", "--json", "--token-stdin", "--model", "demo", "--start", "service")
    done = call(home, *flags, input=SECRET)
    assert done.returncode == 1
    result = json.loads(done.stdout)
    assert "it does not run in the background: your user's systemd" in result["missing"][0]
    assert result["next"] == "goodbot doctor"
    assert (home / ".goodbot" / "config.toml").exists()


def test_in_the_terminal_it_goes_on_with_a_chat(home: Path) -> None:
    need_backend()
    with Screen("init", "--platform", "terminal", "--model", "demo", home=home) as ada:
        for step in (2, 4, 5, 6):
            ada.answer(f"Step {step} of 6")
        ada.sees(MATTERS, "type a message")
        ada.type("What is the capital of France?\r")
        ada.until(lambda: "› g good" in ada.text)
        ada.type("g")
        ada.until(lambda: "Good. 1 of 40" in ada.text)
        ada.type("\x04")
        assert ada.ends() == 0
