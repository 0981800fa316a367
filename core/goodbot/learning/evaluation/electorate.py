# SPDX-License-Identifier: Apache-2.0
"""Who is asked which of two versions is better, and whose answers that decides on."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.access.authorization import Authorization
from goodbot.api.commands import Grant
from goodbot.api.sentences import because
from goodbot.api.texts import joined, say
from goodbot.learning.adapters.scoped import ScopedRegistry
from goodbot.learning.evaluation import blind
from goodbot.learning.training.scheduler import Scheduler
from goodbot.store import Store, people
from goodbot.store.comparisons import Comparison
from goodbot.store.pools import PERSON

LOST = because("kept_found_worse")


class Electorate:
    """The owners, about the shared versions, which answer everybody."""

    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization
        self.owners = authorization.owners

    async def asked(self) -> Sequence[str]:
        """The accounts of those who are asked."""
        return self.owners()

    def may(self, account: str) -> bool:
        """Whether somebody may say at this account of theirs which is better."""
        return self._authorization.is_owner(account)

    async def place(self, version: int) -> int:
        """What the pointer says while this version answers."""
        return version

    async def stop(self, scheduler: Scheduler) -> None:
        """End the training that may go on from what has lost."""
        await scheduler.stop(LOST)

    def invitation(self, found: Comparison, language: str = "") -> str:
        """What comes before the first question."""
        return blind.invitation(found, language)


class Themselves(Electorate):
    """One person, about versions of their own, which answer nobody else."""

    def __init__(self, authorization: Authorization, store: Store, registry: ScopedRegistry) -> None:
        super().__init__(authorization)
        self._store, self._registry = store, registry

    async def asked(self) -> Sequence[str]:
        """The accounts of this person that may talk here."""
        account = self._registry.scope.removeprefix(PERSON)
        accounts = await self._store.read(lambda db: people.accounts(db, account))
        return list(filter(self.may, accounts))

    def may(self, account: str) -> bool:
        """Whether somebody may say at this account of theirs which is better."""
        return self._authorization.level_of(account) >= Grant.TALK

    async def place(self, version: int) -> int:
        """What the pointer says while this version answers: of a shared one, it names none."""
        return await self._registry.place(version)

    async def stop(self, scheduler: Scheduler) -> None:
        """End the training of theirs, if one is under way; nobody else's."""
        if scheduler.training and scheduler.runner.scope == self._registry.scope:
            await scheduler.stop(LOST)

    def invitation(self, found: Comparison, language: str = "") -> str:
        """What comes before the first question."""
        return joined(language, super().invitation(found, language), say("compare_own", language))
