# SPDX-License-Identifier: Apache-2.0
"""What a config names of what plugins register."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from goodbot.base.errors import ConfigError
from goodbot.base.suggest import instead
from goodbot.config.toml import Where

_Spec = TypeVar("_Spec")


def config_error(where: Where | None, key: str, message: str) -> ConfigError:
    """The error with the file and the line, where they are known."""
    return where.error(key, message) if where else ConfigError(message)


def registered(
    specs: Mapping[str, _Spec],
    wanted: str,
    what: str,
    where: Where | None = None,
    key: str = "",
    *,
    also: Iterable[str] = (),
) -> _Spec:
    """The one that a config names. Raises ConfigError, with what was meant, for a name that nothing has.

    `what` is the kind of thing in words, `where` the section that names it under `key`; `also` are names
    of the kind that no plugin brings.
    """
    if wanted not in specs:
        raise config_error(where, key, f"no {what} is named {wanted!r}; {instead(wanted, specs, also)}")
    return specs[wanted]
