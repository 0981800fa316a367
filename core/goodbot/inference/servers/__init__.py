# SPDX-License-Identifier: Apache-2.0
"""Drivers for what answers: `embedded` runs the model in a child process of our own, the others talk
to a server that the owner runs. `choice` makes the configured one."""
