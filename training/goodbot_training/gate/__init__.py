# SPDX-License-Identifier: Apache-2.0
"""The publish gate: a veto, and, once there is enough to tell by, a claim with its interval.

A candidate is asked, and so is the base. It is refused when what it says is broken (`answers`),
when it says what the base would seldom say, which is what lost knowledge looks like, or no
longer expects what the base is sure of (`retention`), and when it understands held-out ratings
worse beyond doubt (`margin`). A style that was learnt is none of that. `measure` makes the figures,
`decide` is a pure function of them and finds the words.
"""

from goodbot_training.gate.decide import Verdict, decide
from goodbot_training.gate.measure import measure

__all__ = ["Verdict", "decide", "measure"]
