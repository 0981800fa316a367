# SPDX-License-Identifier: Apache-2.0
"""Completion, asked of the real shells: what `goodbot mod<TAB>` would put there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import PROGRAM, environment
from tests.cli.test_plugin_commands import _install
from tests.support import patience, require, require_program

BASH = """
source {script}
COMP_WORDS=({words})
COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
COMP_LINE="${{COMP_WORDS[*]}}"
COMP_POINT=${{#COMP_LINE}}
COMPREPLY=()
function=$(complete -p goodbot | sed 's/.*-F \\([^ ]*\\).*/\\1/')
$function goodbot "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
ZSH = """
autoload -Uz compinit; compinit -u -d {folder}/dump
fpath=({folder} $fpath); autoload -Uz _goodbot; compdef _goodbot goodbot
show() {{ print -r -- "<$BUFFER>" }}; zle -N show; bindkey '^X' show; bindkey '^I' complete-word
"""


def script(home: Path, shell: str, **env: str) -> str:
    done = subprocess.run(
        [*PROGRAM, "--home", str(home), "completion", shell],
        capture_output=True,
        text=True,
        check=True,
        env=environment(**env),
    )
    assert done.stderr == ""
    return done.stdout


def bash(folder: Path, text: str, *words: str) -> list[str]:
    """What bash would offer after these words, the last of which is not complete."""
    (folder / "goodbot.bash").write_text(text)
    line = " ".join(f"'{word}'" for word in ("goodbot", *words))
    program = BASH.format(script=folder / "goodbot.bash", words=line)
    done = subprocess.run(
        [require_program("bash"), "--norc", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return sorted(word.strip() for word in done.stdout.split("\n") if word.strip())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["mod"], ["model"]),
        (["uni"], ["uninstall"]),
        (["service", ""], ["install", "restart", "status", "uninstall"]),
        (["service", "un"], ["uninstall"]),
        (["completion", ""], ["bash", "fish", "zsh"]),
        (["upgrade", "--che"], ["--check"]),
        (["--bro"], ["--browser"]),
        (["xyzzy"], []),
    ],
)
def test_bash(tmp_path: Path, words: list[str], offered: list[str]) -> None:
    assert bash(tmp_path, script(tmp_path / "home", "bash"), *words) == offered


def test_bash_completes_files_where_a_file_belongs(tmp_path: Path) -> None:
    (tmp_path / "monday.tar").touch()
    (tmp_path / "mondays").mkdir()
    text = script(tmp_path / "home", "bash")
    assert "monday.tar" in bash(tmp_path, text, "restore", "mon")
    offered = bash(tmp_path, text, "--home", "mon")
    assert any(word.startswith("mondays") for word in offered)
    assert "monday.tar" not in offered


def test_commands_of_enabled_plugins_are_completed(tmp_path: Path) -> None:
    site, home = tmp_path / "site", tmp_path / "home"
    _install(site)
    home.mkdir()
    without = script(home, "bash", PYTHONPATH=str(site))
    assert bash(tmp_path, without, "squ") == []
    (home / "config.toml").write_text('[plugins]\nenable = ["parrot"]\n')
    assert bash(tmp_path, script(home, "bash", PYTHONPATH=str(site)), "squ") == ["squawk"]
    assert bash(tmp_path, script(home, "bash", PYTHONPATH=str(site)), "cha") == ["channels", "chat"]


def test_fish(tmp_path: Path) -> None:
    fish = require_program("fish")
    path = tmp_path / "goodbot.fish"
    path.write_text(script(tmp_path / "home", "fish"))

    def offers(line: str) -> list[str]:
        done = subprocess.run(
            [fish, "--no-config", "-c", f"source {path}; complete --do-complete '{line}'"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env=environment(HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path)),
        )
        assert (done.returncode, done.stderr) == (0, "")
        return sorted(row.split("\t")[0] for row in done.stdout.splitlines())

    assert offers("goodbot mod") == ["model"]
    assert offers("goodbot service un") == ["uninstall"]
    assert "--check" in offers("goodbot upgrade --")


@pytest.mark.parametrize(
    ("line", "completed"),
    [("goodbot mod", "goodbot model"), ("goodbot service un", "goodbot service uninstall")],
)
def test_zsh(tmp_path: Path, line: str, completed: str) -> None:
    zsh = require_program("zsh")
    pexpect = require("pexpect")
    (tmp_path / "_goodbot").write_text(script(tmp_path / "home", "zsh"))
    (tmp_path / "setup").write_text(ZSH.format(folder=tmp_path))
    shell = pexpect.spawn(
        zsh,
        ["-f", "-i"],
        encoding="utf-8",
        timeout=patience(30),
        cwd=str(tmp_path),
        env=environment(HOME=str(tmp_path), TERM="dumb"),
    )
    try:
        shell.sendline("source ./setup; print RE''ADY")
        shell.expect_exact("READY")
        shell.send(f"{line}\t\x18")
        shell.expect_exact(f"<{completed} >")
    finally:
        shell.close(force=True)


def test_any_other_shell_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "goodbot", "completion", "tcsh"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
    )
    assert done.returncode == 2
    assert "invalid choice: 'tcsh'" in done.stderr
