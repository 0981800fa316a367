# SPDX-License-Identifier: Apache-2.0
"""A process that takes ratings from stdin and says what was stored, for tests that kill it.

In: `ID TURN TIME VALUE SOURCE` or `ID TURN TIME undo SOURCE`, one a line. Out: `ID` once the commit
has returned, or `! ID reason`. Run as `python -m tests.reliability.rater DATABASE [fsize]`.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

from goodbot.api.events import Event, RatingEvent, Receipt
from goodbot.base.errors import StoreError
from goodbot.conversation.ingest import Dispatcher
from goodbot.store import Store, runs
from goodbot.store.postgres.opened import open_postgres

from tests.core import dispatching
from tests.core.made import GRANTS, rate, retract

URL = "GOODBOT_TEST_URL"
"""Where the store is, if not in a file."""
POOL = runs.Pool(scope="default", model="fake", owners=("loopback:owner",))


def make(store: Store) -> Dispatcher:
    return dispatching.dispatcher(store, {"loopback": GRANTS}, POOL)


def parse(line: str) -> RatingEvent:
    id_, turn, time, value, source = line.split()
    if value == "undo":
        return retract(id_, int(time), turn, source=source)
    return rate(id_, int(time), float(value), turn, source=source)


async def main(path: str, limit: int = 0) -> None:
    url = os.environ.get(URL)
    store = await (open_postgres(url, Path(path)) if url else Store.open(Path(path)))
    if limit:  # a full disk: writing further fails with an error instead of a signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    dispatcher = make(store)
    stdin = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    tasks: set[asyncio.Task[None]] = set()

    async def one(event: Event) -> None:
        try:
            [receipt] = await dispatcher.submit([event], "loopback")
        except StoreError as error:
            print(f"! {event.event_id} {type(error).__name__} {error}", flush=True)
            return
        assert isinstance(receipt, Receipt)
        print(event.event_id, flush=True)

    while line := (await stdin.readline()).decode():
        if line.strip() == "more space":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            continue
        task = asyncio.create_task(one(parse(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
