# SPDX-License-Identifier: Apache-2.0
"""The example programs, run as a reader would run them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.support import ROOT, python, require_backend, script


def run(example: str, tmp_path: Path, *arguments: str, seconds: float = 60, says: str = "") -> list[str]:
    """What it prints, line by line; `says` may stand on stderr."""
    require_backend()
    program = ("-W", "error", str(ROOT / "examples" / example), *arguments)
    done = python(*program, cwd=tmp_path, seconds=seconds)
    assert done.returncode == 0, done.stderr
    assert all(says and says in line for line in done.stderr.splitlines()), done.stderr
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"
    return done.stdout.splitlines()


def test_the_minimal_bot_answers_and_is_rated(tmp_path: Path) -> None:
    lines = run("minimal_bot.py", tmp_path)
    assert lines[0].startswith("What is 2 + 2? [demo model] ")
    assert "4" in lines[0]
    assert lines[1] == "Good. 1 of 40 ratings (39 to go)."
    assert "Paris" in lines[2]
    assert lines[5:-2] == [
        "Good. 3 of 40 ratings (37 to go).",
        "the base model answers (tiny)",
        "3 of 40 ratings, 37 more until the next training",
    ]
    assert lines[-2] == "learning style: balanced"
    assert lines[-1] == "the base model: 3 of 3 rated answers good"


def test_the_minimal_bot_is_minimal() -> None:
    assert len((ROOT / "examples" / "minimal_bot.py").read_text().splitlines()) <= 40


def test_the_reward_plugin_decides_the_rewards(tmp_path: Path) -> None:
    lines = run("reward_plugin.py", tmp_path)
    rewards = {line.split(maxsplit=2)[2]: line.split()[0] for line in lines}
    assert rewards == {
        "loopback:ann:+1 loopback:ben:+1": "+1.00",
        "loopback:ann:+1 loopback:ben:-1": "-0.33",
        "loopback:ben:-1": "-1.00",
        "loopback:ann:+1": "+1.00",
    }
    assert [line.split()[1] for line in lines].count("held_out") == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_agent_learns_from_outcomes_and_its_control_does_not(tmp_path: Path) -> None:
    """The change's whole interval lies above 0 for true outcomes, and not for the same ones shuffled."""
    unproven = "whether v1 is really served cannot be proven"
    lines = run("tool_call_agent.py", tmp_path, "--exam", "40", seconds=880, says=unproven)
    found = {
        line[:20].strip(): [int(number) for number in re.findall(r"([+-]?\d+)%", line[20:])]
        for line in lines[-2:]
    }
    # share before with its interval, share after with its, change with its
    _, _, _, after, _, _, change, low, _ = found["outcomes"]
    _, _, _, control, _, _, _, least, _ = found["the same, shuffled"]
    assert low > 0, lines
    assert change >= 20, lines
    assert least <= 0, lines
    assert after - control >= 20, lines


def test_the_page_of_outcomes_asks_and_counts_as_the_program_does() -> None:
    """The questions in quotes are the program's own, and its table is one that the program can print."""
    program = script("examples/tool_call_agent.py")
    page = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8").partition("## An example")[2]
    assert re.findall(r'"([^"]+)"', page.partition("```")[0]) == [one.format(37, 25) for one in program.ASKED]
    of = int(re.findall(r"right of (\d+) sums", page)[0])
    assert f'"--exam", type=int, default={of}' in Path(program.__file__).read_text(encoding="utf-8")
    rows = re.findall(r"^(outcomes|the same, shuffled) +(\d+)% \S+ +(\d+)% .*$", page, flags=re.M)
    assert [name for name, *_ in rows] == ["outcomes", "the same, shuffled"]
    for name, *shares in rows:
        before, after = (int(share) * of // 100 for share in shares)
        assert program.row(name, before, after, of) in page.splitlines()
