# SPDX-License-Identifier: Apache-2.0
"""Questions that each version is asked in the same words: pairs that differ in one thing, and an owner's own.

They are asked when an owner says so, of the version that answers, one at a time, while nobody waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from goodbot.api.report import FixedQuestion
from goodbot.api.server import GenerateRequest
from goodbot.base.errors import ConfigError, ServerError
from goodbot.base.text import clean
from goodbot.base.worded import Worded
from goodbot.inference import prompts
from goodbot.inference.prompts import Room, TooLongError
from goodbot.learning.training.settings import shape
from goodbot.store import fixed

if TYPE_CHECKING:
    from goodbot.commands.services import Services

FILE = "questions.toml"
"""In the state directory, where a person has put it."""
MOST = 200
"""Questions that are asked at once."""
_LARGEST = 256 * 1024
_LONGEST = 2000
"""Characters of a question."""
_TOKENS = 160
_SECONDS = 120.0
"""For one answer, once nobody waits."""
_WHOLE_SECONDS = 1800.0
"""For all of them: what is asked by then is kept."""
_HERE = "{}"
Table = Mapping[str, Any]


def load(home: Path) -> list[FixedQuestion]:
    """Those that ship with goodbot, then an owner's own. Raises ConfigError with a sentence."""
    numbers = count(1)
    shipped = files("goodbot.commands").joinpath("pairs.toml").read_text(encoding="utf-8")
    found = _read(tomllib.loads(shipped), None, numbers)
    path = home / FILE
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise ConfigError(Worded("is larger than 256 KB"), path=path)
        found += _read(tomllib.loads(content.decode("utf-8-sig")), path, numbers)
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise ConfigError(Worded("cannot be read: {why}", why=str(error)), path=path) from error
    if len(found) > MOST:
        many = Worded("holds too many questions: {most} at most, with ours", most=MOST)
        raise ConfigError(many, path=path)
    return found


def _read(told: Table, path: Path | None, numbers: count[int]) -> list[FixedQuestion]:
    if unknown := set(told) - {"question", "pair"}:
        none = Worded("has no {name}: [[question]] or [[pair]]", name=repr(min(unknown)))
        raise ConfigError(none, path=path)
    found: list[FixedQuestion] = []
    for one in _tables(told, "question", path):
        right = one.get("right")
        words = [right] if isinstance(right, str) else right
        if not isinstance(words, list) or not words:
            needs = Worded('a [[question]] needs right = ["…"]: a right answer holds one of these')
            raise ConfigError(needs, path=path)
        said = [_line(word, "right", path) for word in cast("list[object]", words)]
        found.append(FixedQuestion(text=_line(one.get("ask"), "ask", path), right=said))
    for one in _tables(told, "pair", path):
        question, about = (_line(one.get(name), name, path) for name in ("question", "about"))
        if _HERE not in question:
            needs = Worded("the question of a [[pair]] needs {here} where its two differ", here=_HERE)
            raise ConfigError(needs, path=path)
        number = next(numbers)
        for half in ("one", "other"):
            value = _line(one.get(half), half, path)
            text = question.replace(_HERE, value)
            found.append(FixedQuestion(text=text, about=about, value=value, pair=number))
    return found


def _tables(told: Table, name: str, path: Path | None) -> Sequence[Table]:
    given: object = told.get(name, [])
    tables = cast("list[object]", given) if isinstance(given, list) else [None]
    if not all(isinstance(one, dict) for one in tables):
        raise ConfigError(Worded("{name} is written as [[{name}]]", name=name), path=path)
    return cast("list[Table]", tables)


def _line(given: object, name: str, path: Path | None) -> str:
    text = clean(given).strip() if isinstance(given, str) else ""
    if not 1 <= len(text) <= _LONGEST:
        long = Worded("{name} is a text of 1 to {most} characters", name=name, most=f"{_LONGEST:,}")
        raise ConfigError(long, path=path)
    return text


async def ask(services: Services, told: Callable[[int, int], None]) -> tuple[int, int]:
    """Ask the version that answers all of them, and store what it says; `told` is how many of how many.

    Returns the version, and how many it has answered. Raises ConfigError, AdapterError and ServerError.
    """
    questions = await asyncio.to_thread(load, services.config.home)
    config, version = services.config.serving, await services.registry.active()
    room = Room.of(shape(services.model.path), config)
    done = 0
    told(0, len(questions))
    async with services.registry.beside(version):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WHOLE_SECONDS):
                for question in questions:
                    try:
                        prompt = prompts.compose(config.system_prompt, [], question.text, room)
                    except TooLongError:
                        continue
                    request = GenerateRequest(
                        messages=list(prompt.messages),
                        max_tokens=min(config.max_tokens, _TOKENS),
                        temperature=0.0,
                        seed=config.seed,
                        version=version,
                    )
                    answer = await services.spare.answer(request, _SECONDS)
                    await services.store.write(
                        lambda db, asked=question.text, said=answer.text: fixed.keep(
                            db, services.model.name, version, asked, said, services.clock.now()
                        )
                    )
                    done += 1
                    told(done, len(questions))
    if not done:
        raise ServerError(Worded("the model has answered none of them: try again in a few minutes"))
    return version, done
