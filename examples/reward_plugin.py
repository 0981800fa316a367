# SPDX-License-Identifier: Apache-2.0
"""A reward policy by plugin: a bad rating counts double.

A policy is a pure function from the labels of one turn to its reward. The config names it; it runs
when an answer is rated, to know what counts, and when a training claims its ratings. The rewards are
stored with the run. This program rates four
answers and prints what a training would claim now.

Run it with `python examples/reward_plugin.py`. It needs a backend: `make install` brings one.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from goodbot import RewardPolicy, TurnRating, hookimpl
from goodbot.config import Config, Grants, ServingConfig, TrainingConfig
from goodbot.daemon import loopback
from goodbot.daemon.app import App, open_plugins
from goodbot.learning.training.claims import claim
from goodbot.store import training_pool

OWNERS = ("ann", "ben")
RATINGS = ({"ann": "👍", "ben": "👍"}, {"ann": "👍", "ben": "👎"}, {"ben": "👎"}, {"ann": "👍"})


def cautious(ratings: Sequence[TurnRating]) -> float | None:
    """The weighted mean of the labels, in which a bad one weighs double; None with no label."""
    votes = [(r.value, r.weight * (2.0 if r.value < 0 else 1.0)) for r in ratings]
    total = sum(weight for _, weight in votes)
    return sum(value * weight for value, weight in votes) / total if total else None


class Cautious:
    """The plugin. In a distribution of your own, the module itself is the plugin."""

    @hookimpl
    def register_reward_policy(self) -> RewardPolicy:
        return RewardPolicy(name="cautious", fn=cautious)


async def main(home: Path) -> None:
    # The same as `[training]` with `reward = "cautious"` in config.toml.
    training = TrainingConfig(reward="cautious", schedule="manual", min_ratings=4, held_out=1)
    config = Config(home=home, training=training, serving=ServingConfig(max_tokens=48, history=0))
    plugins = open_plugins(config)
    plugins.register(loopback, "loopback")
    plugins.register(Cautious(), "cautious")
    grants = {"loopback": Grants(owners=OWNERS)}
    async with App.open(config, plugins, demo_model=True, grants=grants) as app:
        chat = loopback.of(app.connectors.running)
        for number, reactions in enumerate(RATINGS, start=1):
            answer = await chat.say(f"What is {number} + 1?", user="ann")
            for user, emoji in reactions.items():
                await chat.react(answer, emoji, user=user)
        pool = training_pool.Pool(
            scope=app.registry.scope,
            model=app.model.name,
            owners=tuple(f"loopback:{owner}" for owner in OWNERS),
        )
        candidates = await app.store.read(lambda db: training_pool.candidates(db, pool))
    policy = plugins.reward_policies()[training.reward]
    for item in claim(candidates, policy, held_out_share=training.held_out / training.min_ratings):
        labels = " ".join(f"{rater}:{value:+.0f}" for rater, value in sorted(item.labels.items()))
        print(f"{item.reward:+.2f}  {item.split:8}  {labels}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(main(Path(directory)))
