# SPDX-License-Identifier: Apache-2.0
"""A page is opened only for somebody who sits before this machine's screen, and never in their terminal."""

from __future__ import annotations

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


def test_no_browser_takes_the_terminal_but_one_that_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And it is started with nothing that other accounts of the machine may not read."""
    page = tmp_path / "page.html"
    page.write_text("of the time before")
    opened: list[str] = []

    def open_in(self: webbrowser.GenericBrowser, url: str, new: int = 0, autoraise: bool = True) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser.GenericBrowser, "open", open_in)
    lynx = webbrowser.GenericBrowser("lynx")
    monkeypatch.setattr(webbrowser, "get", lambda: lynx)
    assert not desktop.show("http://127.0.0.1/#secret", page)
    monkeypatch.setenv("BROWSER", "lynx")
    assert desktop.show('http://127.0.0.1/#secret"&', page)
    assert opened == [page.as_uri()]
    assert page.stat().st_mode & 0o777 == 0o600
    assert '"0; url=http://127.0.0.1/#secret&quot;&amp;"' in page.read_text()

    def starts_nothing(*_: object) -> bool:
        return False

    monkeypatch.setattr(webbrowser.GenericBrowser, "open", starts_nothing)
    assert not desktop.show("http://127.0.0.1/#secret", page)
    assert not page.exists()


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
