# SPDX-License-Identifier: Apache-2.0
"""NVIDIA GPUs: how much of its time the one that we would train on spends on others.

`nvidia-smi` tells the share of the last moment in which any kernel ran, and, with `pmon`, whose
they were. A server that holds memory and computes nothing uses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from goodbot.base.machine.tool import Tool


def others_gpu(tool: Tool, ours: Collection[int], *, training: bool) -> float | None:
    """Their share, 0 to 1; None without a GPU, or where ours and theirs cannot be told apart.

    `ours` are our own process ids. While a run of ours is under way (`training`) and none of them
    is listed (a container hides them), the use is as likely our own.
    """
    device = ("-i", visible_device())
    if not device[1]:
        return None
    used = _number(
        tool("nvidia-smi", *device, "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
    )
    if not used:
        return None if used is None else 0.0
    listed = tool("nvidia-smi", *device, "--query-compute-apps=pid", "--format=csv,noheader")
    pids = {int(line) for line in listed.split() if line.isdecimal()}
    if not pids & set(ours):
        return None if training else used / 100
    own = _own_share(tool("nvidia-smi", "pmon", *device, "-c", "1", "-s", "u"), ours)
    return None if own is None else max(0.0, used - own) / 100


def visible_device() -> str:
    """The first of `CUDA_VISIBLE_DEVICES`, an index or a UUID; empty where none is visible."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0].strip()
    known = first.isdecimal() or first.startswith(("GPU-", "MIG-"))
    return first if known else ""


def _own_share(table: str, ours: Collection[int]) -> float | None:
    """The percentages of our processes in `pmon`'s table; None when it does not tell them."""
    columns: list[str] = []
    shares: list[float] = []
    for line in table.splitlines():
        if line.startswith("#"):
            columns = columns or line.strip("# ").split()
            continue
        row = dict(zip(columns, line.split(), strict=False))
        if row.get("pid", "").isdecimal() and int(row["pid"]) in ours:
            if (share := _number(row.get("sm", ""))) is None:
                return None
            shares.append(share)
    return sum(shares) if shares else None


def _number(text: str) -> float | None:
    word = text.strip()
    return float(word) if word.isdecimal() else None
