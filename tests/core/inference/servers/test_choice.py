# SPDX-License-Identifier: Apache-2.0
"""What `[serving] server` may name, and what is said of what it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from goodbot import config
from goodbot.api.server import ServerSpec
from goodbot.base.errors import ConfigError
from goodbot.inference.servers import choice, plugin


@pytest.mark.parametrize(
    ("serving", "sentence"),
    [
        ('server = "vlm"', "no model server is named 'vlm'; did you mean 'vllm'?"),
        ('server = "mine"', "no model server is named 'mine'; there are: "),
        ('server = "lmstudio"', "LM Studio cannot be used while goodbot learns: it takes no adapters"),
        ('server = "LM-Studio"', "goodbot adapters export --fused"),
        ('server = "localai"', 'collect ratings without learning from them: server = "openai"'),
        ('server = "tgi"', "TGI cannot be used while goodbot learns"),
        ('server = "embedded"\nurl = "http://127.0.0.1:1"', "the embedded server has no address"),
        ('server = "vllm"\nurl = "http://example.org"', "example.org"),
    ],
)
def test_what_cannot_be_is_said_with_its_line(serving: str, sentence: str) -> None:
    file = config.parse(f"[serving]\n{serving}", home=Path("/state"), path=Path("/state/c.toml"))
    with pytest.raises(ConfigError) as error:
        choice.choose(file, specs())
    assert sentence in str(error.value)
    assert "c.toml:" in str(error.value)


def specs() -> dict[str, ServerSpec]:
    """As the plugins have them."""
    return {spec.name: spec for spec in plugin.register_server()}
