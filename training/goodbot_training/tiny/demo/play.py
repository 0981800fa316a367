# SPDX-License-Identifier: Apache-2.0
"""What `goodbot demo` plays: a word → the next reply; chat → ratings → training → a better reply.

Nothing is short-circuited. A small connector asks and reacts as a person would; its events go
through the dispatcher into the store; the scheduler starts the trainer's child process by itself;
the gate decides; the registry swaps the adapter in; the same connector asks the same held-out
questions again.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from goodbot import ConnectorSpec, GoodbotError, hookimpl
from goodbot.api import actions
from goodbot.api.sentences import sentence, words
from goodbot.api.texts.terminal import here, phrase
from goodbot.base import trees
from goodbot.config import Config, Grants, ServingConfig, TrainingConfig
from goodbot.daemon import loopback
from goodbot.daemon.app import App, open_plugins
from goodbot.daemon.loopback import OWNER, Answer, Loopback
from goodbot.store import runs
from goodbot.store.pools import SHARED

from goodbot_training.tiny import TEMPERATURE, show
from goodbot_training.tiny.corpus import split
from goodbot_training.tiny.facts import FactQuestion
from goodbot_training.tiny.judge import SimulatedRater, style_of
from goodbot_training.tiny.score import score

RATINGS = 40
RATER_ERROR = 0.1
"""The owner of the demo presses the wrong button one time in ten, as people do."""
CHIP = "long"
"""What they say of an answer before all that."""
_TRIES, _NEXT = 10, 3
"""Questions until there is a long answer, at most, and those that follow the word."""

_MARKER = ".goodbot-demo"


class DemoChat(Loopback):
    """The platform in memory under a name of its own: ids, and so the answers, hang on it."""

    spec = replace(Loopback.spec, name="demo", factory="goodbot_training.tiny.demo.play:DemoChat")


class _Watcher:
    """The plugin through which the demo sees the training that it waits for."""

    def __init__(self, screen: show.DemoPrinter) -> None:
        self._screen = screen
        self.finished: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self.started = self.seconds = 0.0

    @hookimpl
    def register_connector(self) -> ConnectorSpec:
        return DemoChat.spec

    @hookimpl
    def on_training_started(self, run: int, items: int) -> None:
        self.started = time.perf_counter()
        self._screen.training_started(items)

    @hookimpl
    def on_training_progress(self, progress: Mapping[str, Any]) -> None:
        self._screen.progress(progress)

    @hookimpl
    def on_training_finished(self, state: str, reason: str) -> None:
        self.seconds = time.perf_counter() - self.started
        if not self.finished.done():
            self.finished.set_result((state, reason))


async def play(arguments: argparse.Namespace, screen: show.DemoPrinter) -> dict[str, Any]:
    """Play the whole of it; what it found, as `--json` prints it."""
    begin = time.perf_counter()
    home = _fresh(arguments.home / "demo")
    config = Config(
        home=home,
        serving=ServingConfig(
            temperature=TEMPERATURE,
            max_tokens=48,
            history=0,
            seed=arguments.seed,
            ask="never",  # its owner is a script
        ),
        training=TrainingConfig(  # somebody watches: it yields to nobody
            backend=arguments.backend, min_ratings=RATINGS, idle_seconds=0.0, max_load=1.0
        ),
    )
    plugins = open_plugins(config)
    watcher = _Watcher(screen)
    plugins.register(watcher, "demo")
    grants = {"demo": Grants(owners=(OWNER,))}
    async with App.open(config, plugins, demo_model=True, grants=grants) as app:
        if full := app.scheduler.disk.missing():  # else it would be waited for without a word
            raise GoodbotError(sentence(full.for_owners(here()), here()))
        chat = loopback.of(app.connectors.running)
        train, held_out = split(arguments.seed)
        exam = Random(arguments.seed).sample(held_out, arguments.questions)  # noqa: S311
        screen.opening(app.backend.name)
        word = await _say_what_was_wrong(chat, train, arguments.seed, screen)
        screen.owner(arguments.like, RATINGS)
        before = await _exam(chat, exam, "before", screen)
        await _rate(chat, train, arguments.like, arguments.seed, screen)
        state, reason = await watcher.finished
        screen.verdict(state, await _why(app))
        after = await _exam(chat, exam, "after", screen) if state == "activated" else before
        rows = await app.registry.rows()
        return {
            "like": arguments.like,
            "seed": arguments.seed,
            "backend": app.backend.name,
            "word": word,
            "ratings": RATINGS,
            "state": state,
            "reason": reason,
            "before": score(exam, before, arguments.like).as_json(),
            "after": score(exam, after, arguments.like).as_json(),
            "answers": [
                {"question": q.text, "before": b, "after": a}
                for q, b, a in zip(exam, before, after, strict=True)
            ],
            "adapter": {"version": rows[-1].version, "sha256": rows[-1].sha256} if rows else None,
            "adapter_directory": str(app.registry.root / rows[-1].directory) if rows else None,
            "home": str(home),
            "train_seconds": round(watcher.seconds, 2),
            "seconds": round(time.perf_counter() - begin, 2),
        }


async def _why(app: App) -> str:
    """Why the training ended so, in the language of whoever watches; programs get what plugins are told."""
    ended = await app.store.read(lambda db: runs.last_runs(db, SHARED))
    return words(*(reason for run in ended for reason in run.ending), language=here())


async def _say_what_was_wrong(
    chat: Loopback, questions: Sequence[FactQuestion], seed: int, screen: show.DemoPrinter
) -> dict[str, Any]:
    """One 👎 with a button, the answers that follow it, and the 👎 taken back: nothing is left of it."""
    asked = Random(seed + 2).sample(questions, _TRIES + _NEXT)  # noqa: S311

    async def ask() -> tuple[str, Answer]:
        question = asked.pop()
        return question.text, await chat.say(question.text, channel="word", name=f"word-{len(asked):03d}")

    question, answer = await ask()
    while style_of(_unlabelled(answer)) == "terse" and len(asked) > _NEXT:
        question, answer = await ask()
    screen.disliked(question, _unlabelled(answer), actions.HINTS[CHIP].label(here()))
    await chat.react(answer, "👎")
    again = await chat.again(answer, CHIP)
    screen.follows(question, _unlabelled(again))
    following = [await ask() for _ in range(_NEXT)]
    for later, said in following:
        screen.follows(later, _unlabelled(said))
    await chat.unreact(answer, "👎")
    short = sum(style_of(_unlabelled(said)) == "terse" for _, said in following)
    screen.word_over(short, _NEXT)
    return {
        "question": question,
        "answer": _unlabelled(answer),
        "chip": CHIP,
        "again": _unlabelled(again),
        "next": [{"question": later, "answer": _unlabelled(said)} for later, said in following],
        "followed": style_of(_unlabelled(answer)) != "terse" and 2 * short > _NEXT,
    }


def _unlabelled(answer: Answer) -> str:
    return answer.text.removeprefix("[demo model] ")


async def _exam(
    chat: Loopback, questions: Sequence[FactQuestion], name: str, screen: show.DemoPrinter
) -> list[str]:
    """The answers to held-out questions, none of which is rated."""
    answers: list[str] = []
    for number, question in enumerate(questions):
        place = f"{name}-{number:03d}"
        answers.append(_unlabelled(await chat.say(question.text, channel=place, name=place)))
        screen.asking(name, number + 1, len(questions))
    return answers


async def _rate(
    chat: Loopback, questions: Sequence[FactQuestion], like: str, seed: int, screen: show.DemoPrinter
) -> None:
    """Ask, look, react: forty times. Private chats teach only with their person's consent."""
    await chat.command("share", "on")
    rater = SimulatedRater(like, RATER_ERROR, seed)
    chosen = Random(seed + 1).sample(questions, RATINGS)  # noqa: S311
    for number, question in enumerate(chosen):
        place = f"rate-{number:03d}"
        answer = await chat.say(question.text, channel=place, name=place)
        text = _unlabelled(answer)
        value = rater.rate(question.text, text)
        await chat.react(answer, "👍" if value > 0 else "👎")
        screen.rated(number + 1, RATINGS, question.text, text, value)


def _fresh(home: Path) -> Path:
    """An empty state directory of the demo's own; only one that a demo made is ever removed."""
    if home.exists():
        if not (home / _MARKER).exists():
            raise GoodbotError(phrase("demo_not_made", home=str(home)))
        trees.remove(home)
    home.mkdir(mode=0o700, parents=True)
    (home / _MARKER).touch()
    return home
