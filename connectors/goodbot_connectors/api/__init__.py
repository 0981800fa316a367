# SPDX-License-Identifier: Apache-2.0
"""goodbot's own API: programs of this machine report answers and what became of them.

`POST /v1/turns` keeps an answer that somebody's program has given, `POST /v1/feedback` says how good
it was; `table` has every route, `proxy` those of OpenAI and Anthropic, for clients that need not
know of goodbot.
"""

from __future__ import annotations

import argparse
from typing import Any

from goodbot.api.connector import Capability, ConnectorSpec
from goodbot.api.hookspecs import hookimpl

from goodbot_connectors.api.config import ApiSettings
from goodbot_connectors.api.proxy.config import SECRETS

SPEC = ConnectorSpec(
    name="api",
    title="the API",
    factory="goodbot_connectors.api.connector:ApiConnector",
    capabilities=Capability.ROUTES,
    settings=ApiSettings,
    message_limit=100_000,
    requires=("aiohttp",),
    secrets=SECRETS,
    setup="goodbot_connectors.api.setup:ApiSetup",
    local=True,
)


@hookimpl
def register_connector() -> ConnectorSpec:
    """Offer the API."""
    return SPEC


@hookimpl
def register_commands(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add `goodbot api`."""
    parser = subparsers.add_parser("api", help="the tokens of programs that use goodbot's API")
    parser.set_defaults(group="people")
    parts = parser.add_subparsers(metavar="token", required=True)
    token = parts.add_parser("token", help="make, list and remove them")
    deeds = token.add_subparsers(metavar="add|list|remove", required=True)
    add = deeds.add_parser("add", help="let a program in; its token is shown once")
    add.add_argument("name", help="what to call the program: it rates under this name")
    add.add_argument("--admin", action="store_true", help="it may train, pause, roll back, too")
    add.add_argument(
        "--separate",
        action="store_true",
        help="a person of its own (a bot of somebody else's, a test): it has its own vote",
    )
    deeds.add_parser("list", help="which programs may come in")
    remove = deeds.add_parser("remove", help="let a program in no more")
    remove.add_argument("name")
    for name, deed in deeds.choices.items():
        deed.add_argument("--json", action="store_true", help="one JSON object")
        deed.set_defaults(run="goodbot_connectors.api.cli:main", deed=name)
