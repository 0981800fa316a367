# SPDX-License-Identifier: Apache-2.0
"""The way back one release: what undoes its migrations, after a verified copy was made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from importlib.resources import files
from pathlib import Path

import aiosqlite

from goodbot.base.errors import UsageError
from goodbot.base.worded import Worded
from goodbot.config.layout import DATABASE
from goodbot.config.lock import HomeLock
from goodbot.store import backup, cipher, codec, soundness
from goodbot.store.commit_queue import explain
from goodbot.store.connection import connect, put_away, set_pragmas
from goodbot.store.migrate import check, schema, step
from goodbot.store.query import fetch, first

BEFORE = 1
"""The schema of the release before this one."""

_LEFT_OUT = "times of which no rating counts (`rollback since`): they count once they are given again"

_GIVEN_UP: dict[int, dict[str, str]] = {
    2: {
        "grants": "people named by pairing or by `people grant`: name them in config.toml",
        "links": "linked accounts: each is a rater of its own again",
        "quarantines": _LEFT_OUT,
        "set_aside": "answers that trainings have left out: they train again",
        "traces": "names of answers that other programs brought in: those of other models train no more",
        "canaries WHERE state = 'running'": "trial of a new version: what answered before goes on",
        "adapters WHERE pinned_at IS NOT NULL": "pinned versions: their files may make room, and newer "
        "ones take their place",
        "adapters WHERE waits <> ''": "versions that wait to go live: training does not go on from them",
        "pairs": "pairs of answers that owners were asked to choose between",
    },
    3: {
        "withheld": "owners who keep their private chats out of training (`share off`)",
        "turns WHERE thought <> ''": "thoughts that were kept beside their answers",
    },
    7: {"notes": "lines of what people want of answers (`/rl notes`): no answer follows them any more"},
    10: {"judgements WHERE value <> 0": "what judges made of answers that nobody rated: they train no more"},
    11: {"shifts": "what each training has changed in answers"},
    13: {"run_notes WHERE state = 'retired'": "notes that a version has learnt: prompts have them again"},
    15: {
        "quarantines WHERE turn IS NULL": _LEFT_OUT,
        "quarantines WHERE turn IS NOT NULL": "answers left out one by one: what was said of them stays away "
        "until they are rated again",
    },
    19: {"fixed_answers": "answers of versions to fixed questions (`report --pairs`)"},
    27: {"adapters WHERE scope <> 'default'": "adapters of people, channels and teams"},
    23: {"predictions": "answers of which the reward model says something: it can be computed again"},
    21: {"queues WHERE closed_at IS NULL": "open queues of answers to rate: the answers stay"},
    17: {
        "quarantines WHERE turn IS NULL AND rater IS NULL": _LEFT_OUT,
        "quarantines WHERE rater IS NOT NULL": "people whose ratings so far are left out (`rollback "
        "person`): they stay away until those people rate again",
    },
}
"""By schema: tables that the release before has no place for, and what is lost with their rows.

Where two say the same, the later one counts the rows.
"""

_NOTES: dict[int, tuple[str, ...]] = {
    2: (
        "tokens that `goodbot init` has kept: set them in the environment",
        "settings of this release: take out of config.toml what the older one does not know",
    )
}


async def given_up(home: Path) -> Sequence[str]:
    """What a step back would lose, one line each; empty if there is no step to go.

    Raises UsageError without data, BusyError while goodbot runs, StoreError, NewerDataError.
    """
    async with _alone(home) as db:
        version = await schema(db)
        if not _script(version):
            return ()
        undone = range(BEFORE + 1, version + 1)
        lines: list[str] = []
        tables = {what: table for n in undone for table, what in _GIVEN_UP.get(n, {}).items()}
        for what, table in tables.items():
            row = first(await fetch(db, f"SELECT count(*) FROM {table}"))  # noqa: S608
            if row and row[0]:
                lines.append(f"{row[0]} {what}")
        return (*lines, *(note for n in undone for note in _NOTES.get(n, ())))


async def step_back(home: Path) -> str:
    """Make the data fit the release before this one; returns the sentence to print.

    Show `given_up` to a person first. Raises like it; then nothing has changed.
    """
    path = home / DATABASE
    async with _alone(home) as db:
        version = await schema(db)
        script = _script(version)
        if not script:
            return f"The data is of schema {version}: the release before this one can read it."
        copy = await asyncio.to_thread(backup.before_change, path, version)
        await step(db, script, BEFORE)
    await asyncio.to_thread(backup.verify, path)
    return (
        f"The data is of schema {BEFORE} now: install the release before this one, and do "
        f"not start this one again. What the data was is in {copy.path}"
    )


def _script(version: int) -> str:
    """What undoes this release's migrations up to `version`, the newest first; empty: none are there."""
    folder = files("goodbot.store").joinpath("migrations", "back")
    found = sorted(
        (entry.name, entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql") and BEFORE < int(entry.name[:4]) <= version
    )
    return "\n".join(sql for _, sql in reversed(found))


@contextlib.asynccontextmanager
async def _alone(home: Path) -> AsyncGenerator[aiosqlite.Connection]:
    """The database as it is, while no other goodbot can have it."""
    path = home / DATABASE
    if not path.is_file():
        raise UsageError(Worded("there is no data in {home}", home=home))
    if cipher.is_clear(path) is False:
        unread = "the release before this one reads no encrypted data: type `goodbot decrypt` first"
        raise UsageError(Worded(unread))
    lock = HomeLock(home)
    lock.acquire()
    try:
        db = await connect(path, "mode=rw")
        opened = [db]
        try:
            opened.append(await connect(path, "mode=ro"))
            await check(db)
            await soundness.require_sound(db, path)  # a damaged one is not written to
            await set_pragmas(db)
            await db.create_function("worded", 1, codec.worded_receipt)  # pyright: ignore[reportUnknownMemberType]
            await db.create_function("sentences", 1, codec.worded_reasons)  # pyright: ignore[reportUnknownMemberType]
            yield db
        except BaseException:
            await put_away(*opened)
            raise
        for one in reversed(opened):
            await one.close()
    except cipher.errors() as error:
        raise explain(error) from error
    finally:
        lock.release()
