# SPDX-License-Identifier: Apache-2.0
"""The docs site: every page is in its navigation, and every file that a page links to is laid out with it."""

from __future__ import annotations

import json
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.support import ROOT, tool

SITE = tool("site")


def entries(part: Any) -> Iterator[str]:
    """The pages that a part of the navigation names."""
    if isinstance(part, str):
        yield part
    for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from entries(below)


def test_every_page_is_in_the_navigation_once() -> None:
    config = tomllib.loads(SITE.CONFIG.read_text(encoding="utf-8"))["project"]
    named = list(entries(config["nav"]))
    pages = {str(path.relative_to(ROOT)) for path in (*ROOT.glob("docs/*.md"), ROOT / "README.md")}
    assert pages - set(named) == set(), "a reader finds it by a link only"
    assert sorted(named) == sorted(set(named))
    assert {ROOT / name for name in named} <= SITE.pages()
    assert (config["docs_dir"], config["site_dir"]) == ("pages", "site")


def test_what_a_page_links_to_is_laid_out_with_it(tmp_path: Path) -> None:
    old = tmp_path / "pages/old.md"
    old.parent.mkdir()
    old.write_text("gone")
    SITE.lay_out(tmp_path)
    assert not old.exists()
    pages = list((tmp_path / "pages").rglob("*.md"))
    assert len(pages) > 50
    targets = [target for page in pages for target in SITE.linked(page)]
    assert len(targets) > 200
    assert [str(target) for target in targets if not target.is_file()] == []
    assert (tmp_path / "zensical.toml").is_file()


def test_the_sites_of_all_releases_lie_side_by_side(tmp_path: Path) -> None:
    versions, archives = tool("versions"), []
    for version in ("0.9.0", "0.10.1", "0.10.0"):
        page = tmp_path / "index.html"
        page.write_text(f"the docs of {version}")
        archives.append(tmp_path / f"goodbot-docs-{version}.tar.gz")
        with tarfile.open(archives[-1], "w:gz") as archive:
            archive.add(page, "./index.html")
    out = tmp_path / "pages"
    (out / "0.1.0").mkdir(parents=True)
    assert versions.side_by_side(archives, out) == ["0.10.1", "0.10.0", "0.9.0"]
    assert not (out / "0.1.0").exists()
    assert (out / "0.9.0/index.html").read_text() == "the docs of 0.9.0"
    listed = json.loads((out / "versions.json").read_text())
    assert [(one["version"], one["aliases"]) for one in listed] == [
        ("0.10.1", ["latest"]),
        ("0.10.0", []),
        ("0.9.0", []),
    ]
    assert "url=0.10.1/" in (out / "index.html").read_text()
    chosen = tomllib.loads(SITE.CONFIG.read_text(encoding="utf-8"))["project"]["extra"]["version"]
    assert chosen == {"provider": "mike", "default": "latest"}, "the menu reads that list"
    for wrong in ([], [tmp_path / "goodbot-docs-v1.tar.gz"], [tmp_path / "goodbot-docs-...tar.gz"]):
        with pytest.raises(ValueError, match=r"no archive|is no goodbot-docs"):
            versions.side_by_side(wrong, out)
