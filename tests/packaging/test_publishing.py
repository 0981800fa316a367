# SPDX-License-Identifier: Apache-2.0
"""The workflow that would publish a release: it holds no password, and each job may do what it must alone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.architecture.source import ROOT
from tests.support import require

FILE = ROOT / ".github/workflows/publish.yml"
MAY = {
    "build": {"contents": "read"},
    "publish": {"id-token": "write", "attestations": "write", "contents": "read"},
    "page": {"contents": "write"},
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
    assert re.findall(r"\$\{\{ *(.+?) *\}\}", text) == ["github.token", "github.event.release.tag_name"]


def test_what_is_published_is_built_apart_attested_and_told(workflow: dict[Any, Any]) -> None:
    jobs = workflow["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[\w./-]+", one) for one in used)
    assert [one for one in used if "attest" in one or "publish" in one]
    assert (jobs["publish"]["needs"], jobs["publish"]["environment"]) == ("build", "pypi")
    assert not [step for step in jobs["publish"]["steps"] if "run" in step], "no code of ours has its rights"
    said = "\n".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert "cmp again/*.whl dist/*.whl" in said
    assert "cyclonedx-py environment" in said
