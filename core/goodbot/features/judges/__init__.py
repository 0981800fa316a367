# SPDX-License-Identifier: Apache-2.0
"""Judges of the next state: `rule` for the results of tools, `model` and `server` for messages, too."""
