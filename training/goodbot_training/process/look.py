# SPDX-License-Identifier: Apache-2.0
"""How a model's chat template and its files go together: `python -m goodbot_training.process.look DIRECTORY`.

One JSON object on stdout: `{"refused": "…"}` where the template cannot be used, else `{"helped": […]}`: what
goodbot has to help, and a program that has the model's files alone would get wrong. `worded` and `parts` tell
the same in parts (`docs/worker-protocol.md`). No weights are read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from goodbot.base.errors import TrainingError
from goodbot.base.worded import said_by
from goodbot.base.worded_parts import parts_of


def look(directory: Path) -> dict[str, Any]:
    """What there is to say of a model directory."""
    from goodbot_training.backends.chat import ChatTemplate, check_model_directory

    try:
        chat = ChatTemplate(directory, check_model_directory(directory))
    except TrainingError as error:
        return {"refused": str(error), **parts_of(said_by(error))}
    return {"helped": list(chat.helped), "parts": [*map(parts_of, chat.helped)]}


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]))))
