# SPDX-License-Identifier: Apache-2.0
"""What Codex starts: pass what it says on to goodbot, and print what goodbot answers.

A copy of this file lies beside `hook` and `notify` in `<home>/connectors/codex`. It runs with the
standard library alone, imports as little as it can (Codex waits for it at each prompt), and never fails:
a goodbot that is not there costs one quiet line a session.

    python -I -S shim.py hook          reads the event from stdin, prints what the hook answers
    python -I -S shim.py notify JSON   takes the event as an argument, prints nothing
"""

import _socket  # a tenth of what `socket` costs to import
import sys

SECONDS = {"hook": 8.0, "notify": 15.0}
"""For each step of the exchange; a goodbot that hangs must not hold up its person for longer."""
CONNECTION = "connection"
"""The file beside this one (0600): `unix PATH` and `tcp HOST PORT` in the order in which they are tried,
`host NAME` for the header, `token TOKEN`."""
MISSED = "missed"
"""The directory beside this file with an empty file for each session that was told that goodbot is not there:
nothing that two sessions at once could take from each other."""
LONGEST_ID = 200
BARE = ("+1", "-1", "\U0001f44d", "\U0001f44e")
"""A whole prompt of these rates."""
WORDS = ("good", "bad", "undo", "status", "why", "help")
"""So does, or asks goodbot, `rl WORD` as a whole prompt; behind a slash any word does."""
_TONES = "\ufe0f\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_DOWN = "goodbot is not running, so this session's answers cannot be rated: `goodbot run` starts it."
_REFUSED = "goodbot could not keep what was said, so it cannot be rated: `goodbot doctor` says why."
_NOT_RATED = "Nothing was rated: "


def meant(prompt: str) -> str:
    """The words of a prompt that is meant for goodbot: `good`, `stars 4`; empty for any other prompt."""
    text = prompt.strip()
    plain = "".join(c for c in text[:16] if c not in _TONES) if len(text) <= 16 else text
    if plain in BARE:
        return "good" if plain in ("+1", BARE[2]) else "bad"
    head, rest = (*text.split(None, 1), "", "")[:2]
    if head.lower() == "/rl":
        return rest.strip() or "help"
    if head.lower() == "rl" and rest.strip().lower() in WORDS:
        return rest.strip().lower()
    return ""


def identifier(text: str) -> bool:
    """Whether it can be an id of Codex', and with that a file's name."""
    plain = text.replace("-", "").replace("_", "")
    return len(text) <= LONGEST_ID and plain.isascii() and plain.isalnum()


def main(arguments: list[str]) -> None:
    """Pass one event on. `arguments` as in `sys.argv`."""
    folder, _, _ = arguments[0].rpartition("/")
    kind = arguments[1]
    try:
        data = arguments[-1].encode("utf-8", "surrogateescape") if kind == "notify" else _stdin()
    except OSError:
        return
    reached, answer = _ask(folder, kind, data)
    if kind == "notify":
        return
    if answer is None:
        answer = _without(folder, data, _REFUSED if reached else _DOWN)
    if answer:
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()


def _stdin() -> bytes:
    return sys.stdin.buffer.read()


def _ask(folder: str, kind: str, data: bytes) -> tuple[bool, bytes | None]:
    """Whether goodbot is there, and what is to be printed; None where it took nothing."""
    places, host, token = _connection(folder)
    head = (
        f"POST /v1/codex/{kind} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    for place in places:
        connection = _connect(place, SECONDS[kind])
        if connection is None:
            continue
        try:
            connection.sendall(head.encode() + data)
            pieces: list[bytes] = []
            while piece := connection.recv(65536):
                pieces.append(piece)
        except OSError:
            return True, None
        finally:
            connection.close()
        head, _, body = b"".join(pieces).partition(b"\r\n\r\n")
        status = head[:12].partition(b" ")[2]
        return True, body if status == b"200" else b"" if status == b"204" else None
    return False, None


def _connection(folder: str) -> tuple[list[tuple[str, str]], str, str]:
    places: list[tuple[str, str]] = []
    host = token = ""
    try:
        with open(folder + "/" + CONNECTION, encoding="utf-8") as file:
            for line in file:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word in ("unix", "tcp"):
                    places.append((word, rest))
                elif word == "host":
                    host = rest
                elif word == "token":
                    token = rest
    except (OSError, ValueError):
        return [], "", ""
    return places, host, token


def _connect(place: tuple[str, str], seconds: float) -> _socket.socket | None:
    kind, where = place
    try:
        if kind == "unix":
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0)
            address: str | tuple[str, int] = where
        else:
            name, _, port = where.rpartition(" ")
            family = _socket.AF_INET6 if ":" in name else _socket.AF_INET
            connection = _socket.socket(family, _socket.SOCK_STREAM, 0)
            address = (name, int(port))
    except (OSError, ValueError, AttributeError):
        return None
    try:
        connection.settimeout(seconds)
        connection.connect(address)
        return connection
    except OSError:
        connection.close()
        return None


def _without(folder: str, data: bytes, why: str) -> bytes:
    """What the hook says when nothing was taken: no prompt that is meant for us reaches the model."""
    import json

    try:
        event = json.loads(data)
        if "agent_id" in event:
            return b""
        prompt = event.get("prompt")
        if isinstance(prompt, str) and meant(prompt):
            return json.dumps({"decision": "block", "reason": _NOT_RATED + why}).encode()
        session = event["session_id"]
        if not identifier(session):
            return b""
    except (ValueError, KeyError, TypeError, AttributeError):
        return b""
    try:
        with open(f"{folder}/{MISSED}/{session}", "x"):
            pass
    except OSError:  # it was told before
        return b""  # where that cannot be kept, it is not said at every prompt
    return json.dumps({"systemMessage": why}).encode()


if __name__ == "__main__":
    main(sys.argv)
