# SPDX-License-Identifier: Apache-2.0
"""Lay out the docs site in build/docs, from which `make docs` builds it.

A page may link to any file of the repository. So the pages lie there as they lie here, each with the files
that it links to.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build/docs"
CONFIG = ROOT / "docs/zensical.toml"
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]+)?\)")
FENCED = re.compile(r"^```.*?^```$", re.S | re.M)


def pages() -> set[Path]:
    """Every page, and every file that one of them links to."""
    found: set[Path] = set()
    todo = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/decisions").glob("*.md")]
    while todo:
        page = todo.pop()
        if page not in found:
            found.add(page)
            todo += linked(page) if page.suffix == ".md" else ()
    return found


def linked(page: Path) -> Iterator[Path]:
    """The files that a page links to."""
    for target in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        yield (page.parent / target).resolve()


def lay_out(out: Path) -> None:
    """Copy the pages and the site's config to a folder, which is emptied first."""
    shutil.rmtree(out, ignore_errors=True)
    for page in pages():
        copy = out / "pages" / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, copy)
    shutil.copyfile(CONFIG, out / CONFIG.name)


if __name__ == "__main__":
    lay_out(SITE)
