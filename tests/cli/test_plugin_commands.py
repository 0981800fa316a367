# SPDX-License-Identifier: Apache-2.0
"""A third party's command is there when the config enables its plugin, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support import patience

_PLUGIN = """
from goodbot import hookimpl

@hookimpl
def register_commands(subparsers):
    subparsers.add_parser("squawk", help="say it").set_defaults(run="parrot:squawk")

def squawk(arguments):
    print("squawk!", arguments.home.name)
    return 7
"""


def _install(site: Path) -> None:
    """The plugin as an installed distribution, without pip."""
    info = site / "parrot-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[goodbot]\nparrot = parrot\n")
    (site / "parrot.py").write_text(_PLUGIN)


def _goodbot(site: Path, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "goodbot", "--home", str(home), "squawk"],
        capture_output=True,
        text=True,
        timeout=patience(30),
        env={**os.environ, "PYTHONPATH": str(site)},
    )


def test_an_enabled_plugin_brings_its_command(tmp_path: Path) -> None:
    site, home = tmp_path / "site", tmp_path / "home"
    _install(site)
    home.mkdir()

    done = _goodbot(site, home)
    assert done.returncode == 2
    assert "there is no command 'squawk'" in done.stderr

    (home / "config.toml").write_text('[plugins]\nenable = ["parrot"]\n')
    done = _goodbot(site, home)
    assert (done.returncode, done.stdout) == (7, "squawk! home\n"), done.stderr
