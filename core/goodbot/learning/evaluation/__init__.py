# SPDX-License-Identifier: Apache-2.0
"""Which version is better? Owners are asked, blind, after a round that has passed its gate.

::

    the pointer moves, or the version is held → `preparing` makes pairs of answers in spare time
      → `ab_test` asks each owner about their own → `rule` says whether the new one has lost
      → it stays | goes live | goes back, in one transaction with the end of the question

`blind` holds the words, `side_by_side` what `compare v6 v7 PROMPT` shows, `report`, `weekly` and
`leaderboard` what it adds up to. The state is in the store (`goodbot.store.comparisons`), so that a
restart goes on.
"""
