# SPDX-License-Identifier: Apache-2.0
"""The smallest program that embeds goodbot: three questions and a rating.

Run it with `python examples/minimal_bot.py`. It needs a backend: `make install` brings one.
"""

import asyncio
import tempfile
from pathlib import Path

from goodbot.config import Config, Grants, ServingConfig
from goodbot.daemon import loopback
from goodbot.daemon.app import App, open_plugins

QUESTIONS = ("What is 2 + 2?", "What is the capital of France?", "Name the opposite of hot.")


async def main(home: Path) -> None:
    config = Config(home=home, serving=ServingConfig(max_tokens=48))
    plugins = open_plugins(config)
    plugins.register(loopback, "loopback")
    grants = {"loopback": Grants(owners=("owner",))}
    async with App.open(config, plugins, demo_model=True, grants=grants) as app:
        chat = loopback.of(app.connectors.running)
        for question in QUESTIONS:
            answer = await chat.say(question)
            print(f"{question} {answer.text}")
            print((await chat.react(answer, "👍")).text)
        print((await chat.command("status")).text)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory)))
