# SPDX-License-Identifier: Apache-2.0
"""Cut one version's part out of CHANGELOG.md, for the page of the release.

`python docs/tools/release_notes.py v0.2.0 https://github.com/OWNER/goodbot/blob/v0.2.0/` prints it. Links
into the repository lead to that address, since the page of a release has no directory of its own.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).parents[2] / "CHANGELOG.md"


def cut(changelog: str, tag: str, address: str) -> str:
    """What stands under the heading of a version, without it.

    Args:
        changelog: All of it; a version's heading is `## 0.2.0 (2026-12-24)`.
        tag: `v0.2.0`, or `0.2.0`.
        address: What a link into the repository begins with.

    Returns:
        Markdown, with a line break at its end.

    Raises:
        ValueError: It tells of no such version, or nothing of it.
    """
    version = tag.removeprefix("v")
    for part in changelog.split("\n## ")[1:]:
        heading, _, body = part.partition("\n")
        if heading.split(" ")[0] == version and body.strip():
            return re.sub(r"\]\((?!https?:|#)", f"]({address}", body.strip()) + "\n"
    raise ValueError(
        f"CHANGELOG.md tells nothing of {version}: `make changelog VERSION={version}` comes first"
    )


if __name__ == "__main__":
    try:
        sys.stdout.write(cut(CHANGELOG.read_text(encoding="utf-8"), sys.argv[1], sys.argv[2]))
    except ValueError as error:
        sys.exit(str(error))
