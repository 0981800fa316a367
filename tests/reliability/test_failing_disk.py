# SPDX-License-Identifier: Apache-2.0
"""X10: after a failed write or sync nothing is acknowledged that is not stored, and it goes on."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from goodbot.store import Store

from tests.core.builders import add_turn, check_store, rows
from tests.reliability.test_durability import TURNS, events
from tests.support import patience, require_program

TRIES = 10


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.platform != "linux":
        pytest.skip("the shim is preloaded the Linux way")
    library = tmp_path_factory.mktemp("shim") / "failing_disk.so"
    source = Path(__file__).with_name("failing_disk.c")
    compiler = require_program("cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.mark.parametrize("every", [1, 29, 53])
async def test_each_kind_of_failure_is_survived(tmp_path: Path, shim: Path, every: int) -> None:
    path = tmp_path / "goodbot.db"
    store = await Store.open(path)
    for number in range(TURNS):
        await add_turn(store, f"t{number}")
    await store.close()
    lines = events(60, random.Random(every))
    switch = tmp_path / "fails"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.reliability.rater",
        str(path),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "LD_PRELOAD": str(shim), "FAILING_DISK": str(switch)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    async def say(line: str) -> str:
        process.stdin.write(line.encode())
        return (await asyncio.wait_for(process.stdout.readline(), patience(20))).decode().strip()

    acked: set[str] = set()
    refused: list[str] = []
    try:
        first, *others = lines
        assert await say(lines[first]) == first
        acked.add(first)
        switch.write_text(str(every))
        for id_ in others:
            for _ in range(TRIES):
                answer = await say(lines[id_])
                if answer == id_:
                    acked.add(id_)
                    break
                refused.append(answer)
        switch.unlink()
        for id_ in lines:
            if id_ not in acked:
                assert await say(lines[id_]) == id_, "a disk that is well again is used again"
        process.kill()  # what was acknowledged must be there without a tidy end
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    assert len(refused) > 5
    assert all("disk" in answer or "database" in answer for answer in refused), refused[0]
    assert every == 1 or len(acked) > 10, "it goes on between two failures"
    store = await Store.open(path)
    try:
        stored = await rows(store, "SELECT event_id, count(*) FROM events GROUP BY event_id")
        assert dict(stored) == dict.fromkeys(lines, 1)
        await check_store(store)
    finally:
        await store.close()
