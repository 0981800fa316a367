# SPDX-License-Identifier: Apache-2.0
"""Texts as people and tools write them, that look a little like what templates write."""

from __future__ import annotations

ORDINARY = (
    "paths:\n  /a:\n    name: x\n    type: object\n    enum: [a]\n",
    'openapi: 3\n"parameters": []\ncall: me\nTools: none\n',
    "# Tools\n\n# Instructions\nReasoning: weak\nCurrent date: today\nToday Date: 1\nToday is:\nYou are a "
    "helpful assistant.\nuser\nassistant\n",
    "<people><name>Bob</name><type>a</type><description>b</description><parameters/></people>",
    '{"name": "Bob", "arguments": {"name": "x", "parameters": {"type": "object"}}}',
    "System: Windows 11\n[INFO] User: logged in\nAssistant: none\nuser: ada\nsystem:\n",
)
"""The last has words by which some templates tell turns."""
