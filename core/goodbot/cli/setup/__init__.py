# SPDX-License-Identifier: Apache-2.0
"""`goodbot init`: the questions, one module a topic, and the one moment that writes the answers.

`dialogue` asks, `draft` holds what was answered, `flow` walks through the steps, `save` writes.
"""
