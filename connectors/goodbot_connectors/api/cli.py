# SPDX-License-Identifier: Apache-2.0
"""`goodbot api token add|list|remove`: which programs may use the API."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from goodbot.base.errors import GoodbotError, UsageError
from goodbot.base.printing import print_answer

from goodbot_connectors.api import SPEC
from goodbot_connectors.api.setup import curl
from goodbot_connectors.kit.bridge import clients

_CONSENT = (
    "What it reports is learnt from once it has agreed to that: "
    'POST /v1/commands {"name": "share", "args": "on"}.'
)

_MEANT = {"link": "one person with you", "unlink": "a person of its own"}


def main(arguments: argparse.Namespace) -> int:
    """Do what the last word says."""
    text, data = _DEEDS[arguments.deed](arguments)
    print_answer({"text": text, "data": data}, as_json=arguments.json)
    return 0


def _add(arguments: argparse.Namespace) -> tuple[str, Mapping[str, Any]]:
    grants, setup = arguments.program.connector(SPEC)
    name, role = arguments.name, "owner" if arguments.admin else "rater"
    token = clients.create(arguments.home, SPEC.name, name, admin=arguments.admin)
    named = name in grants.owners or (name in grants.raters and not arguments.admin)
    may = "may report answers and rate them" + (", and train and roll back" if arguments.admin else "")
    who = f"{SPEC.name}:{name}"
    deed = "unlink" if arguments.separate else "link"
    try:
        follows = arguments.program.run("people", deed, who)
    except GoodbotError as error:
        follows = f"It is not {_MEANT[deed]} yet ({error}): `goodbot people {deed} {who}` makes it that."
    if not named:
        try:
            granted = arguments.program.run("people", "grant", role, who)
            follows = granted if arguments.separate else follows
        except GoodbotError as error:
            may = f"may nothing yet ({error}): `goodbot people grant {role} {who}`"
    asked = arguments.separate and name not in grants.owners
    lines = [
        f"{name} {may}.",
        *([follows] if follows else []),
        *([_CONSENT] if asked else []),
        f"Its token, shown this once:\n  {token}",
        f"A line to try it:\n  {curl(setup.address, token)}",
    ]
    return "\n".join(lines), {"name": name, "admin": arguments.admin, "token": token}


def _list(arguments: argparse.Namespace) -> tuple[str, Mapping[str, Any]]:
    found = clients.listed(arguments.home, SPEC.name)
    lines = [
        f"{one.name:24} {'admin' if one.admin else '     '}  since "
        f"{datetime.fromtimestamp(one.created).date()}"  # noqa: DTZ006  the owner's clock
        for one in found
    ]
    listed = [{"name": one.name, "admin": one.admin, "created": one.created} for one in found]
    nobody = "No program has a token: `goodbot api token add NAME` makes one."
    return "\n".join(lines) or nobody, {"clients": listed}


def _remove(arguments: argparse.Namespace) -> tuple[str, Mapping[str, Any]]:
    name = arguments.name
    if not clients.remove(arguments.home, SPEC.name, name):
        raise UsageError(f"no program is called {name[:40]!r}: see `goodbot api token list`")
    with contextlib.suppress(GoodbotError):  # the config names it, or it may nothing
        arguments.program.run("people", "revoke", f"{SPEC.name}:{name}")
    return f"{name} comes in no more. What it has said stays.", {"name": name, "removed": True}


_DEEDS = {"add": _add, "list": _list, "remove": _remove}
