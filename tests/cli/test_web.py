# SPDX-License-Identifier: Apache-2.0
"""`goodbot web` as it is typed; what the link does is in tests/security/test_login.py."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from goodbot.base import desktop
from goodbot.cli import web
from goodbot.config.layout import LOGIN_PAGE

from tests.cli.program import Bot, need_backend
from tests.cli.terminal import Person
from tests.support import free_port

AT_A_DESKTOP = {**dict.fromkeys((*desktop._REMOTE, *desktop._SCREENS, "container"), ""), "DISPLAY": ":0"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bot]:
    """A goodbot with the browser set up."""
    need_backend()
    bot = Bot(tmp_path_factory.mktemp("served") / "home")
    bot.home.mkdir(mode=0o700)
    file = bot.home / "config.toml"
    file.write_text(f"[http]\nport = {free_port()}\n[connectors.web]\nowners = ['owner']\n")
    file.chmod(0o600)
    bot.start()
    yield bot
    bot.stop()


def test_without_a_daemon_there_is_nothing_to_log_in_to(bot: Bot) -> None:
    for words in ([], ["--user", "ada"], ["--sign-out"]):
        done = bot.call("web", *words)
        assert done.returncode == 2
        assert done.stderr == ("goodbot: goodbot is not running: start it (`goodbot run`), then ask again\n")
    assert not (bot.home / "goodbot.db").exists(), "nothing was made"


def test_signing_out_is_for_everybody(bot: Bot) -> None:
    done = bot.call("web", "--sign-out", "--user", "ada")
    assert done.returncode == 2
    assert "leave --user away" in done.stderr
    done = bot.call("web", "--sign-out", "--allow", "http.port")
    assert done.returncode == 2
    assert "--allow goes alone" in done.stderr


def test_a_goodbot_without_the_browser_says_how_to_set_it_up(running: Bot) -> None:
    done = running.call("web")
    assert done.returncode == 2
    assert "goodbot connect web" in done.stderr


@pytest.mark.parametrize(
    ("words", "env", "opens"),
    [
        ((), {}, True),
        (("--no-open",), {}, False),
        (("--user", "owner"), {}, False),
        (("--json",), {}, False),
        ((), {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}, False),
        ((), {"container": "podman"}, False),
        ((), {"DISPLAY": ""}, False),
        (("--allow", "http.port"), {}, False),
    ],
)
def test_the_link_opens_where_its_person_sits(
    served: Bot, tmp_path: Path, words: tuple[str, ...], env: Mapping[str, str], opens: bool
) -> None:
    """With a program in the place of a browser, as the variable BROWSER names one."""
    opens = opens and not any(Path(file).exists() for file in (*desktop._CONTAINERS, *desktop._SANDBOXED))
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    browser.chmod(0o700)
    with Person(served.home, "web", *words, **{**AT_A_DESKTOP, "BROWSER": str(browser), **env}) as ada:
        assert ada.ends() == 0
    said = ada.raw
    assert ("Your browser opens it now." in said) is opens
    assert seen.exists() is opens
    if opens:
        page = served.home / LOGIN_PAGE
        assert seen.read_text() == page.as_uri(), "every account of the machine reads this"
        assert page.stat().st_mode & 0o777 == 0o600
        [link] = re.findall(r"url=(http://[^ /]+/login#[^\"]+)", page.read_text())
        assert link in said


@pytest.mark.parametrize("browser", [True, False])
def test_what_opens_leads_to_the_link(
    browser: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[tuple[str, Path]] = []
    url = "http://127.0.0.1:8321/login#abc"

    def answered(*_: object) -> dict[str, Any]:
        return {"text": url, "data": {"url": url}}

    def show(shown: str, page: Path) -> bool:
        opened.append((shown, page))
        return browser

    monkeypatch.setattr(web, "call", answered)
    monkeypatch.setattr(desktop, "sits_here", lambda: True)
    monkeypatch.setattr(desktop, "show", show)
    words = argparse.Namespace(home=Path(), user=None, sign_out=False, allow=None, json=False, no_open=False)
    assert web.main(words) == 0
    assert opened == [(url, Path(LOGIN_PAGE))]
    assert ("Your browser opens it now." in capsys.readouterr().out) is browser
