"""The child's process: the worker protocol, its values and settings, and what it tells."""
