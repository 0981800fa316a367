# SPDX-License-Identifier: Apache-2.0
"""What one rater among several cannot do: outweigh the others, repeat himself, turn round unseen.

`weight_caps` caps what one rater weighs, `near_duplicates` lets near-repetitions count as few,
`contradictions` finds whose ratings have begun to contradict, `consensus` who is outvoted. A hidden
trigger is not the publish gate's to see: its prompts do not hold one.
All pure functions but `contradictions.alarmed`, which reads the votes.
"""
