# SPDX-License-Identifier: Apache-2.0
"""What Claude Code tells a hook → a value, or None for what does not concern us. Pure.

The shapes are those of Claude Code 2.1.330; `tests/connectors/claude_code/recorded` has real ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from goodbot.api.commands import parted
from goodbot.base.text import clean

from goodbot_connectors.kit.fields import Json, string

SUBMITTED = "UserPromptSubmit"
STOPPED = "Stop"
EXPANDED = "UserPromptExpansion"
COMMAND = "rl"
LONGEST = 400_000
"""Characters of one prompt or answer; a hook's whole body has at most 1 MiB."""
NOTIFICATION = "<task-notification>"
"""How the prompt begins that Claude Code itself writes when work in the background has ended."""
_LONGEST_ID = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Hook:
    """One call of a hook, of the person's own conversation."""

    event: str
    session: str
    prompt_id: str
    """The same in all hooks of one turn; but see `sessions` for prompts that had to queue."""
    prompt: str = ""
    answer: str = ""
    """What Claude said last, with STOPPED."""
    transcript: str = ""
    """The file that Claude Code writes the session into."""
    word: str = ""
    """Of `/rl WORD ARGS`, with EXPANDED."""
    args: str = ""


def hook(json: Json) -> Hook | None:
    """The call, if it is of the person's own conversation and has what it must have."""
    event, session, prompt_id = (
        string(json, name) for name in ("hook_event_name", "session_id", "prompt_id")
    )
    if json.get("agent_id") or not (identifier(session) and identifier(prompt_id)):
        return None  # what a subagent does is no turn of the person's
    common = {
        "event": event,
        "session": session,
        "prompt_id": prompt_id,
        "transcript": string(json, "transcript_path")[:4096],
    }
    if event == SUBMITTED:
        prompt = string(json, "prompt")
        if is_command(prompt) or not prompt.strip() or len(prompt) > LONGEST:
            return None
        return Hook(**common, prompt=clean(prompt))
    if event == STOPPED:
        answer = clean(string(json, "last_assistant_message")).strip()
        return Hook(**common, answer=answer if len(answer) <= LONGEST else "")
    if event == EXPANDED:
        name, _, first = string(json, "command_name").partition(":")
        if name == COMMAND:  # `/rl good ARGS`; the plugin's is `/rl:good ARGS`
            word, args = parted(f"{first} {string(json, 'command_args')}", "")
            return Hook(**common, word=word, args=args)
    return None


def is_command(prompt: str) -> bool:
    """Whether somebody typed to goodbot and not to Claude."""
    word = prompt.strip().split(None, 1)[0] if prompt.strip() else ""
    return word == f"/{COMMAND}" or word.startswith(f"/{COMMAND}:")


def identifier(text: str) -> bool:
    """Whether it can be an id of Claude Code's."""
    plain = text.replace("-", "").replace("_", "")
    return len(text) <= _LONGEST_ID and plain.isascii() and plain.isalnum()
