# SPDX-License-Identifier: Apache-2.0
"""All settings for a page, for owners alone; what gives nobody power can be changed there.

What is not in `OPEN` is shown and not changed: a new setting is none that a browser may set until
somebody has thought about it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from goodbot import config as configuration
from goodbot.api.commands import Grant
from goodbot.api.events import UserRef
from goodbot.api.registry import reward_policy
from goodbot.api.settings_page import Setting, SettingsSeen, SettingValue, SettingWanted
from goodbot.base.errors import GoodbotError, StoreError, UsageError
from goodbot.base.redact import redact
from goodbot.commands.audit import NOT_ALLOWED, audit
from goodbot.commands.overview import in_private
from goodbot.commands.places import places
from goodbot.config import Config, Grants
from goodbot.config.described import Described, described
from goodbot.config.file import ConfigFile
from goodbot.learning.training import anchors
from goodbot.learning.training.settings import training_settings

if TYPE_CHECKING:
    from goodbot.commands.services import Services

_WORDS = ("serving.system_prompt", "training.anchors")
"""They may hold anybody's words, and the trail is for ever."""
_OPEN = {
    "serving": "ask max_tokens thinking system_prompt notes history history_tokens language stars"
    " buttons messages_per_minute megabytes_per_day ratings_per_day seed",
    "serving.sampling": "temperature top_k top_p min_p repetition_penalty",
    "training": "schedule min_ratings held_out start_small reward idle_seconds quiet_hours on_battery"
    " max_load max_gpu rater_share duplicate_limit age_half_life from_others replay_share anchors on_alarm"
    " outvoted",
    "training.settings": "preset objective",
    "judge": "weight share minutes episodes",
    "adapters": "keep",
    "privacy": "unrated_days",
    "log": "format level",
}
OPEN = frozenset(f"{section}.{name}" for section, names in _OPEN.items() for name in names.split()) | {
    "serving.canary"
}
_LEARNING = "training.settings."
_LEARNING_KINDS = ("switch", "whole", "number")
_NOT_OPEN = frozenset({"training.settings.base_bits"})
"""Numbers of a training that need more than a number: another package."""
_CLOSED = (
    "Only somebody at the bot's machine changes this, in the file: it can decide who may do what, "
    "what is run, or where words go."
)
_LINES = "One of them has several lines: change it in the file."
_HIDDEN = "It may hold a secret, so it is not shown here."
_MODEL = "`goodbot model use` changes it, at the bot's machine."
_NAMES = ("token", "secret", "password", "passphrase", "api_key", "apikey", "credentials")
_MEANWHILE = "Somebody has changed {key} in the file meanwhile. Nothing was changed. Look at it again first."
_LONGEST = 20_000
_MOST = 1000


async def settings_seen(services: Services, user: UserRef) -> SettingsSeen:
    """All settings, for an owner. Raises UsageError."""
    if not services.authorization.may(user, Grant.ADMINISTER):
        raise UsageError("Only owners see the settings.")
    return await asyncio.to_thread(_seen, services)


async def change_setting(services: Services, user: UserRef, wanted: SettingWanted) -> str:
    """Write one setting into the file, for an owner; says when it counts.

    Raises GoodbotError: nothing was changed.
    """
    detail: dict[str, Any] = {}
    file: ConfigFile | None = None
    before: str | None = None
    try:
        if not services.authorization.may(user, Grant.ADMINISTER):
            detail["refused"] = NOT_ALLOWED
            raise UsageError("Only owners change settings.")
        detail["setting"] = wanted.key[:100]
        file, before = await asyncio.to_thread(_change, services, wanted)
        detail["done"] = True
        if wanted.key not in _WORDS:
            detail |= {"from": wanted.before, "to": "default" if wanted.value is None else wanted.value}
    except GoodbotError:
        detail.setdefault("refused", "not done")  # its sentence may hold what was to be written
        raise
    except BaseException:
        detail["refused"] = "it was not finished"
        raise
    finally:
        await _told(services, user, detail, file, before)
    return "Saved. It counts from the next start of goodbot."


async def _told(
    services: Services, user: UserRef, detail: Mapping[str, Any], file: ConfigFile | None, before: str | None
) -> None:
    """Leave a line in the trail; without one nothing is changed."""
    try:
        await audit(in_private(services, user, "settings"), "settings", detail)
    except StoreError:
        if file is not None:
            await asyncio.to_thread(file.restore, before)
        raise


def _seen(services: Services) -> SettingsSeen:
    now = services.config
    path = now.path or now.home / "config.toml"
    known, trouble, file = now, "", None
    try:
        file = ConfigFile(now.home, now.path)
        known = configuration.parse(file.text(), home=now.home)
        _require_usable(services, known)
    except GoodbotError as error:
        trouble = redact(str(error))
    every = _every(services, now, known)
    settings = [
        _setting(one, now, known, written=file is not None and file.get(one.key) is not None) for one in every
    ]
    return SettingsSeen(settings=settings, file=str(path), trouble=trouble, places=places(services))


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
    for field in fields(Config):
        section = getattr(configs[0], field.name)
        if is_dataclass(section):
            within = {"training": services.backend.settings, "serving": services.spec.settings}
            for one in described(field.name, type(section)):
                if one.kind == "section" and (own := within.get(field.name)):
                    yield from described(one.key, own)
                elif one.kind != "section":
                    yield one
    plugged = {
        "connectors": services.plugins.connectors(),
        "features": services.plugins.features(),
        "tracking": services.plugins.trackers(),
        "filters": services.plugins.filters(),
    }
    for section, specs in plugged.items():
        for name in sorted({name for config in configs for name in getattr(config, section)}):
            if section == "connectors":
                yield from described(f"{section}.{name}", Grants)
            if spec := specs.get(name):  # a section of a free name may hold anything
                own = described(f"{section}.{name}", spec.settings)
                yield from (one for one in own if one.kind != "section")


def _setting(one: Described, now: Config, known: Config, *, written: bool) -> Setting:
    default, value, running = (_plain(said) for said in (one.default, _in(known, one), _in(now, one)))
    secret = any(_is_secret(one.key, said) for said in (default, value, running))
    told: dict[str, Any] = {} if secret else {"default": default, "value": value, "now": running}
    return Setting(
        key=one.key,
        told=one.told,
        kind=one.kind,
        choices=one.choices,
        written=written,
        secret=secret,
        why_not=_why_not(one, value, secret=secret),
        **{"default": None, "value": None, "now": None, **told},
    )


def _why_not(one: Described, value: SettingValue, *, secret: bool) -> str:
    if secret:
        return _HIDDEN
    if isinstance(value, list) and any("\n" in one for one in value):
        return _LINES
    learns = one.key.startswith(_LEARNING) and one.kind in _LEARNING_KINDS and one.key not in _NOT_OPEN
    if one.key in OPEN or learns:
        return ""
    return _MODEL if one.key == "model.path" else _CLOSED


def _in(config: Config, one: Described) -> Any:
    """What a config says of a setting, or its default."""
    found: object = config
    for name in one.key.split("."):
        found = _part(found, name)
        if found is None:
            return one.default
    return found


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


def _change(services: Services, wanted: SettingWanted) -> tuple[ConfigFile, str | None]:
    """The file, and what it was before."""
    now = services.config
    file = ConfigFile(now.home, now.path)
    before, known = file.before, configuration.parse(file.text(), home=now.home)
    one = next((one for one in _every(services, now, known) if one.key == wanted.key), None)
    if one is None:
        raise UsageError("There is no such setting.")
    setting = _setting(one, now, known, written=False)
    if setting.why_not:
        raise UsageError(setting.why_not)
    if setting.value != wanted.before:
        raise UsageError(_MEANWHILE.format(key=wanted.key))
    if file.explained(wanted.key):
        raise UsageError("Comments stand within this list: change it in the file, so that they stay.")
    if one.kind == "choice" and wanted.value not in (None, *one.choices):
        raise UsageError(f"{wanted.key} is one of: {', '.join(one.choices)}.")
    if wanted.value is None:
        file.remove(wanted.key)
    else:
        file.set(wanted.key, _sound(wanted.value))
    parsed = configuration.parse(file.text(), home=now.home)  # without the path: for people
    _require_usable(services, parsed)
    if wanted.value is not None and _plain(_in(parsed, one)) != wanted.value:
        raise UsageError("The file is written in a way that this page cannot change: change it there.")
    file.save()
    return file, before


def _sound(value: SettingValue) -> SettingValue:
    """A value that TOML holds and people can read. Raises UsageError."""
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError("That is no number.")
    if isinstance(value, int) and abs(value) >= 1 << 53:
        raise UsageError("That number is too large.")
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    if len(texts) > _MOST or sum(map(len, texts)) > _LONGEST:
        raise UsageError(f"That is too long: at most {_LONGEST} characters.")
    return value


def _require_usable(services: Services, config: Config) -> None:
    """See that what is plugged in takes it, too, as at the next start. Raises GoodbotError."""
    training_settings(config, services.backend, services.plugins.objectives(), services.model.path)
    reward_policy(services.plugins, config.training.reward)
    anchors.load(config)
