# SPDX-License-Identifier: Apache-2.0
"""How long is waited after a platform has refused, or was lost."""

from __future__ import annotations

import pytest
from goodbot.testing.clock import VirtualClock
from goodbot_connectors.kit.backoff import FloodError, patiently, spread


class Refusing:
    """Refuses as often as it has pauses to ask for."""

    def __init__(self, *pauses: float) -> None:
        self.pauses, self.heard = list(pauses), 0

    async def __call__(self) -> str:
        self.heard += 1
        if self.pauses:
            raise FloodError("a pause", retry_after=self.pauses.pop(0))
        return "done"


async def waited(call: Refusing, *, patient: bool = True) -> float:
    clock = VirtualClock()
    began = clock.monotonic()
    assert await patiently(clock, call, patient=patient) == "done"
    return clock.monotonic() - began


async def test_it_waits_as_long_as_is_asked() -> None:
    assert 5.0 <= await waited(Refusing(2.0, 3.0)) <= 5.5


async def test_it_waits_longer_each_time_where_the_platform_does_not_say_how_long() -> None:
    assert 7.0 <= await waited(Refusing(0.0, 0.0, 0.0)) <= 7.7


@pytest.mark.parametrize(
    ("pauses", "patient", "heard"), [((1.0,) * 9, True, 4), ((600.0,), True, 1), ((1.0,), False, 1)]
)
async def test_it_gives_up(pauses: tuple[float, ...], patient: bool, heard: int) -> None:
    call = Refusing(*pauses)
    with pytest.raises(FloodError):
        await waited(call, patient=patient)
    assert call.heard == heard


def test_who_were_cut_off_at_once_come_back_apart() -> None:
    pauses = [spread(10.0) for _ in range(50)]
    assert all(5.0 <= pause <= 10.0 for pause in pauses)
    assert len(set(pauses)) > 1
    assert spread(0.0) == 0.0
