# SPDX-License-Identifier: Apache-2.0
"""What a course was run with, as a short hash: one of other settings is another course."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from goodbot.config.sections import TrainingConfig

from tests.learning.arms import ARMS, PLAIN
from tests.learning.streams import STREAMS


def recipe(arm: str, stream: str) -> str:
    """Of all settings of an arm that count there."""
    team = TrainingConfig()
    settings = asdict(ARMS[arm].defaults())
    if not STREAMS[stream].contested:
        del settings["contested_strength"]
    for name, without in PLAIN.items():  # newer than courses that are kept: their hash stays
        if settings.get(name) == without:
            del settings[name]
    how = ARMS[arm]
    if how.compared:
        settings["compared"] = True
    if how.note and stream == "better":
        settings["bare"] = True  # a bare word is no example; newer than courses that are kept
    text = json.dumps([settings, team.rater_share, team.outvoted], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
