# SPDX-License-Identifier: Apache-2.0
"""A goodbot that is killed at a step of its round: `python -m tests.reliability.mortal HOME STEP`.

It rates answers, says `TURN VALUE` of each once that is acknowledged, and trains. At the step it is killed.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goodbot.api.adapters import manifest
from goodbot.api.sentences import in_words
from goodbot.learning.training import opening
from goodbot.learning.training.publish import Publisher
from goodbot.learning.training.trainer import Trainer

from tests.core.builders import open_bot

RATINGS = 8


@dataclass(frozen=True, kw_only=True)
class Step:
    """The moment before a function of the product does its work, or after."""

    owner: Any
    name: str
    after: bool = False
    when: Callable[..., bool] = lambda *_: True
    """Of its arguments: whether it is this call of it."""
    hold: int | None = None
    """Before which step the child waits: what it does in the moment of the kill is no matter of chance."""

    def await_it(self) -> None:
        """From here on who comes to it is killed."""
        real = getattr(self.owner, self.name)

        def strike(*, after: bool, args: tuple[Any, ...]) -> None:
            if after is self.after and self.when(*args):
                os.kill(os.getpid(), signal.SIGKILL)

        @functools.wraps(real)
        async def awaited(*args: Any, **keywords: Any) -> Any:
            strike(after=False, args=args)
            done = await real(*args, **keywords)
            strike(after=True, args=args)
            return done

        @functools.wraps(real)
        def called(*args: Any, **keywords: Any) -> Any:
            strike(after=False, args=args)
            done = real(*args, **keywords)
            strike(after=True, args=args)
            return done

        setattr(self.owner, self.name, awaited if inspect.iscoroutinefunction(real) else called)


def heard(hold: int | None = None, **values: Any) -> Step:
    """Its child has said something with these values, and nothing of that is stored yet."""
    return Step(
        owner=Trainer, name="_on_event", when=lambda _, __, event: values.items() <= event.items(), hold=hold
    )


STEPS = {
    "before it looks": Step(owner=opening.Ahead, name="look"),
    "before it claims": Step(owner=opening.Ahead, name="look", after=True),
    "claimed": Step(owner=opening, name="opened", after=True),
    "loading": heard(event="progress", phase="load", hold=0),
    "checkpoint": heard(event="checkpoint", step=3, hold=3),
    "gate": heard(event="gate"),
    "files made": Step(owner=manifest, name="sync", when=lambda path: path.name == "output"),
    "files moved": Step(owner=Publisher, name="_commit"),
    "recorded": Step(owner=Publisher, name="_activate"),
    "live": Step(owner=Trainer, name="_conclude"),
}
"""In the order of a round."""


async def main(home: Path, step: Step) -> None:
    step.await_it()
    async with open_bot(home) as bot:
        bot.fake.set(train="steps", hold=step.hold)
        for number in range(RATINGS):
            answer = await bot.say(f"question {number}")
            good = number % 2 == 0
            await bot.react(answer, "👍" if good else "👎")
            print(answer.turn, 1.0 if good else -1.0, flush=True)
        await (await bot.app.scheduler.start(in_words("there is enough")))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), STEPS[sys.argv[2]]))
