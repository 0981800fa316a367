# SPDX-License-Identifier: Apache-2.0
"""A page is opened only for somebody who sits before this machine's screen, and never in their terminal."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from pathlib import Path

import pytest
from goodbot.base import desktop


@pytest.fixture(autouse=True)
def at_a_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*desktop._REMOTE, *desktop._SCREENS, "container", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setattr(desktop, "_CONTAINERS", ())
    monkeypatch.setattr(desktop, "_SANDBOXED", ())
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)


def test_somebody_sits_at_a_desktop() -> None:
    assert desktop.sits_here()


@pytest.mark.parametrize("name", [*desktop._REMOTE, "container"])
def test_nobody_sits_where_they_came_over_a_network_or_in_a_container(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "x")
    assert not desktop.sits_here()


def test_nobody_sits_in_dockers_container(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(desktop, "_CONTAINERS", (str(tmp_path),))
    assert not desktop.sits_here()


def test_nobody_sits_where_there_is_no_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYLAND_DISPLAY")
    monkeypatch.setattr("sys.platform", "linux")
    assert not desktop.sits_here()
    monkeypatch.setattr("sys.platform", "darwin")
    assert desktop.sits_here()


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_script_sits_nowhere(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"sys.{stream}.isatty", lambda: False, raising=False)
    assert not desktop.sits_here()


SEES = """#!{python}
import json, os, sys
def is_open():
    try:
        return bool(os.fstat({handle}))
    except OSError:
        return False
there = {{"words": sys.argv[1:], "environ": dict(os.environ), "cwd": os.getcwd(), "handle": is_open()}}
with open({seen!r}, "w") as file:
    json.dump(there, file)
sys.exit({code})
"""


class Chosen:
    """A program in the place of a browser, as the variable BROWSER names one; it notes what it has."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.seen, self.program = folder, folder / "seen.json", folder / "browser"
        monkeypatch.setenv("BROWSER", str(self.program))
        monkeypatch.setattr(webbrowser, "get", lambda: webbrowser.GenericBrowser(str(self.program)))

    def opens(self, url: str, page: Path, code: int = 0) -> bool:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.set_inheritable(handle, True)
            told = {"python": sys.executable, "handle": handle, "seen": str(self.seen), "code": code}
            self.program.write_text(SEES.format(**told))
            self.program.chmod(0o700)
            return desktop.show(url, page)
        finally:
            os.close(handle)


def test_no_browser_takes_the_terminal_but_one_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And it is started with nothing that other accounts of the machine may not read."""
    page = tmp_path / "page.html"
    page.write_text("of the time before")
    chosen = Chosen(tmp_path, monkeypatch)
    monkeypatch.delenv("BROWSER")
    assert not chosen.opens("http://127.0.0.1/#secret", page)
    assert not chosen.seen.exists()
    monkeypatch.setenv("BROWSER", str(chosen.program))
    assert chosen.opens('http://127.0.0.1/#secret"&', page)
    assert json.loads(chosen.seen.read_text())["words"] == [page.as_uri()]
    assert page.stat().st_mode & 0o777 == 0o600
    assert '"0; url=http://127.0.0.1/#secret&quot;&amp;"' in page.read_text()
    assert not chosen.opens("http://127.0.0.1/#secret", page, code=1)
    assert not page.exists()


def test_s1_a_browser_has_nothing_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It was started with the whole environment, tokens included, in the directory that one was in."""
    needed = {
        "DISPLAY": ":7",
        "WAYLAND_DISPLAY": "wayland-7",
        "XDG_RUNTIME_DIR": str(tmp_path),
        "XDG_CURRENT_DESKTOP": "GNOME",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/bus",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "LC_TIME": "C.UTF-8",
        "https_proxy": "http://proxy:8080",
    }
    ours = ("TELEGRAM_TOKEN", "GOODBOT_SERVER_KEY", "SLACK_BOT_TOKEN", "MY_BOT", "LD_AUDIT")
    for name, value in (needed | dict.fromkeys(ours, "")).items():
        monkeypatch.setenv(name, value)
    chosen = Chosen(tmp_path, monkeypatch)
    assert chosen.opens("http://127.0.0.1/#secret", tmp_path / "page.html")
    told = json.loads(chosen.seen.read_text())
    assert needed.items() <= told["environ"].items()
    assert told["environ"]["PATH"] == os.environ["PATH"]
    assert set(ours) & told["environ"].keys() == set()
    assert told["cwd"] == "/"
    assert told["handle"] is False


def test_a_browser_that_cannot_read_the_page_is_not_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(desktop, "_SANDBOXED", (str(tmp_path),))
    assert not desktop.show("http://127.0.0.1/", tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_without_a_browser_nothing_is_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def none() -> webbrowser.BaseBrowser:
        raise webbrowser.Error

    monkeypatch.setattr(webbrowser, "get", none)
    assert not desktop.show("http://127.0.0.1/", tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
