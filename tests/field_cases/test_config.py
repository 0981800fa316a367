# SPDX-License-Identifier: Apache-2.0
"""I5: what people paste into config.toml and secrets.env: it is taken, or told in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from goodbot.base.errors import ConfigError
from goodbot.cli import main
from goodbot.config.lock import prepare_home
from goodbot.config.secrets import SecretStore

from tests.cli.program import need_backend
from tests.support import require

TOKEN = "GOODBOT_TELEGRAM_TOKEN"
KEY = "123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawAA"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    prepare_home(home)
    monkeypatch.setenv("GOODBOT_HOME", str(home))
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setattr("goodbot.config.secrets.keyring_usable", lambda: False)
    return home


def config(home: Path, text: str, mark: bytes = b"") -> None:
    (home / "config.toml").write_bytes(mark + f'[model]\npath = "demo"\n{text}'.encode())


TELEGRAM = "[connectors.telegram]\n"
TOLD: dict[str, tuple[str, str]] = {
    "owners as one text": (f'{TELEGRAM}owners = "123"\n', "owners must be a list in [ ]"),
    "a token": (f'{TELEGRAM}token = "123:abc"\n', "tokens are not kept in the config: take 'token' out"),
    "an address without http": ('[serving]\nserver = "vllm"\nurl = "localhost:8000"\n', "url"),
    "an address of all addresses": (
        '[serving]\nserver = "ollama"\nurl = "http://0.0.0.0:11434"\n',
        "url leads to 0.0.0.0",
    ),
    "an address of the house": (
        '[serving]\nserver = "ollama"\nurl = "http://192.168.1.5:11434"\n',
        'hosts = ["192.168.1.5"]',
    ),
    "a server that goodbot has not": (
        '[serving]\nserver = "lmstudio"\nurl = "http://localhost:1234"\n',
        "LM Studio cannot be used while goodbot learns",
    ),
    # Siblings: other odd values of the same keys.
    "owners as a table": (f"{TELEGRAM}owners = {{ada = 1}}\n", "owners must be a list in [ ]"),
    "owners with a broken number": (f"{TELEGRAM}owners = [1.5]\n", "owners must be a text in quotes"),
    "a password": (f'{TELEGRAM}Bot_Token = "1:a"\n', "tokens are not kept in the config"),
    "quotes of a word processor": (f"{TELEGRAM}owners = [“1”]\n", "is not valid TOML"),
    "a section twice": (f"{TELEGRAM}owners = [1]\n{TELEGRAM}raters = [2]\n", "is not valid TOML"),
    "an address with a name and a password": (
        '[serving]\nserver = "openai"\nurl = "http://me:x@localhost:8000"\n',
        "url",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_i5_what_cannot_be_is_told_in_one_sentence(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, words = TOLD[name]
    config(home, text)
    assert main(["status"]) == ConfigError.exit_code
    said = capsys.readouterr()
    assert words in said.err
    assert "config.toml" in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert "Traceback" not in said.err


BOM = b"\xef\xbb\xbf"
TAKEN: dict[str, tuple[str, bytes]] = {
    "owners as numbers": (f"{TELEGRAM}owners = [123]\n", b""),
    "channels as numbers": (f"{TELEGRAM}channels = [-100123]\n", b""),
    "an address with the way to one question": (
        '[serving]\nserver = "openai"\nurl = "http://localhost:8000/v1/chat/completions"\n',
        b"",
    ),
    "Windows' mark and line ends": (f"{TELEGRAM}owners = [123]\r\n", BOM),
    # Siblings.
    "a comment in another script": (f"# 我的机器人 — мой бот\n{TELEGRAM}owners = [123]\n", BOM),
    "owners as text and as numbers": (f'{TELEGRAM}owners = [123, "456"]\n', b""),
}


@pytest.mark.parametrize("name", TAKEN)
def test_i5_what_can_be_meant_is_taken(name: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need_backend()
    config(home, *TAKEN[name])
    assert main(["status"]) == 0
    assert capsys.readouterr().err == ""


OWNERS = {
    "telegram": ["@ada", "ada", "ada#1234", "https://t.me/ada", "+49 151 1234"],
    "slack": ["@ada", "ada", "T0ADA", "u0ada"],
    "discord": ["@ada", "ada#1234", "<@80351110224678912>"],
    "teams": ["ada@example.org", "Ada Lovelace"],
}


@pytest.mark.parametrize(
    ("platform", "owner"), [(platform, owner) for platform, named in OWNERS.items() for owner in named]
)
def test_i5_an_owner_who_can_be_nobody_is_told(
    platform: str, owner: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require(
        {"telegram": "telegram", "slack": "slack_bolt", "discord": "discord", "teams": "botbuilder.core"}[
            platform
        ]
    )
    config(home, f"[connectors.{platform}]\nowners = {json.dumps([owner])}\n")
    assert main(["doctor", "--json"]) != 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    [people] = [check for check in checks if check["part"] == f"{platform} people"]
    assert people["state"] == "fail"
    assert people["text"].startswith(f"owners names {owner!r}, who can be nobody: ")


def secrets(home: Path, data: bytes, mode: int = 0o600) -> SecretStore:
    file = home / "secrets.env"
    file.write_bytes(data)
    file.chmod(mode)
    return SecretStore(home)


@pytest.mark.parametrize(
    "text",
    [
        f"{TOKEN}={KEY}\n",
        f"{TOKEN}={KEY}\r\n",
        f"\ufeff{TOKEN}={KEY}\n",
        f'{TOKEN}="{KEY}"\n',
        f"{TOKEN}={KEY} \n",
        # Siblings.
        f"{TOKEN}='{KEY}'\n",
        f"{TOKEN}={KEY}",
        f"# 我的机器人\n\n{TOKEN}={KEY}\n",
        f"\ufeff# mine\r\n{TOKEN}={KEY}\r\n",
        f"{TOKEN}=\t{KEY}\n",
    ],
)
def test_i5_a_token_is_read_however_an_editor_has_written_it(text: str, home: Path) -> None:
    assert secrets(home, text.encode()).environment([TOKEN])[TOKEN] == KEY


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (f"export {TOKEN}={KEY}\n", 0o600, "write one NAME=value a line"),
        (f"{TOKEN} = {KEY}\n", 0o600, "write one NAME=value a line"),
        (f"{TOKEN}={KEY}\n", 0o644, "chmod 600"),
        # Siblings.
        (f"{TOKEN}: {KEY}\n", 0o600, "write one NAME=value a line"),
        (f'{{"{TOKEN}": "{KEY}"}}\n', 0o600, "write one NAME=value a line"),
        (f"{TOKEN}={KEY}\n", 0o640, "chmod 600"),
    ],
)
def test_i5_what_is_no_list_of_tokens_is_told_without_the_token(
    text: str, mode: int, words: str, home: Path
) -> None:
    with pytest.raises(ConfigError) as told:
        secrets(home, text.encode(), mode).environment([TOKEN])
    assert words in str(told.value)
    assert "secrets.env" in str(told.value)
    assert KEY not in str(told.value)


@pytest.mark.parametrize(
    "value",
    [
        f"“{KEY}”",
        # Siblings.
        f"„{KEY}“",
        f"«{KEY}»",
        f"{KEY[:12]}\u200b{KEY[12:]}",
        f"bot{KEY}",
        KEY.partition(":")[2],
        KEY[:-10],
    ],
)
def test_i5_a_token_that_is_none_is_told_without_it(
    value: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    require("telegram")
    secrets(home, f"{TOKEN}={value}\n".encode())
    config(home, f'{TELEGRAM}owners = ["1"]\n')
    assert main(["doctor", "--json"]) != 0
    said = capsys.readouterr().out
    [token] = [check for check in json.loads(said)["checks"] if check["part"] == "telegram token"]
    assert token["state"] == "fail"
    assert f"{TOKEN} from secrets.env: " in token["text"]
    assert KEY[12:30] not in said
