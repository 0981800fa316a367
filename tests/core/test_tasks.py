# SPDX-License-Identifier: Apache-2.0
"""Tasks that are ended have ended."""

from __future__ import annotations

import asyncio

from goodbot.base.tasks import end_tasks


async def test_each_has_ended_whatever_it_ends_with() -> None:
    begun, tidied = asyncio.Event(), list[str]()

    async def slow() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            tidied.append("slow")

    async def fails() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("on its way out") from None

    tasks = [asyncio.create_task(one) for one in (slow(), fails())]
    await begun.wait()
    await end_tasks(*tasks, None)
    assert [task.done() for task in tasks] == [True, True]
    assert tidied == ["slow"]
    await end_tasks()
