# SPDX-License-Identifier: Apache-2.0
"""Lay the docs sites of all releases side by side, with the list from which a reader chooses.

`python docs/tools/versions.py FOLDER ARCHIVE …`: each archive is a site that was built, by the name of its
version: `goodbot-docs-0.2.0.tar.gz`. The site's own menu of versions reads the list, which is in mike's form.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tarfile
from collections.abc import Iterable
from pathlib import Path

NAME = re.compile(r"goodbot-docs-(\d+\.\d+\.\d+)\.tar\.gz")
REDIRECT = """\
<!doctype html>
<meta charset="utf-8">
<title>goodbot</title>
<meta http-equiv="refresh" content="0; url={version}/">
<a href="{version}/">goodbot {version}</a>
"""


def side_by_side(archives: Iterable[Path], out: Path) -> list[str]:
    """Unpack each into a folder of its version, and lead whoever names none to the newest.

    Args:
        archives: The sites.
        out: Where to; it is emptied first.

    Returns:
        The versions, newest first.

    Raises:
        ValueError: There is none, or a name is not of that form.
    """
    found: dict[str, Path] = {}
    for archive in archives:
        if (name := NAME.fullmatch(archive.name)) is None:
            raise ValueError(f"{archive.name} is no goodbot-docs-X.Y.Z.tar.gz")
        found[name[1]] = archive
    if not found:
        raise ValueError("no archive is named")
    versions = sorted(found, key=lambda one: [int(part) for part in one.split(".")], reverse=True)
    shutil.rmtree(out, ignore_errors=True)
    for version in versions:
        with tarfile.open(found[version]) as archive:
            archive.extractall(out / version, filter="data")
    listed = [
        {"version": one, "title": one, "aliases": ["latest"] if one == versions[0] else []}
        for one in versions
    ]
    (out / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (out / "index.html").write_text(REDIRECT.format(version=versions[0]), encoding="utf-8")
    return versions


if __name__ == "__main__":
    try:
        side_by_side(map(Path, sys.argv[2:]), Path(sys.argv[1]))
    except ValueError as error:
        sys.exit(str(error))
