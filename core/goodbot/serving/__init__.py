"""Drivers for what answers: `embedded` runs the model in a child process of our own."""
