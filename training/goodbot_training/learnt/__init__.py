# SPDX-License-Identifier: Apache-2.0
"""What a round has changed, measured: how the version before answers, and how the new one does.

`features` makes numbers of an answer, `shift` says which of them have moved and were asked for by
ratings, `measure` samples the answers. No sentence is made here: the daemon stores the figures, and whoever
shows them words them (`goodbot.api.learnt`).
"""

from goodbot_training.learnt.measure import measure

__all__ = ["measure"]
