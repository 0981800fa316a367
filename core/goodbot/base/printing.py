# SPDX-License-Identifier: Apache-2.0
"""The one way to a terminal: nothing that others wrote moves its cursor, sets its title or hides text.

What is said to people goes through `say`, and a log through `printable`. `draw` is for our own sequences.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType, TracebackType
from typing import Any, TextIO

_SEQUENCE = re.compile(
    r"\x1b\[[0-?]{0,32}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC and the like: titles, links
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""C0 but for tab and newline, DEL, C1, and the marks that turn the direction of text around."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` as a terminal may get it: a model's answer must not move its cursor or set its title.

    Newlines and tabs stay. A sequence that arrives in two pieces loses only its escape character.
    """
    text = _CONTROL.sub("", _SEQUENCE.sub("", text.replace("\r\n", "\n")))
    return _SURROGATE.sub("\ufffd", text)


def one_line(text: str) -> str:
    """`text` in one line: what would end it, or is not seen, is shown as a program writes it (`\\n`).

    A name in a list that people agree to cannot begin a line that says something else.
    """
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def say_lines(lines: Iterable[str]) -> None:
    """Print a list for people on stdout, each of its entries as `one_line`."""
    for line in lines:
        say(one_line(line))


def say(text: str = "", *, file: TextIO | None = None, end: str = "\n", flush: bool = False) -> None:
    """Print a text for people, to stdout unless `file` says otherwise."""
    print(printable(text), file=file or sys.stdout, end=end, flush=flush)


def tell_errors() -> None:
    """What nobody catches is told by the printer, too: an error's text may hold what others wrote."""

    def uncaught(kind: type[BaseException], error: BaseException | None, trace: TracebackType | None) -> None:
        say("".join(traceback.format_exception(kind, error, trace)), file=sys.stderr, end="")

    sys.excepthook = uncaught
    if threading.excepthook is threading.__excepthook__:  # not where others look at it, as tests do
        threading.excepthook = lambda told: uncaught(told.exc_type, told.exc_value, told.exc_traceback)


def tell_logs() -> None:
    """What is logged while nobody has said where logs go is told by the printer, too.

    Python itself would write it raw. A quick command does without `logging`, a tenth of its time; so it is
    waited for.
    """
    if "logging" in sys.modules:
        _last_resort(sys.modules["logging"])
    elif not any(isinstance(one, _Logging) for one in sys.meta_path):
        sys.meta_path.insert(0, _Logging())


def _last_resort(logging: Any) -> None:
    """Let `logging` write printable lines where there is no handler; further lines of one are indented."""
    formatter = logging.Formatter()
    raw = formatter.format

    def line(record: Any) -> str:
        return printable(raw(record)).replace("\n", "\n  ")

    formatter.format = line
    logging.lastResort.setFormatter(formatter)


class _Logging:
    """Sees `logging` come."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        if name != "logging":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _last_resort(module)

            spec.loader.exec_module = exec_module
        return spec


def say_json(data: Any) -> None:
    """Print what a program asked for on stdout. It is plain ASCII: it may hold what people wrote."""
    print(json.dumps(data, indent=1, default=str))


def draw(sequences: str, *, file: TextIO | None = None) -> None:
    """Write as it is, at once: our own control sequences, and texts that were made `printable` before."""
    stream = file or sys.stdout
    stream.write(sequences)
    stream.flush()


def print_answer(answer: Mapping[str, Any], *, as_json: bool) -> None:
    """A command's answer on stdout. JSON is plain ASCII: it may hold what people wrote."""
    if as_json:
        say_json(answer["data"])
    else:
        say(answer["text"])
