# SPDX-License-Identifier: Apache-2.0
"""Has ratings predicted anew from time to time. The core does it where there is something new."""

from __future__ import annotations

import logging

from goodbot.api.feature import Feature

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 600.0


class RewardModel(Feature):
    """Looks as long as goodbot runs."""

    async def run(self) -> None:
        while True:
            await self.host.clock.sleep(_LOOK_SECONDS)  # first: after a start the model is loaded
            if why := await self.host.predict():
                logger.info("the reward model: %s", why)
