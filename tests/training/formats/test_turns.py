# SPDX-License-Identifier: Apache-2.0
"""What leaves goodbot as a whole model shows what is said, and ends its turns where its files say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from goodbot.base.errors import AdapterError
from goodbot_training.formats import jobs

from tests.core.inference.servers import tiny
from tests.support import require

require("transformers")
WHOLE = ("fused", "gguf-model", "gguf-base")
NO_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.model(), tmp_path / "base"))


def change(base: Path, name: str, **values: Any) -> None:
    path = base / name
    told = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**told, **values}))


def template(base: Path, text: str) -> None:
    for file in base.glob("chat_template*"):
        file.unlink()
    change(base, "tokenizer_config.json", chat_template=text)


def converted(to: str, base: Path, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    if to != "fused":
        require("gguf")
    source = None if to == "gguf-base" else tiny.adapter(tmp_path / "adapter", 1)
    events: list[dict[str, Any]] = []
    output = tmp_path / "made"
    jobs.run(jobs.ConversionJob(to=to, model=base, source=source, output=output, name="x"), events.append)
    return output, events[-1]["proof"]


@pytest.mark.parametrize("to", WHOLE)
def test_a_template_without_the_question_is_refused(to: str, base: Path, tmp_path: Path) -> None:
    template(base, "{% for m in messages %}{{ m['words'] }}{% endfor %}")
    with pytest.raises(AdapterError, match="leaves out what is said"):
        converted(to, base, tmp_path)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("to", WHOLE)
def test_what_goodbot_helps_a_template_with_is_told(to: str, base: Path, tmp_path: Path) -> None:
    _, plain = converted(to, base, tmp_path)
    assert plain["notes"] == []
    template(base, NO_SYSTEM)
    shutil.rmtree(tmp_path / "made") if to == "fused" else (tmp_path / "made").unlink()
    shutil.rmtree(tmp_path / "adapter", ignore_errors=True)
    _, proof = converted(to, base, tmp_path)
    assert proof["notes"] == ["its chat template needs the system's words in the first question"]


@pytest.mark.parametrize("to", WHOLE)
def test_the_end_of_a_turn_is_its_end_whatever_the_base_says(to: str, base: Path, tmp_path: Path) -> None:
    change(base, "tokenizer_config.json", eos_token="<|endoftext|>")
    change(base, "config.json", eos_token_id=0)
    change(base, "generation_config.json", eos_token_id=0)
    output, proof = converted(to, base, tmp_path)
    assert "its turns end with <|im_end|>" in proof["notes"][0]
    if to == "fused":
        told = json.loads((output / "generation_config.json").read_text())
        assert told["eos_token_id"] == [0, 2]
        return
    reader = require("gguf").GGUFReader(output)
    for end in ("eos", "eot"):
        assert reader.get_field(f"tokenizer.ggml.{end}_token_id").contents() == 2
