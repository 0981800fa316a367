# SPDX-License-Identifier: Apache-2.0
"""The small program that Claude Code runs at each hook: it passes on what it is told, and is quiet.

Needs a POSIX shell and `curl`. It speaks through goodbot's Unix socket, where nobody else can listen while
goodbot is down; to the port only where goodbot has no socket (`[http] socket = false`). The token is in a
file that only its owner reads: neither Claude Code's settings (which people put under version control) nor
any command line has it.
"""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

from goodbot_connectors.claude_code.payloads import EXPANDED, STOPPED
from goodbot_connectors.claude_code.settings_file import PATH

NAME = "hook.sh"
HEADER = "header"
QUIET = "told"
"""An empty file: that goodbot is not running has been said, until it answers again."""
MISSED = "missed"
"""A directory: an empty file for each session that had something to say while nobody listened."""
BY_SOCKET = "--unix-socket"
DOWN = "goodbot is not running, so this answer is not kept. Start it: goodbot run"
DOWN_RATING = "goodbot is not running, so nothing was rated. Start it: goodbot run"

_TEXT = """\
#!/bin/sh
# Written by `goodbot connect claude_code`, removed by `goodbot disconnect claude_code`.
# It passes what Claude Code tells a hook on to goodbot, and ends with 0 whatever happens.
here={here}
case "$1" in {expanded}) seconds=33 ;; *) seconds=4 ;; esac
said=$(cat)
if answer=$(printf '%s' "$said" | curl --silent --fail --noproxy '*' --connect-timeout 1 \\
    --max-time "$seconds" --header "@$here/{header}" --header 'Content-Type: application/json' \\
    --data-binary @- {where})
then
    rm -f "$here/{quiet}"
    printf '%s\\n' "$answer"
    exit 0
elif [ "$1" = {expanded} ]; then
    printf '%s\\n' {blocked}
    exit 0
fi
# goodbot has not heard of this turn: it must not take the answer before it for the last one.
case $said in
*'"prompt":"/rl"'* | *'"prompt":"/rl '* | *'"prompt":"/rl:'*) ;;
*)
    session=$(printf '%s' "$said" | tr ',{{' '\\n\\n' |
        sed -n 's/^ *"session_id" *: *"\\([A-Za-z0-9_-]*\\)".*/\\1/p' | head -n 1)
    if [ -n "$session" ]; then {{ true >"$here/{missed}/$session"; }} 2>/dev/null; fi ;;
esac
if [ "$1" = {stopped} ] && [ ! -e "$here/{quiet}" ]; then
    {{ true >"$here/{quiet}"; }} 2>/dev/null
    printf '%s\\n' {notice}
fi
exit 0
"""


def possible() -> bool:
    """Whether the script can run here."""
    return shutil.which("curl") is not None and shutil.which("sh") is not None


def text(here: Path, address: str, socket: Path | None) -> str:
    """The script, for a directory of ours: it speaks through `socket`, without one to `address`."""
    blocked = {
        "decision": "block",
        "reason": DOWN_RATING,
        "hookSpecificOutput": {"hookEventName": EXPANDED, "suppressOriginalPrompt": True},
    }
    where = shlex.quote(address + PATH)
    if socket is not None:
        where = f"{BY_SOCKET} {shlex.quote(str(socket))} http://127.0.0.1{PATH}"
    return _TEXT.format(
        here=shlex.quote(str(here)),
        where=where,
        header=HEADER,
        quiet=QUIET,
        missed=MISSED,
        expanded=EXPANDED,
        stopped=STOPPED,
        blocked=shlex.quote(json.dumps(blocked)),
        notice=shlex.quote(json.dumps({"systemMessage": DOWN})),
    )


def command(here: Path) -> str:
    """How a shell starts it."""
    return shlex.quote(str(here / NAME))
