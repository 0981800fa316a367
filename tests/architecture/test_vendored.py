# SPDX-License-Identifier: Apache-2.0
"""What others wrote and the pages load: as it was published, with its licence, far from any page."""

from __future__ import annotations

import hashlib
import tomllib

import pytest

from tests.architecture.source import ROOT, pyproject

PAGES = ROOT / "connectors/goodbot_connectors/web/pages"
FOLDER = PAGES / "vendored"
LIST = "vendored.toml"
KEPT = tomllib.loads((FOLDER / LIST).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", KEPT)
def test_each_is_what_was_published_and_has_its_licence(name: str) -> None:
    one = KEPT[name]
    found = {file: hashlib.sha256((FOLDER / file).read_bytes()).hexdigest() for file in one["files"]}
    assert found == one["files"]
    licences = [file for file in found if file.startswith("LICENSE.")]
    assert licences, "whoever gets the wheel gets the licence"
    shipped = pyproject()["project"]["license-files"]
    assert {str((FOLDER / file).relative_to(ROOT)) for file in licences} <= {*shipped}
    assert one["spdx"] in pyproject()["project"]["license"].split(" AND ")
    [script] = [file for file in found if file.endswith(".js")]
    assert f"v{one['version']} " in (FOLDER / script).read_text(encoding="utf-8")[:200]
    assert (FOLDER / script).stat().st_size < 150_000, "a phone loads it"


def test_nothing_else_lies_there() -> None:
    listed = {file for one in KEPT.values() for file in one["files"]}
    assert {path.name for path in FOLDER.iterdir()} == {*listed, LIST}


def test_only_a_worker_loads_it_where_there_is_no_page_to_write_to() -> None:
    loading = {one.name for one in PAGES.iterdir() if one.is_file() and b"vendored/" in one.read_bytes()}
    assert loading == {"highlighter.js"}
    named = {one.name for one in PAGES.iterdir() if one.is_file() and b"highlighter.js" in one.read_bytes()}
    assert named == {"highlight.js"}
    begun = (PAGES / "highlight.js").read_text(encoding="utf-8")
    assert begun.count("highlighter.js") == begun.count('new Worker("/files/highlighter.js"') == 1
