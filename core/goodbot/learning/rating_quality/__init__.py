"""What one rater among several cannot do: outweigh the others, repeat himself, turn round unseen.

`shares` caps what one rater weighs, `duplicates` lets near-repetitions count as few, `flips` finds
whose ratings have begun to contradict. A hidden trigger is not the publish gate's to see: its
prompts do not hold one. All pure functions.
"""
