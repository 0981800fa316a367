# SPDX-License-Identifier: Apache-2.0
"""Anchor prompts: what the gate has a new version answer, to see that nothing else has changed."""

from __future__ import annotations

from pathlib import Path

from goodbot.api.events import Message
from goodbot.base.worded import Worded
from goodbot.config import Config

_LONGEST = 4000
"""Characters of one prompt."""
_LARGEST = 1024 * 1024
"""Bytes of a file."""


def load(config: Config) -> list[list[Message]]:
    """Each prompt of `[training]` as the conversation that it begins, system prompt and all.

    `anchors` lists some, `anchors_file` names a text file with one a line (blank lines and those
    that begin with `#` are left out), relative to the state directory. Without any, the prompts
    of this round and of earlier ones serve. Raises ConfigError when the file cannot be read or holds none.
    """
    prompts = {
        "anchors": config.training.anchors,
        "anchors_file": _lines(config, config.training.anchors_file),
    }
    where = config.where("training")
    for key, given in prompts.items():
        if any(not prompt.strip() or len(prompt) > _LONGEST for prompt in given):
            wrong = Worded("an anchor prompt has 1 to {count} characters", count=f"{_LONGEST:,}")
            raise where.error(key, wrong)
    system = config.serving.system_prompt
    start: list[Message] = [{"role": "system", "content": system}] if system else []
    return [[*start, {"role": "user", "content": prompt}] for given in prompts.values() for prompt in given]


def _lines(config: Config, name: str) -> list[str]:
    if not name:
        return []
    where = config.where("training")
    path = config.home / Path(name).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            large = Worded("{path} is larger than 1 MB: a few hundred lines will do", path=path)
            raise where.error("anchors_file", large)
        lines = [line.strip() for line in content.decode().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        wrong = Worded("{path} cannot be read: {why}", path=path, why=str(error))
        raise where.error("anchors_file", wrong) from error
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise where.error("anchors_file", Worded("{path} holds no prompt: write one a line", path=path))
    return found
