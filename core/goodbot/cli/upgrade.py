# SPDX-License-Identifier: Apache-2.0
"""`goodbot upgrade --check`: whether a newer goodbot can be installed. It installs nothing.

The package index that pip is configured for is asked, by this environment's own pip, in a process
that gets none of our tokens.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from importlib import metadata
from typing import Any

from goodbot.base import packages, spawn
from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.packages import NAME
from goodbot.base.printing import print_answer, printable, say
from goodbot.cli.asking import agrees

_SECONDS = 60.0
_DATA = (
    "The first start of a new version backs the data up before it changes it; "
    "`goodbot upgrade --back` makes the data fit the release before."
)


def main(arguments: argparse.Namespace) -> int:
    """0: up to date, or newer and named; 1: it could not be found out."""
    if arguments.check == arguments.back:
        raise UsageError("type `goodbot upgrade --check`, or `goodbot upgrade --back`")
    if arguments.back:
        return _back(arguments)
    installed, origin = metadata.version(NAME), packages.origin()
    if source := origin.checkout:
        again = packages.pip_line("--editable", _wanted(str(source)))
        steps = [f"git -C {shlex.quote(str(source))} pull", again]
        text = f"goodbot {installed} runs from the source in {source}: `{steps[0]}`, then `{steps[1]}`."
        data: dict[str, Any] = {"available": None, "source": str(source), "commands": steps}
    elif origin.file:
        text = (
            f"goodbot {installed} was installed from {origin.file}: there is no place to ask for a "
            "newer one. Get one where you got that, and install it in the same way."
        )
        data = {"available": None, "source": str(origin.file), "commands": []}
    elif available := _available(installed):
        steps = [packages.pip_line("--upgrade", _wanted(NAME))]
        text = f"goodbot {installed} is installed, {available} is available: `{steps[0]}`."
        data = {"available": available, "source": None, "commands": steps}
    else:
        text = f"goodbot {installed} is the newest that your package index has."
        data = {"available": None, "source": None, "commands": []}
    if data["commands"]:
        text += f"\nStop goodbot before, start it after. {_DATA}"
    print_answer({"text": text, "data": {"installed": installed, **data}}, as_json=arguments.json)
    return 0


def _back(arguments: argparse.Namespace) -> int:
    """One release back, after it was said what that gives up."""
    import asyncio

    from goodbot.store import downgrade

    given_up = asyncio.run(downgrade.given_up(arguments.home))
    if given_up:
        lost = "".join(f"\n  {line}" for line in given_up)
        say(f"Going back one release gives up{lost}", file=sys.stderr)
        if not agrees("Go back?", yes=arguments.yes):
            raise GoodbotError("nothing was changed")
    text = asyncio.run(downgrade.step_back(arguments.home))
    data = {"given_up": list(given_up)}
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0


def _available(installed: str) -> str | None:
    """The newer version that pip would install; None if there is none. Raises GoodbotError."""
    command = (
        *spawn.python("-m", "pip"),
        "install",
        "--dry-run",
        "--no-deps",
        "--ignore-installed",  # else pip is content with what is here when the index is silent
        "--only-binary",
        ":all:",  # no wheel, no answer: building one would run its code
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
        "--report",
        "-",
        f"{NAME}>={installed}",
    )
    try:
        done = spawn.run(*command, seconds=_SECONDS, environ=packages.install_environment())
    except TimeoutError:
        raise GoodbotError(
            f"the package index did not answer within {_SECONDS:.0f} s: try again later"
        ) from None
    if done.returncode:
        if "(from versions: " in done.stderr and "(from versions: none)" not in done.stderr:
            return None  # the index knows goodbot, and nothing as new as this
        raise GoodbotError(_reason(done.stderr))
    try:
        found = str(json.loads(done.stdout)["install"][0]["metadata"]["version"])
    except (ValueError, LookupError, TypeError):
        raise GoodbotError("pip gave no report: it must be 22.2 or newer") from None
    return found if found != installed else None


def _reason(said: str) -> str:
    if "No module named pip" in said:
        return "this environment has no pip to ask: let the tool that made it look for a newer goodbot"
    if "no such option" in said:
        return f"pip must be 22.2 or newer: `{packages.pip_line('--upgrade', 'pip')}`"
    errors = [line for line in said.splitlines() if line.startswith("ERROR: ")]
    last = printable(errors[-1] if errors else "").removeprefix("ERROR: ")[:200]
    told = f" (pip says: {last})" if last else ""
    return f"no goodbot was found in your package index: is this machine offline?{told}"


def _wanted(what: str) -> str:
    """`what` with the extras that are installed now: `goodbot[telegram,torch]`."""
    extras = packages.extras_here()
    return f"{what}[{','.join(extras)}]" if extras else what
