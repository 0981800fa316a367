"""What a child goes through before it is itself: `python -P -m goodbot.cage TOLD PROGRAM …`.

`goodbot.processes` starts every program this way. This small process ties itself to its parent, gives
up core dumps, and becomes the child by `exec`: so nothing of the child ever
runs without it, and its process id is the one that the parent knows. Nothing here imports more than the
standard library.
"""
