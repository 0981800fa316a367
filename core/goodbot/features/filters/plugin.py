# SPDX-License-Identifier: Apache-2.0
"""The content filters that ship with goodbot, for the plugin host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from goodbot.api.content_filter import ContentFilterSpec
from goodbot.api.hookspecs import hookimpl


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockedSettings:
    """`[filters.words]`."""

    block: tuple[str, ...] = ()
    """Words and phrases; an answer with one of them is not learnt from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonalSettings:
    """`[filters.personal]`: which personal data an answer may not hold to be learnt from."""

    email: bool = True
    """E-mail addresses."""
    phone: bool = True
    """Phone numbers."""
    iban: bool = True
    """Numbers of bank accounts, by their checksum."""
    card: bool = True
    """Numbers of payment cards, by their checksum."""
    ip: bool = True
    """Public IP addresses."""


SPECS = (
    ContentFilterSpec(
        name="words", factory="goodbot.features.filters.words:BlockedWords", settings=BlockedSettings
    ),
    ContentFilterSpec(
        name="personal", factory="goodbot.features.filters.personal:PersonalData", settings=PersonalSettings
    ),
)


@hookimpl
def register_filter() -> Sequence[ContentFilterSpec]:
    return SPECS
