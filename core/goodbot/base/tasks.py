# SPDX-License-Identifier: Apache-2.0
"""How tasks are ended."""

from __future__ import annotations

import asyncio
from typing import Any


async def end_tasks(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel those that there are, and wait until each has ended, whatever it ends with."""
    there = [task for task in tasks if task is not None]
    for task in there:
        task.cancel()
    await asyncio.gather(*there, return_exceptions=True)
