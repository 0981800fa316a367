# SPDX-License-Identifier: Apache-2.0
"""A server whose model was named may go on answering: asked, and written into the config."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from goodbot.api.plugins import PluginHost
from goodbot.cli.setup import model, template
from goodbot.cli.setup.draft import Draft
from goodbot.config.file import ConfigFile
from goodbot.inference.models import choose
from goodbot.inference.models.choose import answering
from goodbot.inference.models.obtain import Obtained
from goodbot.inference.models.proposal import Proposal
from goodbot.inference.servers import plugin as own_servers

OLLAMA = {"server": "ollama", "model": "qwen3:4b"}


def proposal(serving: dict[str, str]) -> Proposal:
    return Proposal(
        source="Qwen/Qwen3-4B",
        name="Qwen/Qwen3-4B",
        backend="torch",
        device="cpu",
        parameters=1,
        download=0,
        disk=1,
        licence="apache-2.0",
        gated=False,
        estimate=None,
        serving=serving,
    )


def test_it_is_asked_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose.serving, "missing_modules", lambda _: ())
    question = "Let Ollama go on answering, with each version put into it?"
    assert answering(proposal(OLLAMA), None) == question
    assert answering(proposal(OLLAMA), "embedded") == question
    assert answering(proposal(OLLAMA), "ollama") == "", "it does already"
    assert answering(proposal({}), None) == "", "it takes no adapters"
    monkeypatch.setattr(choose.serving, "missing_modules", lambda _: ("gguf",))
    assert answering(proposal(OLLAMA), None) == "", "the converter is not installed"


def test_what_was_agreed_is_in_the_config(tmp_path: Path) -> None:
    file = ConfigFile(tmp_path)
    got = Obtained(name="Qwen/Qwen3-4B", reference="Qwen/Qwen3-4B@abc", path=tmp_path)
    draft = Draft(
        platform="terminal",
        preset="careful",
        schedule="auto",
        model="demo",
        backend="auto",
        chosen=(proposal(OLLAMA), got),
        serving=OLLAMA,
    )
    template.fill(file, draft)
    config = file.save()
    assert (config.serving.server, config.serving.model) == ("ollama", "qwen3:4b")


@pytest.mark.parametrize(("asks", "agrees"), [(True, True), (True, False), (False, True)])
def test_the_wizard_asks_a_person_and_nobody_else(
    asks: bool, agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose.serving, "missing_modules", lambda _: ())
    dialogue = SimpleNamespace(asks=asks, confirm=lambda *_, default: agrees)
    config = SimpleNamespace(serving=SimpleNamespace(server="embedded"))
    plugins = PluginHost()
    plugins.register(own_servers, "servers")
    place = SimpleNamespace(config=config, plugins=plugins)
    found = model._goes_on(dialogue, place, proposal(OLLAMA))  # type: ignore[arg-type]
    assert found == (OLLAMA if asks and agrees else {})
