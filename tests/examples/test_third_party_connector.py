# SPDX-License-Identifier: Apache-2.0
"""The example distribution: built, installed, off until named, true to the contract."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest

from tests.examples.support import ROOT, python, require_backend
from tests.support import require

EXAMPLE = ROOT / "examples" / "third_party_connector"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the example installed from its wheel."""
    for module in ("build", "hatchling", "httpx"):
        require(module)
    work = tmp_path_factory.mktemp("example")
    source = work / "source"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "dist", ".*"))
    done = python("-m", "build", "--wheel", "--no-isolation", "--outdir", ".", "source", cwd=work)
    assert done.returncode == 0, done.stdout + done.stderr
    [wheel] = work.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert tops == {"goodbot_matrixlike", "goodbot_matrixlike-0.1.0.dist-info"}
    site = work / "site"
    done = python(
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        "--target",
        str(site),
        str(wheel),
        cwd=work,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return site


def plugin(site: Path, home: Path, config: str) -> dict[str, str]:
    """What `goodbot plugins` says of the example under a config."""
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(config)
    done = python(
        "-m", "goodbot", "--home", str(home), "plugins", "--json", cwd=home, environ={"PYTHONPATH": str(site)}
    )
    assert done.returncode == 0, done.stderr
    plugins = json.loads(done.stdout)["plugins"]
    return next(info for info in plugins if info["name"] == "matrixlike")


def test_it_is_off_until_the_config_names_it(site: Path, tmp_path: Path) -> None:
    require_backend()
    off = plugin(site, tmp_path / "off", "")
    assert (off["state"], off["distribution"]) == ("off", "goodbot-matrixlike")
    on = plugin(site, tmp_path / "on", '[plugins]\nenable = ["matrixlike"]\n')
    assert (on["state"], on["error"]) == ("loaded", "")


def test_doctor_names_what_it_still_needs(site: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[plugins]\nenable = ["matrixlike"]\n[connectors.matrixlike]\nowners = ["@me:test"]\n')
    environ = {"PYTHONPATH": str(site), "GOODBOT_MATRIXLIKE_TOKEN": ""}
    words = ("-m", "goodbot", "--home", str(tmp_path), "doctor")
    done = python(*words, cwd=tmp_path, environ=environ)
    assert "fail  matrixlike token GOODBOT_MATRIXLIKE_TOKEN is not set" in done.stdout
    assert "ok    matrixlike: transport nobody can read along" in done.stdout
    config.write_text(config.read_text().replace("owners", "owner"))
    done = python(*words, cwd=tmp_path, environ=environ)
    assert f"{config}:4: [connectors.matrixlike] unknown key 'owner'" in " ".join(done.stdout.split())


def test_its_own_tests_pass_against_the_installed_wheel(site: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(EXAMPLE / "pyproject.toml", tmp_path)
    environ = {"PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}
    done = python("-m", "pytest", "-p", "no:cacheprovider", "-q", cwd=tmp_path, environ=environ)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 40
    skipped = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert all("matrixlike declares no" in line for line in skipped), skipped


def test_the_readme_counts_lines_honestly() -> None:
    told = re.findall(r"^\| `([^`]+)` \| (\d+) \|", (EXAMPLE / "README.md").read_text(), re.M)
    counted = [(name, str(len((EXAMPLE / name).read_text().splitlines()))) for name, _ in told]
    assert told == counted
