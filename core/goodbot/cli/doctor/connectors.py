# SPDX-License-Identifier: Apache-2.0
"""Each configured connector: its packages, its tokens, whose they are, what they may, its owners."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from goodbot.api.connector import ConnectorSpec
from goodbot.api.setup import Check, CheckState, ConnectorSetup, Examined, Probe, fail, ok, warn
from goodbot.api.texts import commas, explained, pauses, reworded
from goodbot.api.texts.terminal import here, phrase, rephrased
from goodbot.base.errors import ConfigError, GoodbotError, RetriableError
from goodbot.base.installed import missing_modules
from goodbot.base.packages import install_line
from goodbot.base.proxies import HttpProxy, proxy
from goodbot.base.suggest import TERMINAL
from goodbot.cli.connector_setup import prepared, setup_class, wrong_id
from goodbot.cli.doctor.checks import failed
from goodbot.cli.doctor.data import path
from goodbot.config.secrets import FILE, Secrets, SecretStore
from goodbot.conversation.connectors import CONNECTING
from goodbot.store import channels, inspection, people

_PLATFORM_SECONDS = 15.0


def probes(examined: Examined) -> list[Probe]:
    """A probe for each configured connector, and one when there is none."""
    try:
        specs = examined.plugins.connectors()
    except GoodbotError as error:
        return [_saying([failed("connectors", error)])]
    names = [name for name in examined.config.connectors if name != TERMINAL]
    if not names:
        return [_saying([ok("connectors", phrase("doc_terminal_only"))])]
    return [_probe(specs[name]) for name in names if name in specs]  # config.py tells of others


def _saying(checks: Sequence[Check]) -> Probe:
    async def run(_: Examined) -> Sequence[Check]:
        return checks

    return Probe(name="connectors", run=run)


def _probe(spec: ConnectorSpec) -> Probe:
    async def run(examined: Examined) -> Sequence[Check]:
        return [*await _account(spec, examined), *await _owners(spec, examined), *_state(spec, examined)]

    return Probe(name=spec.name, run=run, seconds=2 * _PLATFORM_SECONDS)


async def _account(spec: ConnectorSpec, examined: Examined) -> list[Check]:
    """Packages, tokens and the platform's own word; each needs the one before."""
    if missing := missing_modules(spec.requires):
        text = phrase("doc_packages", names=commas(here(), *missing))
        return [fail(spec.name, text, install_line(spec.extra) if spec.extra else "")]
    try:
        grants, settings = examined.config.connector(spec.name, spec.settings)
    except ConfigError:
        return []  # the config's line says it
    setup = setup_class(spec)
    names = spec.needs(settings)
    if names and setup and (unset := _unset(spec, setup, settings)):
        return [unset]
    if wrong := [check for name in names if (check := _token(name, setup, spec, examined))]:
        return wrong
    if setup is None:
        return [ok(spec.name, phrase("doc_no_look"))]
    asking = prepared(setup, Secrets(spec.secrets, examined.environ), settings, examined.config)
    asking.channels = sorted({*grants.channels, *await _channels(spec.name, examined)})
    through = _proxies(spec, asking, examined)
    if any(check.state is CheckState.FAIL for check in through):
        return through
    return [*through, *await _asked(spec, asking, names, examined)]


def _proxies(spec: ConnectorSpec, setup: ConnectorSetup, examined: Examined) -> list[Check]:
    """Through which proxy its platform is reached; no line where none is."""
    part = f"{spec.name} proxy"
    through: dict[str, list[str]] = {}
    try:
        for address in setup.addresses():
            found = proxy(address, examined.environ)
            through.setdefault(_way(found), []).append(urlsplit(address).hostname or address)
    except GoodbotError as error:
        return [fail(part, reworded(error, here()), exit_code=ConfigError.exit_code)]
    if not through.keys() - {_way(None)}:
        return []
    ways = (f"{commas(here(), *hosts)} {where}" for where, hosts in through.items())
    return [ok(part, pauses(here(), *ways))]


def _way(found: HttpProxy | None) -> str:
    """How somebody is reached."""
    return (
        phrase("doc_through", proxy=found.shown, variable=found.variable) if found else phrase("doc_directly")
    )


async def _channels(name: str, examined: Examined) -> list[str]:
    """The shared channels in which an owner has switched the bot on."""
    try:
        async with inspection.look(path(examined.config)) as db:
            found = await channels.everywhere(db) if await inspection.current(db) else []
    except GoodbotError:
        return []
    return [row.channel for row in found if row.connector == name]


def _unset(spec: ConnectorSpec, setup: type[ConnectorSetup], settings: Any) -> Check | None:
    """The first setting that cannot be guessed and is not there."""
    for question in setup.questions:
        if not question.optional and not getattr(settings, question.key):
            text = phrase("doc_unset", key=question.key, what=rephrased(question.text))
            fix = f"goodbot connect {spec.name}"
            return fail(f"{spec.name} settings", text, fix, exit_code=ConfigError.exit_code)
    return None


def _token(
    name: str, setup: type[ConnectorSetup] | None, spec: ConnectorSpec, examined: Examined
) -> Check | None:
    """What is wrong with one token before anybody is asked about it."""
    part, value = f"{spec.name} token", examined.environ.get(name, "")
    if not value:
        text = phrase("doc_no_token", name=name)
        return fail(part, text, f"goodbot connect {spec.name}", exit_code=ConfigError.exit_code)
    if setup is not None and (why := setup.malformed(name, value)):
        return fail(part, explained(_place(name, examined), why, here()), f"goodbot connect {spec.name}")
    return None


def _place(name: str, examined: Examined) -> str:
    try:
        where = SecretStore(examined.config.home).where(name)
    except GoodbotError:
        where = ""
    if where == "file":
        return phrase("doc_from", name=name, place=FILE)
    return phrase("doc_from_keyring" if where == "keyring" else "doc_from_environment", name=name)


async def _asked(
    spec: ConnectorSpec, setup: ConnectorSetup, names: Sequence[str], examined: Examined
) -> list[Check]:
    part = f"{spec.name} {'token' if names else 'account'}"
    places = [await asyncio.to_thread(_place, name, examined) for name in names]
    try:
        async with asyncio.timeout(_PLATFORM_SECONDS):
            who = await setup.identify()
        account = phrase("doc_account", name=who.name, account=who.account)
        checks = [ok(part, pauses(here(), account, *places))]
        async with asyncio.timeout(_PLATFORM_SECONDS):
            checks += await setup.examine()
    except RetriableError as error:
        return [warn(part, pauses(here(), reworded(error, here()), *places), phrase("doc_network"))]
    except TimeoutError:
        slow = phrase("doc_platform_slow", title=setup.title, seconds=f"{_PLATFORM_SECONDS:g}")
        return [warn(part, pauses(here(), slow, *places), phrase("doc_network"))]
    except GoodbotError as error:
        return [failed(part, error, f"goodbot connect {spec.name}")]
    return checks


async def _owners(spec: ConnectorSpec, examined: Examined) -> list[Check]:
    """Without an owner nobody can talk to the bot there, or teach it."""
    try:
        grants, _ = examined.config.connector(spec.name, spec.settings)
    except ConfigError:
        return []
    owners = {*grants.owners, *await paired(spec.name, examined, "owner")}
    part = f"{spec.name} people"
    setup = None if missing_modules(spec.requires) else setup_class(spec)
    if not owners and setup and setup.owner:
        return [warn(part, phrase("doc_no_owner"), f"goodbot connect {spec.name}")]
    if not owners and setup and not setup.pairs:
        return [ok(part, phrase("doc_owner_here"))]
    if not owners:
        return [warn(part, phrase("doc_no_owner"), f"goodbot pair {spec.name}")]
    for group in ("owners", "raters", "talkers"):
        for named in sorted(getattr(grants, group)):
            if wrong := wrong_id(setup, named):
                return [fail(part, phrase("doc_nobody", group=group, name=repr(named), why=wrong))]
    return [ok(part, phrase("doc_owners", count=len(owners)))]


async def paired(name: str, examined: Examined, role: str) -> list[str]:
    """The ids of those who were given a role by pairing or a command."""
    try:
        async with inspection.look(path(examined.config)) as db:
            grants = await people.grants(db) if await inspection.current(db) else []
    except GoodbotError:
        return []
    found = [grant.person.partition(":") for grant in grants if grant.role == role]
    return [id_ for connector, _, id_ in found if connector == name]


def _state(spec: ConnectorSpec, examined: Examined) -> list[Check]:
    """What the running daemon says of it, and of its parts."""
    states: Mapping[str, str] = (examined.daemon or {}).get("connectors") or {}
    if examined.daemon is None:
        return []
    parts = [(part, text) for part, text in states.items() if part.startswith(f"{spec.name}.")]
    wrong = [warn(part, text, phrase("doc_later")) for part, text in parts]
    retrying = spec.name in (examined.daemon.get("retrying") or ())
    return [_itself(spec, states.get(spec.name), retrying=retrying), *wrong]


def _itself(spec: ConnectorSpec, state: str | None, *, retrying: bool) -> Check:
    if state is None:
        return warn(spec.name, phrase("doc_unknown"), phrase("doc_restart"))
    if state == CONNECTING or retrying:
        return warn(spec.name, phrase("doc_apart", why=state), phrase("doc_network"))
    if state != "running":
        return fail(spec.name, phrase("doc_broken", why=state))
    return ok(spec.name, phrase("doc_runs"))
