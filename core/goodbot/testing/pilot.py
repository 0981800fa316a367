# SPDX-License-Identifier: Apache-2.0
"""`Pilot`: a whole goodbot, driven by what people do.

::

    async def test_it_learns_from_reactions(tmp_path):
        async with Pilot.open(tmp_path, training={"min_ratings": 8, "held_out": 2}) as pilot:
            answer = await pilot.say("What is 2 + 2?")
            await pilot.react(answer, "👍")
            assert (await pilot.status())["ratings"] == 1

The store, the dispatcher, the scheduler and the worker processes are the real ones; only the chat
platform is in memory (`goodbot.daemon.loopback`). It needs an installed training backend.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from goodbot.api.events import Outcome, Receipt
from goodbot.api.plugins import PluginHost
from goodbot.api.server import BASE
from goodbot.base.clock import Clock
from goodbot.base.errors import ConfigError, GoodbotError
from goodbot.config import Config, Grants, ModelConfig, ServingConfig, TrainingConfig
from goodbot.config.toml import section
from goodbot.daemon import loopback
from goodbot.daemon.app import App, open_plugins
from goodbot.daemon.loopback import OWNER, Answer, Loopback
from goodbot.learning.training.outcome import RunOutcome
from goodbot.store import runs

RATER = "rater"
TALKER = "talker"
"""Besides `loopback.OWNER`, these two have grants; anybody else is a stranger."""

_GRANTS = Grants(owners=(OWNER,), raters=(RATER,), talkers=(TALKER,))
_TRAINING = TrainingConfig(schedule="manual")
_SERVING = ServingConfig(max_tokens=48, history=0, ask="never")
_POLL_SECONDS = 0.02


class Pilot:
    """People on a platform in memory, and the goodbot that they talk to. Made by `open`."""

    def __init__(self, app: App) -> None:
        self.app = app
        """The goodbot under test, for a look inside."""
        self.chat: Loopback = loopback.of(app.connectors.running)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls,
        home: Path,
        *,
        model: Path | None = None,
        plugins: Iterable[object] = (),
        grants: Grants = _GRANTS,
        clock: Clock | None = None,
        **sections: Any,
    ) -> AsyncGenerator[Pilot]:
        """Start a goodbot in `home` and stop it at the end.

        Of what is not given, a training starts on `train` only, a conversation has no memory, and nobody is
        asked which version is better; all else is as in a config file without it.

        Args:
            home: The state directory.
            model: A model directory; by default the one that a plugin ships for demonstrations.
            plugins: What is registered beside what is installed.
            grants: Who may do what on the platform in memory.
            clock: The time; by default the machine's.
            sections: Those of `goodbot.config.Config`, each as a mapping of the keys that you want otherwise
                (`training={"min_ratings": 8}`). A whole section (`training=TrainingConfig(...)`) takes the
                place of all of it.

        Yields:
            The people, and the goodbot that they talk to.

        Raises:
            ConfigError: For a key or a value that the config file may not have either.
            MissingExtraError: When no backend is installed; and what else `App.start` raises.
        """
        config = Config(home=home, training=_TRAINING, serving=_SERVING)
        config = dataclasses.replace(
            config, **{name: _merged(config, name, given) for name, given in sections.items()}
        )
        host = open_plugins(config)
        host.register(loopback, "loopback")
        for number, plugin in enumerate(plugins):
            host.register(plugin, f"pilot-{number}")
        if not config.model.path:
            path = model or _shipped(host)
            config = dataclasses.replace(config, model=ModelConfig(path=str(path)))
        async with App.open(config, host, clock=clock, grants={"loopback": grants}) as app:
            yield cls(app)

    async def say(self, text: str, *, user: str = OWNER, channel: str = "", reply_to: str = "") -> Answer:
        """Write to the bot and wait for what it says, by default in the user's private chat.

        Args:
            text: What they write.
            user: Who writes.
            channel: Where; one whose name begins with `#` is shared. Empty: the private chat.
            reply_to: The id of the message that they answer; empty: none.

        Returns:
            The answer. That to somebody who may not talk there has no turn, and often no text.
        """
        return await self.chat.say(text, user=user, channel=channel, reply_to=reply_to)

    async def react(self, answer: Answer, emoji: str, *, user: str = OWNER) -> Receipt:
        """Put 👍 or 👎 on an answer, and wait for the commit.

        Args:
            answer: The answer.
            emoji: The reaction.
            user: Who reacts.

        Returns:
            What came of it.
        """
        return await self.chat.react(answer, emoji, user=user)

    async def unreact(self, answer: Answer, emoji: str, *, user: str = OWNER) -> Receipt:
        """Take a reaction away, and wait for the commit.

        Args:
            answer: The answer.
            emoji: The reaction.
            user: Who takes it away.

        Returns:
            What came of it.
        """
        return await self.chat.unreact(answer, emoji, user=user)

    async def command(
        self, name: str, args: str = "", *, user: str = OWNER, channel: str = "", reply_to: str = ""
    ) -> str:
        """Type `/rl NAME ARGS` and wait.

        Args:
            name: The command.
            args: The words behind it.
            user: Who types.
            channel: Where; empty: the private chat.
            reply_to: The id of the message that they answer; empty: none.

        Returns:
            What that person is told, privately.
        """
        receipt = await self.chat.command(name, args, user=user, channel=channel, reply_to=reply_to)
        return receipt.text

    async def train(self) -> RunOutcome:
        """Train on what was rated and wait for the verdict; joins a run that is under way.

        Raises GoodbotError with the reason when no run could start.
        """
        if not self.app.scheduler.training:
            receipt = await self.chat.command("train", "wait")
            # One may have begun by itself between the look and the command.
            if receipt.outcome is not Outcome.ACCEPTED and not self.app.scheduler.training:
                raise GoodbotError(receipt.text)
        while self.app.scheduler.training:
            await asyncio.sleep(_POLL_SECONDS)
        scope = self.app.registry.scope
        [run] = await self.app.store.read(lambda db: runs.last_runs(db, scope))
        version = await self.app.registry.active() if run.state == "activated" else BASE
        return RunOutcome(run=run.id, state=run.state, ending=run.ending, version=version)

    @property
    def replies(self) -> Sequence[Answer]:
        """What the bot has sent, oldest first."""
        return tuple(self.chat.replies)

    async def status(self) -> Mapping[str, Any]:
        """Return what `goodbot status --json` prints."""
        result = await self.app.commands.execute(self.chat.typed("status"))
        return result.data


def _merged(config: Config, name: str, given: Any) -> Any:
    """A section with the keys that are given, read as a config file's; a whole one as it is."""
    base = getattr(config, name, None)
    table = cast("Mapping[str, Any]", given)
    if dataclasses.is_dataclass(given) or not dataclasses.is_dataclass(base):
        return given
    read = section(type(base), table, config.where(name))
    return dataclasses.replace(cast("Any", base), **{key: getattr(read, key) for key in table})


def _shipped(plugins: PluginHost) -> Path:
    """The directory of the model that a plugin ships; named as such, its answers bear no label."""
    for spec in plugins.models().values():
        if spec.demo:
            return spec.path
    raise ConfigError("no plugin ships a model: give `Pilot.open` one")
