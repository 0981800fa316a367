# SPDX-License-Identifier: Apache-2.0
"""`goodbot --browser`: who is let in, what is written, and what is left when somebody goes."""

from __future__ import annotations

import argparse
import queue
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from goodbot.api.texts import LANGUAGES, say
from goodbot.base import desktop
from goodbot.base.own_page import CONTENT_POLICY
from goodbot.cli import init, parser
from goodbot.cli.browser import command
from goodbot.cli.browser.serving import served
from goodbot.cli.browser.site import WORDS
from goodbot.cli.browser.stage import PageAnswer, Stage
from goodbot.cli.setup.draft import Draft
from goodbot.cli.setup.flow import STEPS

from tests.cli.program import Bot, need_backend, until
from tests.cli.setting_up import call, configured, tokens
from tests.cli.setup_page import OpenedPage, SetupProgram, SetupTab, left_behind
from tests.connectors.telegram.peer import SECRET, serve
from tests.support import patience, require

LATER = "Write this, and start it later"
DEMO = "The tiny demo model"
TERMINAL = "Only this terminal"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "ada"
    home.mkdir()
    return home


@pytest.fixture
def program(home: Path) -> Iterator[SetupProgram]:
    with SetupProgram(home) as program:
        yield program


@pytest.fixture(scope="module")
def telegram() -> Iterator[int]:
    """The port of a local Telegram."""
    require("telegram")
    with serve() as (port, _):
        yield port


# -- who is let in


def test_it_listens_here_alone_and_its_page_holds_nothing(program: SetupProgram) -> None:
    assert program.host.startswith("127.0.0.1:")
    status, text, headers = program.ask("/")
    assert status == 200
    assert headers["Content-Security-Policy"] == CONTENT_POLICY
    assert "Set-Cookie" not in headers, "what is in a cookie goes to every other port of this machine"
    assert program.code not in text
    assert "<script" in text
    assert "it works once" in program.said


def test_without_the_code_there_is_nothing(program: SetupProgram) -> None:
    for code in ("", "x", program.code[:-1], f"{program.code}x", None, 7, "é\ud800"):
        assert program.ask("/api/begin", {"code": code})[0] == 403
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {program.code}"}):
        assert program.ask("/api/screen", headers=headers)[0] == 401
        assert program.ask("/api/answer", {"number": 1, "do": "leave"}, headers)[0] == 401
    tab = SetupTab(program)
    assert tab.asked()["step"] == 1, "wrong ones have not used it up"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1"])
def test_a_name_that_is_not_ours_is_answered_nothing(program: SetupProgram, host: str) -> None:
    """As of a page whose name was turned to this address."""
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert program.ask("/", headers=headers)[0] == 421
    assert program.ask("/api/begin", {"code": program.code}, headers)[0] == 421
    assert SetupTab(program).asked()["step"] == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_page_can_do_nothing(program: SetupProgram, headers: dict[str, str]) -> None:
    assert program.ask("/api/begin", {"code": program.code}, headers)[0] == 403
    tab = SetupTab(program)
    number = tab.asked()["asked"]["number"]
    answer = {"number": number, "do": "leave"}
    assert program.ask("/api/answer", answer, {**tab.key, **headers})[0] == 403
    assert tab.asked()["asked"]["number"] == number, "it goes on"


def test_what_is_no_answer_is_refused(program: SetupProgram) -> None:
    tab = SetupTab(program)
    number = tab.asked()["asked"]["number"]
    for body in (
        [],
        {},
        {"number": number},
        {"number": number, "do": "write"},
        {"number": "1", "do": "leave"},
    ):
        assert program.ask("/api/answer", body, tab.key)[0] == 400
    big = {"number": number, "do": "answer", "value": "x" * 100_000}
    assert program.ask("/api/answer", big, tab.key)[0] == 413
    plain = {**tab.key, "Content-Type": "text/plain"}
    assert program.ask("/api/answer", {"number": number, "do": "leave"}, plain)[0] == 415


def test_over_ssh_it_says_how_the_page_comes_to_its_reader(home: Path) -> None:
    with SetupProgram(home, SSH_CONNECTION="192.0.2.1 50000 192.0.2.2 22") as program:
        port = program.host.rpartition(":")[2]
        headers = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}
        assert program.ask("/api/begin", {"code": program.code}, headers)[0] == 200
        assert program.ctrl_c() == 130
        assert f"  ssh -N -L {port}:127.0.0.1:{port} " in program.said


def test_a_browser_that_comes_back_when_it_is_closed_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As one that the variable BROWSER names."""
    by: queue.Queue[threading.Thread] = queue.Queue()

    def show(url: str, page: Path) -> bool:
        del url, page
        by.put(threading.current_thread())
        return True

    monkeypatch.setattr(desktop, "sits_here", lambda: True)
    monkeypatch.setattr(desktop, "show", show)
    command.open_page("http://127.0.0.1:1/#code", tmp_path)
    assert by.get(timeout=patience(30)) is not threading.current_thread()


def test_the_link_is_good_for_one_tab(program: SetupProgram) -> None:
    tab = SetupTab(program)
    tab.look()
    status, text, _ = program.ask("/api/begin", {"code": program.code})
    assert status == 409
    assert "used before" in text
    assert "key" not in text
    assert tab.asked()["step"] == 1, "the first one goes on"


def test_b10_a_key_that_was_lost_on_its_way_is_given_anew(program: SetupProgram) -> None:
    """The tunnel drops, or something opens the link before its reader does."""
    lost, tab = SetupTab(program), SetupTab(program)
    assert program.ask("/api/screen", headers=lost.key)[0] == 401, "one key is good"
    assert tab.asked()["step"] == 1
    assert program.ask("/api/begin", {"code": program.code})[0] == 409, "and now it has arrived"


def test_b10_where_the_page_is_gone_the_terminal_shows_another_way_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its tab was closed, say: nobody got in again, and nobody was told."""
    monkeypatch.setattr("goodbot.cli.browser.stage._SILENT_SECONDS", 0.05)
    stage = Stage()
    with served(stage) as page, ThreadPoolExecutor(1) as wizard:
        first = OpenedPage(page.address)
        stage.silent = lambda: command.show_again(page)
        asked = wizard.submit(stage.ask, {"kind": "text"})
        try:
            until(lambda: stage.view()["asked"])
            gone = SetupTab(first)
            assert not page.renew(), "until a key was shown the link itself is good"
            number = gone.asked()["asked"]["number"]
            until(lambda: page.address != first.address)
            again = OpenedPage(page.address)
            assert first.ask("/api/begin", {"code": first.code})[0] == 409, "each is good once"
            assert gone.look()["asked"], "it may come back, as long as nobody has come by the other way"
            tab = SetupTab(again)
            assert tab.asked()["asked"]["number"] == number
            assert first.ask("/api/screen", headers=gone.key)[0] == 401
            assert first.ask("/api/answer", {"number": number, "do": "leave"}, gone.key)[0] == 401
            assert again.ask("/api/begin", {"code": again.code})[0] == 409
            tab.answer("mine")
            assert asked.result(patience(30)) == PageAnswer(do="answer", value="mine")
        finally:
            stage.take(stage.view()["number"], PageAnswer(do="leave"))
    told = capsys.readouterr().out
    assert told.count(again.address) == 1, "once for each that is used up"
    assert "If it is closed, open this; it works once" in told


def test_a_number_of_thousands_of_digits_is_no_choice(program: SetupProgram) -> None:
    tab = SetupTab(program)
    number = tab.asked()["asked"]["number"]
    answer = {"number": number, "do": "answer", "value": "1" * 5000}
    assert program.ask("/api/answer", answer, tab.key)[0] == 200
    again = tab.asked()
    assert (again["step"], again["asked"]["number"] > number) == (1, True)
    assert program.process.poll() is None


def test_what_was_answered_in_a_copy_of_the_tab_is_not_answered_again(program: SetupProgram) -> None:
    tab = SetupTab(program)
    old = tab.answer(label=TERMINAL)["asked"]["number"]
    tab.asked()
    stale = {"number": old, "do": "answer", "value": "1"}
    assert program.ask("/api/answer", stale, tab.key)[0] == 409
    assert tab.look()["step"] == 2, "and the next question was not answered by it"


# -- leaving


def test_ctrl_c_leaves_nothing(home: Path, program: SetupProgram) -> None:
    assert program.ctrl_c() == 130
    assert program.said.splitlines()[-1] == "Left. Nothing was written."
    assert left_behind(home, program) == []


def test_ctrl_c_while_the_address_is_shown_is_a_leaving(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "open_page", interrupted)
    arguments = parser.parse(["--home", str(tmp_path / "home"), "init", "--browser"])
    try:
        assert command.ask(arguments, Draft()) == 130
    except KeyboardInterrupt:
        pytest.fail("nobody is told that nothing was written")
    assert capsys.readouterr().out == "\nLeft. Nothing was written.\n"


def test_an_answer_wakes_who_has_asked() -> None:
    """No page need look after it."""
    stage, answer = Stage(), PageAnswer(do="answer", value="1")
    with ThreadPoolExecutor() as wizard:
        asked = wizard.submit(stage.ask, {"kind": "text"})
        until(lambda: stage.take(1, answer))
        try:
            assert asked.result(patience(30)) == answer
        finally:
            stage.view()


def test_ctrl_c_in_the_middle_is_told_to_the_page(home: Path, program: SetupProgram) -> None:
    tab = SetupTab(program)
    tab.answer(label=TERMINAL)
    tab.asked()
    program.process.send_signal(signal.SIGINT)
    assert tab.ended()["end"] == "left"
    assert program.ends() == 130
    assert left_behind(home, program) == []


def test_who_leaves_on_the_page_leaves_nothing(home: Path, program: SetupProgram) -> None:
    tab = SetupTab(program)
    tab.answer(label=TERMINAL)
    tab.answer(do="leave")
    assert tab.ended()["end"] == "left"
    assert program.ends() == 130
    assert left_behind(home, program) == []


def test_ctrl_c_once_it_is_written_is_no_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """As while the service is installed."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(init, "settle", interrupted)
    stage = Stage()
    stage.begin("")
    tab = threading.Thread(target=lambda: until(lambda: stage.view()["end"]))
    tab.start()
    with pytest.raises(KeyboardInterrupt):
        command.settle(stage, argparse.Namespace(), Draft(), {})
    tab.join()
    assert stage.view()["end"] == "failed", "nobody is told that nothing was written"


def test_who_leaves_is_told_once(program: SetupProgram) -> None:
    tab = SetupTab(program)
    tab.answer(do="leave")
    end = tab.ended()
    assert (end["end"], end["said"]) == ("left", [])


# -- the same questions, the same config


def to_the_model(tab: SetupTab, label: str) -> None:
    """Answer up to the question after the model."""
    tab.answer(label=label)
    assert tab.answer()["title"] == "What does the computing?"


def to_the_end(tab: SetupTab) -> Any:
    """From the model to the end; the last screen."""
    tab.answer(label=DEMO)
    tab.answer()
    tab.answer()
    tab.answer(label=LATER)
    return tab.ended()


def test_it_writes_what_the_terminal_writes(home: Path, tmp_path: Path, program: SetupProgram) -> None:
    need_backend()
    tab = SetupTab(program)
    to_the_model(tab, TERMINAL)
    assert to_the_end(tab)["end"] == "done"
    assert program.ends() == 0
    assert "Next: goodbot" in program.said
    other = tmp_path / "bob"
    other.mkdir()
    done = call(other, "init", "--yes", "--platform", "terminal", "--model", "demo")
    assert done.returncode == 0, done.stderr
    written = (home / ".goodbot" / "config.toml").read_text()
    assert written == (other / ".goodbot" / "config.toml").read_text()


def test_what_no_page_shows_is_told_in_the_terminal(program: SetupProgram) -> None:
    """As where the tab is closed before the end."""
    need_backend()
    tab = SetupTab(program)
    to_the_model(tab, TERMINAL)
    tab.answer(label=DEMO)
    tab.answer()
    tab.answer()
    tab.answer(label=LATER)
    assert program.ends() == 0
    assert "Written to " in program.said
    assert program.said.count("Next: goodbot") == 1


def test_the_way_back_asks_again(program: SetupProgram) -> None:
    need_backend()
    tab = SetupTab(program)
    tab.answer(do="back")
    assert "This is the first question." in tab.said(tab.asked())
    to_the_model(tab, TERMINAL)
    assert tab.answer(do="back")["step"] == 3
    assert tab.asked()["step"] == 2


def test_a_token_is_checked_kept_and_never_shown(home: Path, telegram: int) -> None:
    need_backend()
    configured(home, f'[connectors.telegram]\napi_base = "http://127.0.0.1:{telegram}/bot"\n')
    with SetupProgram(home) as program:
        tab = SetupTab(program)
        tab.answer(label="Telegram")
        screen = tab.asked()
        [guide] = [one for one in screen["said"] if one["kind"] == "guide"]
        assert "BotFather" in guide["lines"][0]
        assert [one["line"] for one in guide["sketches"]] == [1, 3]
        assert screen["asked"]["kind"] == "secret"
        for wrong, why in (("hello", "That is no token"), (SECRET[:-4] + "9999", "Telegram does not know")):
            tab.answer(wrong)
            screen = tab.asked()
            [trouble] = [one["text"] for one in screen["said"] if one["kind"] == "trouble"]
            assert trouble.startswith(why)
            assert guide in screen["said"], "it can still be read"
        tab.answer(SECRET)
        assert "It belongs to @the_good_bot." in tab.said(tab.answer(label="In a file"))
        assert tab.answer()["title"] == "What does the computing?"
        tab.answer(label=DEMO)
        tab.answer()
        tab.answer()
        tab.answer(label="Send it a code")
        tab.answer(label=LATER)
        end = tab.ended()
        assert program.ends() == 0
    [link] = [one for one in end["said"] if one["kind"] == "link"]
    assert link["address"].startswith("https://t.me/the_good_bot?start=")
    assert f"GOODBOT_TELEGRAM_TOKEN={SECRET}\n" in tokens(home)
    assert SECRET not in (home / ".goodbot" / "config.toml").read_text()
    for shown in (tab.shown, program.said):
        assert SECRET not in shown
        assert SECRET[8:] not in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_speaks_the_language_of_its_reader(program: SetupProgram, language: str) -> None:
    tab = SetupTab(program, f"tlh, {language}-x;q=0.9, en;q=0.5")
    assert tab.got["language"] == language
    assert set(tab.got["words"]) == {name.removeprefix("setup_page_") for name in WORDS}
    screen = tab.asked()
    assert screen["title"] == say(STEPS[0].title, language)
    assert screen["asked"]["choices"][-1]["label"] == say("setup_terminal", language)
    assert say("setup_first", language) in tab.said(screen)


# -- where goodbot is set up already


def test_a_bot_at_rest_is_told_how_it_starts(home: Path) -> None:
    need_backend()
    configured(home, '[model]\npath = "demo"\n')
    done = call(home, "--browser")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-2:] == [
        "Next: `goodbot chat`",
        "Once it runs, `goodbot --browser` opens its pages.",
    ]


def test_a_running_bot_without_pages_says_how_to_get_them(running: Bot) -> None:
    done = running.call("--browser")
    assert done.returncode == 2
    assert "goodbot connect web" in done.stderr


@pytest.mark.parametrize("words", [("--browser", "connect", "web"), ("connect", "web", "--browser")])
def test_a_bot_that_is_set_up_gets_another_platform(home: Path, words: tuple[str, ...]) -> None:
    file = configured(home, '# Ours.\n[model]\npath = "demo"\n')
    with SetupProgram(home, *words) as program:
        tab = SetupTab(program)
        screen = tab.answer(label=LATER)
        assert (screen["step"], screen["of"]) == (1, 1), "the bot's own answers are there"
        assert tab.ended()["end"] == "done"
        assert program.ends() == 0
    assert file.read_text().startswith('# Ours.\n[model]\npath = "demo"\n')
    assert "[connectors.web]" in file.read_text()


def test_what_was_given_as_a_flag_is_not_asked(home: Path) -> None:
    with SetupProgram(
        home, "init", "--platform", "terminal", "--backend", "auto", "--install", "no"
    ) as program:
        assert SetupTab(program).asked()["title"] == "Which model answers?"


def test_what_cannot_be_set_up_is_told_on_the_page(home: Path) -> None:
    with SetupProgram(home, "connect", "pigeon") as program:
        end = SetupTab(program).ended()
        assert end["end"] == "failed"
        assert "pigeon" in end["said"][-1]["text"]
        assert program.ends() == 2


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--browser", "status"), "--browser goes with init and connect, or without a command"),
        (("init", "--browser", "--yes"), "--browser is for a person"),
        (("init", "--browser", "--json"), "--browser is for a person"),
    ],
)
def test_where_nobody_can_be_asked_there_is_no_page(home: Path, words: tuple[str, ...], why: str) -> None:
    done = call(home, *words)
    assert done.returncode == 2
    assert why in done.stderr
