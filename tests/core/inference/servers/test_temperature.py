# SPDX-License-Identifier: Apache-2.0
"""At which temperature log-probs are told shows in how far tokens lie apart."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from goodbot.inference.servers import temperature
from goodbot_fakes.policy import at_temperature

TOLD = at_temperature({"a": -0.2, "b": -2.0, "c": -3.0, "d": -3.1}, 1.0)


@pytest.mark.parametrize("follows", [True, False])
async def test_it_is_seen_at_half_the_temperature(follows: bool) -> None:
    async def first(at: float) -> Mapping[str, float]:
        noisy = {token: logprob + 0.02 * len(token) for token, logprob in TOLD.items()}
        return at_temperature(noisy, at) if follows else noisy

    assert await temperature.is_followed(first) is follows


@pytest.mark.parametrize("told", [{}, {"a": -0.1}, {"a": -1.0, "b": -1.1}])
async def test_what_cannot_be_seen_is_not_believed(told: Mapping[str, float]) -> None:
    async def first(_: float) -> Mapping[str, float]:
        return told

    assert not await temperature.is_followed(first)


def test_at_one_and_when_the_likeliest_is_taken_both_are_the_same() -> None:
    assert temperature.makes_no_difference(1.0)
    assert temperature.makes_no_difference(0.0)
    assert not temperature.makes_no_difference(0.7)
