# SPDX-License-Identifier: Apache-2.0
"""Python files beside what a person imports or looks at, in the directory that the person is in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import require

NAMES = ("numpy", "goodbot", "goodbot_training", "json", "asyncio", "transformers", "pip", "mlx", "torch")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("adapters", "import", "."), "adapter_model.safetensors holds 0 tensors"),
        (("doctor",), "in order."),
        (("upgrade", "--check"), "backs the data up before it changes it"),
    ],
)
def test_s1_code_beside_what_is_imported_does_not_run(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    require("numpy")
    here, home, ran = tmp_path / "here", tmp_path / "home", tmp_path / "ran"
    here.mkdir()
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[model]\npath = "demo"\n')
    code = f"import sys; open({str(ran)!r}, 'a').write(f'{{__file__}} {{sys.argv}}\\n')\n"
    for name in NAMES:
        (here / f"{name}.py").write_text(code)
    (here / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 4, "lora_alpha": 8}')
    (here / "adapter_model.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "goodbot", "--home", str(home), *words],
        cwd=here,
        env={**os.environ, "HOME": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in ended.stdout + ended.stderr, "it came as far as it was to"
    assert not ran.exists(), ran.read_text()
