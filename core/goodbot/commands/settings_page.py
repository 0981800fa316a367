# SPDX-License-Identifier: Apache-2.0
"""All settings for a page, for owners alone; all of them can be changed there.

What gives nobody power is changed at once (`settings_open`), the rest with a code that somebody types for
at the bot's machine: a browser that is signed in is not enough.
"""

from __future__ import annotations

import asyncio
import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from goodbot import config as configuration
from goodbot.api.commands import Grant
from goodbot.api.events import UserRef
from goodbot.api.settings_page import Setting, SettingsSeen, SettingValue, SettingWanted
from goodbot.api.texts import commas, reworded, say
from goodbot.base.errors import GoodbotError, StoreError, UsageError
from goodbot.base.redact import redact
from goodbot.base.suggest import TERMINAL
from goodbot.base.worded import Worded
from goodbot.commands.audit import NOT_ALLOWED, NOT_DONE, NOT_FINISHED, audit
from goodbot.commands.overview import in_private, reads
from goodbot.commands.places import places, program
from goodbot.commands.settings_open import barrier
from goodbot.commands.settings_usable import require_usable
from goodbot.config import Config, Grants
from goodbot.config.described import Described, described
from goodbot.config.file import ConfigFile

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_WORDS = ("serving.system_prompt", "training.anchors")
_PEOPLE = ("owners", "raters", "talkers", "rater_groups")
"""They may hold anybody's words, or say who somebody is, and the trail is for ever."""
_NAMES = ("token", "secret", "password", "passphrase", "api_key", "apikey", "credentials")
_LONGEST = 20_000
_MOST = 1000


async def settings_seen(services: Services, user: UserRef) -> SettingsSeen:
    """All settings, for an owner. Raises UsageError."""
    if not services.authorization.may(user, Grant.ADMINISTER):
        raise UsageError(say("see_settings", reads(services, user)))
    return await asyncio.to_thread(_seen, services, reads(services, user))


async def change_setting(services: Services, user: UserRef, wanted: SettingWanted) -> str:
    """Write one setting into the file, for an owner; says when it counts.

    Raises GoodbotError: nothing was changed.
    """
    detail: dict[str, Any] = {}
    saved: tuple[ConfigFile, str | None] | None = None
    language = reads(services, user)
    try:
        if not services.authorization.may(user, Grant.ADMINISTER):
            detail["refused"] = NOT_ALLOWED
            raise UsageError(say("set_owners", language))
        detail["setting"] = wanted.key[:100]
        file, one, setting = await asyncio.to_thread(_found, services, wanted, language)
        # First: what is wrong with a value may say what lies on this machine.
        if setting.typed and not await services.logins.allows(wanted.key, wanted.code):
            raise UsageError(say("set_code", language, key=wanted.key))
        await asyncio.to_thread(_set, services, file, one, wanted.value, language)
        if setting.typed:
            await services.logins.use_up(wanted.key)
        saved = file, file.before
        await asyncio.to_thread(file.save)
        detail["done"] = True
        if not (_named(wanted.key) or setting.secret or _is_secret(wanted.key, wanted.value)):
            detail |= {"from": wanted.before, "to": "default" if wanted.value is None else wanted.value}
    except GoodbotError:
        detail.setdefault("refused", NOT_DONE)  # its sentence may hold what was to be written
        raise
    except BaseException:
        detail["refused"] = NOT_FINISHED
        raise
    finally:
        await _told(services, user, detail, saved)
    return say("set_saved", language)


def _named(key: str) -> bool:
    """Whether the trail has the key of a setting alone."""
    return key in _WORDS or key.startswith("filters.") or key.rpartition(".")[2] in _PEOPLE


async def _told(
    services: Services, user: UserRef, detail: Mapping[str, Any], saved: tuple[ConfigFile, str | None] | None
) -> None:
    """Leave a line in the trail; without one nothing is changed."""
    try:
        await audit(in_private(services, user, "settings"), "settings", detail)
    except StoreError:
        if saved is not None:
            file, before = saved
            await asyncio.to_thread(file.restore, before)
        raise


def _seen(services: Services, language: str) -> SettingsSeen:
    now = services.config
    path = now.path or now.home / "config.toml"
    known, trouble, file = now, "", None
    try:
        file = ConfigFile(now.home, now.path)
        known = configuration.parse(file.text(), home=now.home)
        require_usable(services, known)
    except GoodbotError as error:
        trouble = redact(reworded(error, language))
    every = [*_every(services, now, known)]
    written = {one.key for one in every if file is not None and file.get(one.key) is not None}
    settings = [_setting(one, now, known, language, written=one.key in written) for one in every]
    seen = places(services, language)
    began = services.started_at
    return SettingsSeen(settings=settings, file=str(path), trouble=trouble, places=seen, started_at=began)


def _every(services: Services, *configs: Config) -> Iterator[Described]:
    """Everything that can be set here, with the names that there are of what is plugged in."""
    named = {
        "training.reward": [*services.plugins.reward_policies()],
        "training.settings.objective": [*services.backend.objectives, *services.plugins.objectives()],
    }
    for one in _described(services, *configs):
        names = named.get(one.key)
        yield replace(one, kind="choice", choices=tuple(names)) if names else one


def _described(services: Services, *configs: Config) -> Iterator[Described]:
    judge = services.plugins.judges().get(configs[-1].judge.by)
    within: dict[str, type[Any] | None] = {
        "training": services.backend.settings,
        "serving": services.spec.settings,
        "judge": judge.settings if judge else None,
    }
    for field in fields(Config):
        section = getattr(configs[0], field.name)
        if is_dataclass(section):
            for one in described(field.name, type(section)):
                if one.kind == "section" and (own := within.get(field.name)):
                    yield from described(one.key, own)
                elif one.kind != "section":
                    yield one
    yield from _plugged(services, *configs)


def _plugged(services: Services, *configs: Config) -> Iterator[Described]:
    """What plugins take: of those that the config has, and of those that it could have."""
    plugged = {
        "connectors": services.plugins.connectors(),
        "features": services.plugins.features(),
        "tracking": services.plugins.trackers(),
        "filters": services.plugins.filters(),
        "reports": services.plugins.reports(),
    }
    for section, specs in plugged.items():
        written = {name for config in configs for name in getattr(config, section)}
        for name in sorted(written | ({*specs} - {TERMINAL})):  # that one is always there
            if section == "connectors":
                yield from described(f"{section}.{name}", Grants)
            spec = specs.get(name)
            if spec and is_dataclass(spec.settings):  # a section of a free name may hold anything
                own = described(f"{section}.{name}", spec.settings)
                yield from (one for one in own if one.kind != "section")


def _setting(one: Described, now: Config, known: Config, language: str, *, written: bool) -> Setting:
    default, value, running = (_plain(said) for said in (one.default, _in(known, one), _in(now, one)))
    secret = any(_is_secret(one.key, said) for said in (default, value, running))
    told: dict[str, Any] = {} if secret else {"default": default, "value": value, "now": running}
    why, opens = barrier(one, value, known, secret=secret)
    return Setting(
        key=one.key,
        told=reworded(Worded(one.told), language),
        kind=one.kind,
        choices=one.choices,
        written=written,
        secret=secret,
        why_not=say(why, language) if why else "",
        typed=shlex.join([*program(now), "web", "--allow", one.key]) if opens else "",
        **{"default": None, "value": None, "now": None, **told},
    )


def _in(config: Config, one: Described) -> Any:
    """What a config says of a setting, or its default; nothing where its plugin is not switched on."""
    found: Any = config
    for depth, name in enumerate(one.key.split(".")):
        switches = depth == 1 and _is_table(found)
        found = _part(found, name)
        if found is None:
            return None if switches else one.default
    return found


def _is_table(of: object) -> bool:
    return isinstance(of, Mapping)


def _part(of: object, name: str) -> object:
    if isinstance(of, Mapping):
        return cast("Mapping[str, object]", of).get(name)
    return getattr(of, name)


def _plain(value: Any) -> SettingValue:
    if isinstance(value, (tuple, list)):
        return [str(one) for one in cast("tuple[object, ...]", value)]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def _is_secret(key: str, value: SettingValue) -> bool:
    """Whether a value may be a key or a password, by what it is called, or by how it looks."""
    if key.rpartition(".")[2].lower().endswith(_NAMES):
        return True
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return any(redact(text) != text or _has_password(text) for text in texts)


def _has_password(text: str) -> bool:
    try:
        return "://" in text and "@" in urlsplit(text).netloc
    except ValueError:
        return "@" in text


def _found(services: Services, wanted: SettingWanted, language: str) -> tuple[ConfigFile, Described, Setting]:
    """The file, and the setting as it is there. Raises GoodbotError: it cannot be changed like this."""
    now = services.config
    file = ConfigFile(now.home, now.path)
    known = configuration.parse(file.text(), home=now.home)
    one = next((one for one in _every(services, now, known) if one.key == wanted.key), None)
    if one is None:
        raise UsageError(say("set_unknown", language))
    setting = _setting(one, now, known, language, written=False)
    if setting.why_not and not setting.typed:
        raise UsageError(setting.why_not)
    if setting.value != wanted.before:
        raise UsageError(say("set_meanwhile", language, key=wanted.key))
    if file.explained(wanted.key):
        raise UsageError(say("set_comments", language))
    return file, one, setting


def _set(services: Services, file: ConfigFile, one: Described, value: SettingValue, language: str) -> None:
    """Set it in the file as we have it, and see that all take it. Raises GoodbotError."""
    if one.kind == "choice" and value not in (None, *one.choices):
        raise UsageError(say("set_one_of", language, key=one.key, choices=commas(language, *one.choices)))
    if value is None:
        file.remove(one.key)
    else:
        file.set(one.key, _sound(value, language))
    parsed = configuration.parse(file.text(), home=services.config.home)  # without the path: for people
    require_usable(services, parsed)
    if value is not None and _plain(_in(parsed, one)) != value:
        raise UsageError(say("set_unwritable", language))


def _sound(value: SettingValue, language: str) -> SettingValue:
    """A value that TOML holds and people can read. Raises UsageError."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(say("set_no_number", language))
    if isinstance(value, int) and abs(value) >= 1 << 53:
        raise UsageError(say("set_large", language))
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    if len(texts) > _MOST or sum(map(len, texts)) > _LONGEST:
        raise UsageError(say("too_long", language, most=_LONGEST))
    return value
