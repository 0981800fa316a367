# SPDX-License-Identifier: Apache-2.0
"""Take the pictures of the how-to pages that show goodbot itself: one real run, in a home of its own.

`python docs/tools/screens.py` sets up the tiny model, asks it in a real Chromium, rates what it answers as
somebody who likes friendly answers, waits for the training, and takes what pages and commands then show. It
needs everything installed and a Chromium; about five minutes.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import figures
from goodbot_training.tiny.facts import FactQuestion, questions
from goodbot_training.tiny.judge import style_of
from playwright.sync_api import ViewportSize, sync_playwright

RATINGS, QUESTIONS = 42, 44
DESK, PHONE = ViewportSize(width=1100, height=700), ViewportSize(width=390, height=700)
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run")


class Home:
    """A home where somebody uses goodbot, and what they see there."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        self.environ = {**os.environ, "HOME": str(path), "COLUMNS": "100", "NO_COLOR": "1"}

    def say(self, *words: str, cwd: Path | None = None) -> str:
        """What `goodbot WORDS` prints, as its owner would see it."""
        command = [sys.executable, "-m", "goodbot", *words]
        done = subprocess.run(
            command, env=self.environ, cwd=cwd or self.path, capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):  # 1: doctor has something to say
            raise SystemExit(f"goodbot {' '.join(words)}: {done.stdout}{done.stderr}")
        return (done.stdout + done.stderr).replace(str(self.path), "~")


def commands(home: Home) -> dict[str, list[tuple[str, str]]]:
    """What setting up, copying and beginning a plugin prints: the same on every machine."""
    for name in (".claude", ".codex"):
        (home.path / name).mkdir()
    home.say("connect", "web", "--yes", "--model", "demo")
    said = {
        name: [(f"goodbot connect {program}", home.say("connect", program, "--yes"))]
        for name, program in (("claude-code", "claude_code"), ("codex", "codex"))
    }
    plugin = home.say("plugin", "new", "box", "--kind", "connector")
    files = "\n".join(sorted(file.name for file in (home.path / "goodbot-box").iterdir()))
    said["plugins"] = [("goodbot plugin new box --kind connector", plugin), ("ls goodbot-box", files)]
    home.say("status")  # it has been used: there is a database
    return said


def moved(home: Home, other: Home) -> list[tuple[str, str]]:
    """What a move from one home to another prints."""
    words = ("--yes", "--accept", "owners")
    backup = home.say("backup", str(home.path / "goodbot.tar"))
    shutil.copy(home.path / "goodbot.tar", other.path)
    restore = other.say("restore", str(other.path / "goodbot.tar"), *words)
    return [
        ("goodbot backup ~/goodbot.tar", backup),
        (f"goodbot restore ~/goodbot.tar {' '.join(words)}", restore),
    ]


def listen_elsewhere(home: Home) -> int:
    """Let it listen where nobody else does; the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with (home.path / ".goodbot/config.toml").open("a", encoding="utf-8") as config:
        config.write(f"\n[http]\nport = {port}\n")
    return port


def talk(page: Any, asked: Sequence[FactQuestion]) -> None:
    """Ask these, and rate each answer."""
    for question in asked:
        before = page.locator("article.bot .rating").count()
        page.get_by_label("Message", exact=True).fill(question.text)
        page.keyboard.press("Enter")
        page.locator("article.bot .rating").nth(before).wait_for()
        answer = page.locator("article.bot").last
        liked = style_of(answer.locator(".words").inner_text().strip()) == "friendly"
        answer.get_by_role("button", name="Good" if liked else "Bad", exact=False).first.click()
        answer.locator('button[aria-pressed="true"]').first.wait_for()


def learnt(home: Home) -> None:
    """Wait until the version that was learnt answers, or is refused."""
    for _ in range(600):
        if "v1" in home.say("adapters"):
            return
        time.sleep(1)
    raise SystemExit(f"nothing was learnt: {home.say('status')}")


def browse(home: Home, port: int, shots: Mapping[str, str]) -> None:
    """Use it in a browser, and take a page for each of `shots` (file: address)."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        context = chromium.new_context(viewport=DESK, reduced_motion="reduce")
        context.set_default_timeout(120_000)
        page = context.new_page()
        page.goto(home.say("web").split()[0])
        page.get_by_role("button", name="Sign in").click()
        page.locator("#sign-out").wait_for()
        page.goto(f"http://127.0.0.1:{port}/")
        page.locator("#sign-out").wait_for()
        asked = Random(1).sample(questions(), QUESTIONS)  # noqa: S311 - the same each time
        talk(page, asked[:RATINGS])
        home.say("train")  # also on a machine that is busy
        learnt(home)
        talk(page, asked[RATINGS:])
        for name, path in shots.items():
            page.set_viewport_size(PHONE if name == "phone.png" else DESK)
            page.goto(f"http://127.0.0.1:{port}{path}")
            page.get_by_role("main").wait_for()
            page.wait_for_load_state("networkidle")
            time.sleep(1)
            page.screenshot(path=str(figures.PICTURES / name))
        chromium.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, other = Home(Path(folder, "ada")), Home(Path(folder, "new"))
        said = commands(home)
        port = listen_elsewhere(home)
        command = [sys.executable, "-m", "goodbot", "run"]
        with subprocess.Popen(command, env=home.environ, cwd=home.path, stdout=subprocess.DEVNULL) as daemon:
            try:
                time.sleep(10)
                browse(
                    home,
                    port,
                    {
                        "getting-started.png": "/progress",
                        "adapters.png": "/versions",
                        "data.png": "/ratings",
                        "phone.png": "/",
                    },
                )
                said["operations"] = [
                    ("goodbot status", home.say("status")),
                    ("goodbot doctor", home.say("doctor")),
                ]
                said["reports"] = [("goodbot report", home.say("report"))]
                said["export"] = [("goodbot export --rating good", home.say("export", "--rating", "good"))]
            finally:
                daemon.terminate()
        said["move"] = moved(home, other)
    for page, printed in said.items():
        figure = figures.terminal(f"What {printed[0][0]} prints", printed)
        (figures.PICTURES / f"{page}.svg").write_text(figure, encoding="utf-8")


if __name__ == "__main__":
    main()
