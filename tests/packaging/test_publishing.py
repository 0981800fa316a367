# SPDX-License-Identifier: Apache-2.0
"""The workflow that would publish a release: it holds no password, and each job may do what it must alone."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.examples.support import tool
from tests.support import require

FILE = ROOT / ".github/workflows/publish.yml"
MAY = {
    "build": {"contents": "read"},
    "publish": {"id-token": "write", "attestations": "write", "contents": "read"},
    "page": {"contents": "write"},
    "docs": {"contents": "read"},
    "show": {"id-token": "write", "pages": "write"},
}


@pytest.fixture(scope="module")
def workflow() -> dict[Any, Any]:
    return require("yaml").safe_load(FILE.read_text(encoding="utf-8"))


def test_each_job_may_do_what_it_must(workflow: dict[Any, Any]) -> None:
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == MAY
    assert workflow[True] == {"release": {"types": ["published"]}}, "YAML takes `on` for a truth"


def test_it_holds_no_secret_and_runs_no_words_of_others() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert "secrets." not in text
    tag = "github.event.release.tag_name"
    assert re.findall(r"\$\{\{ *(.+?) *\}\}", text) == [tag, tag, "github.token", tag, "github.token", tag]


def test_what_is_published_is_built_apart_attested_and_told(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", one) for one in used)
    assert [one for one in used if "attest" in one or "publish" in one]
    assert (jobs["publish"]["needs"], jobs["publish"]["environment"]) == ("build", "pypi")
    for name in ("publish", "show"):
        assert not [step for step in jobs[name]["steps"] if "run" in step], "no code of ours has its rights"
    said = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert "cmp again/*.whl dist/*.whl" in said
    assert "cyclonedx-py environment" in said


def test_the_docs_of_each_release_stay_beside_the_newest(workflow: dict[Any, Any]) -> None:
    """Built once, kept at their release, and laid side by side: see tests/examples/test_site.py."""
    jobs = workflow["jobs"]
    [builds] = [step["run"] for step in jobs["build"]["steps"] if "zensical build" in step.get("run", "")]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [made] = re.findall(r"^\t\$\(BIN\)/(zensical build .*)$", makefile, flags=re.M)
    assert made in builds, "as `make docs` does it"
    name = re.search(r'--file "(.+?)\$\{TAG#v\}(.+?)"', builds)
    assert name is not None
    assert tool("versions").NAME.fullmatch(f"{name[1]}0.2.0{name[2]}")
    assert (jobs["docs"]["needs"], jobs["show"]["needs"]) == ("page", "docs"), "its own is among them"
    [lays] = [step["run"] for step in jobs["docs"]["steps"] if "run" in step]
    assert "python docs/tools/versions.py pages archives/" in lays


CHANGES = """# Changelog

<!-- what is new goes below -->

## 0.2.0 (2026-12-24)

### Added
- Stars: [how](docs/training.md#stars), and [why](https://example.org).

## 0.1.0 (2026-11-21)

### Added
- All of it.

## 0.0.9 (2026-11-01)
"""


def test_the_page_of_a_release_says_what_the_changelog_says(workflow: dict[Any, Any]) -> None:
    notes = tool("release_notes")
    assert notes.cut(CHANGES, "v0.2.0", "https://code.example/blob/v0.2.0/") == (
        "### Added\n"
        "- Stars: [how](https://code.example/blob/v0.2.0/docs/training.md#stars), and [why](https://example.org).\n"
    )
    assert notes.cut(CHANGES, "0.1.0", "") == "### Added\n- All of it.\n"
    for unknown in ("v0.2", "v0.2.0-rc1", "v1.0.0", "v0.0.9", "Unreleased", ""):
        with pytest.raises(ValueError, match="make changelog"):
            notes.cut(CHANGES, unknown, "")
    cuts = [
        step["run"] for step in workflow["jobs"]["build"]["steps"] if "release_notes" in step.get("run", "")
    ]
    puts = [step["run"] for step in workflow["jobs"]["page"]["steps"] if "run" in step]
    assert len(cuts) == len(puts) == 1
    assert cuts[0].strip().endswith(">notes.md")
    assert "--notes-file notes.md" in puts[0]
    assert "python" not in puts[0], "no code of ours may write there"


def test_it_cuts_what_the_headings_are_made_like() -> None:
    made = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    assert made["title_format"] == "## {version} ({project_date})"
