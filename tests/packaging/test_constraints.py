# SPDX-License-Identifier: Apache-2.0
"""constraints.txt: whatever an install brings has one version, so that every install is the same."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.architecture.source import ROOT, pyproject

LINES = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINNED = {
    canonicalize_name(name): Version(version)
    for name, _, version in (line.partition("==") for line in LINES if not line.startswith("#"))
}


def brought() -> Iterator[tuple[str, Version]]:
    """What the project needs here under any extra and is installed, with all that this needs itself."""
    project = pyproject()["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    open_ = [Requirement(text) for group in groups for text in group]
    seen: set[tuple[str, frozenset[str]]] = set()
    while open_:
        one = open_.pop()
        name, extras = canonicalize_name(one.name), frozenset(one.extras)
        if (name, extras) in seen or name == "goodbot":
            continue
        seen.add((name, extras))
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of an extra that was not asked for
            continue
        yield name, Version(found.version)
        for text in found.requires or ():
            needed = Requirement(text)
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in ("", *extras)
            ):
                open_.append(needed)


def test_everything_that_is_installed_for_us_is_pinned_to_what_is_installed() -> None:
    here = dict(brought())
    assert {"aiohttp", "pluggy", "pytest"} <= set(here), "the scan has lost its subject"
    assert [name for name in here if name not in PINNED] == []
    other = {
        name: (str(version), str(PINNED[name]))
        for name, version in here.items()
        if version.public != PINNED[name].public
    }
    assert other == {}, "installed, pinned"


def test_the_pins_are_exact_in_order_and_named_once() -> None:
    pins = [line for line in LINES if not line.startswith("#")]
    assert all(line.count("==") == 1 for line in pins)
    names = [line.partition("==")[0].casefold() for line in pins]
    assert names == sorted(set(names))
