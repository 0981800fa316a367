# SPDX-License-Identifier: Apache-2.0
"""What a config names of what plugins register."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from goodbot.base.errors import ConfigError, MissingExtraError
from goodbot.base.installed import missing_modules
from goodbot.base.suggest import instead
from goodbot.base.worded import Worded
from goodbot.config.toml import Where

if TYPE_CHECKING:
    from goodbot.api.backend import BackendSpec
    from goodbot.api.plugins import PluginHost
    from goodbot.api.rewards import RewardPolicy

_Spec = TypeVar("_Spec")


def config_error(where: Where | None, key: str, message: str) -> ConfigError:
    """Make the error for a setting that is wrong.

    Args:
        where: The section of the config; None where it came from elsewhere.
        key: The setting.
        message: What is wrong, as a sentence.

    Returns:
        The error, with the file and the line where they are known.
    """
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
    """Find what a config names among what plugins register.

    Args:
        specs: All that there are, by name.
        wanted: The name in the config.
        what: The kind of thing, in words: `reward policy`.
        where: The section of the config that names it.
        key: The setting in that section.
        also: Names of the kind that no plugin brings.

    Returns:
        The one of that name.

    Raises:
        ConfigError: Nothing has that name; it says what may have been meant.
    """
    if wanted not in specs:
        known = instead(wanted, specs, also)
        nothing = "no {what} is named {name}; {known}"
        wrong = Worded(nothing, what=Worded(what), name=repr(wanted), known=known)
        raise config_error(where, key, wrong)
    return specs[wanted]


def choose_backend(
    backends: Mapping[str, BackendSpec], wanted: str, where: Where | None = None
) -> BackendSpec:
    """Find the backend that a config names, and see that it is installed.

    Args:
        backends: All that there are, by name.
        wanted: The name in the config; `auto` is the fastest that is installed.
        where: The section of the config that names it.

    Returns:
        The backend.

    Raises:
        ConfigError: Nothing has that name.
        MissingExtraError: It is not installed.
    """
    spec = (
        automatic_backend(backends)
        if wanted == "auto"
        else registered(backends, wanted, "training backend", where, "backend")
    )
    if missing_modules(spec.requires):
        what = Worded("the {name} backend", name=wanted)
        if wanted == "auto":
            what = Worded("answering and training")
        raise MissingExtraError(what, spec.extra)
    return spec


def automatic_backend(backends: Mapping[str, BackendSpec]) -> BackendSpec:
    """The fastest that is installed, else the least to fetch. ConfigError where there is none."""
    if not backends:
        raise ConfigError(Worded("no plugin offers a training backend: install goodbot whole"))
    return automatic_backends(backends)[0]


def automatic_backends(backends: Mapping[str, BackendSpec]) -> list[BackendSpec]:
    """Those that are taken by themselves, in this order: all that are installed, the fastest first.

    Where none is, all that there are, the least to fetch first. `make` goes by the same rule. One that
    computes elsewhere is named, or not taken.
    """
    here = [one for one in backends.values() if not one.remote]
    if installed := [one for one in here if not missing_modules(one.requires)]:
        return sorted(installed, key=lambda one: -one.priority)
    return sorted(here, key=lambda one: (one.download is None, one.download or 0, -one.priority))


def reward_policy(plugins: PluginHost, wanted: str, where: Where | None = None) -> RewardPolicy:
    """Find the reward policy that a config names.

    Args:
        plugins: All plugins.
        wanted: The name in the config.
        where: The section of the config that names it.

    Returns:
        The policy.

    Raises:
        ConfigError: Nothing has that name.
    """
    return registered(plugins.reward_policies(), wanted, "reward policy", where, "reward")
