"""Installing what a platform or a backend needs, with this environment's own pip."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Sequence

from goodbot.errors import install_line
from goodbot.plugins import missing_modules
from goodbot.wizard.dialogue import Dialogue


def offer(
    dialogue: Dialogue, what: str, requires: Sequence[str], extra: str, size: str = ""
) -> bool:
    """Install `extra` if the person agrees; whether `requires` can be imported then."""
    if not missing_modules(requires):
        return True
    about = f", {size}" if size else ""
    dialogue.say(f"{what} needs packages that are not installed: goodbot[{extra}]{about}.")
    if not dialogue.confirm("--install", "Install them now?"):
        return False
    if not _install(dialogue, extra):
        dialogue.say(
            f"They could not be installed; pip says why, above. By hand: {install_line(extra)}"
        )
        return False
    importlib.invalidate_caches()
    return not missing_modules(requires)


def _install(dialogue: Dialogue, extra: str) -> bool:
    if importlib.util.find_spec("pip") is None:
        dialogue.say("This Python environment has no pip.")
        return False
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install"]
    # pip draws its own progress; --json keeps stdout for the result.
    done = subprocess.run(
        [*command, f"goodbot[{extra}]"], stdout=dialogue.out.fileno(), check=False
    )
    return done.returncode == 0
