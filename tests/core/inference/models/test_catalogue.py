# SPDX-License-Identifier: Apache-2.0
"""The catalogue is data: it is complete, it agrees with itself, and it is found by served names."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from goodbot.api import model_shape
from goodbot.inference.models import catalogue
from goodbot.inference.models.catalogue import CatalogueEntry
from goodbot.inference.models.directory import hub_name

ENTRIES = catalogue.entries()


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_an_entry_agrees_with_its_own_architecture(entry: CatalogueEntry) -> None:
    assert hub_name(entry.name) == (entry.name, "")
    assert entry.architecture.parameters == pytest.approx(entry.parameters, rel=0.03)
    # bf16, and at most the head stored once more.
    head = entry.architecture.head if entry.architecture.tied else 0
    assert 1.97 * entry.parameters < entry.bytes < 2.03 * (entry.parameters + head)
    assert entry.licence == entry.licence.lower() != ""
    assert all(alias == alias.lower() for alias in entry.aliases)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.parametrize("backend", ["mlx", "torch"])
def test_what_is_proposed_can_be_trained(entry: CatalogueEntry, backend: str) -> None:
    assert model_shape.unusable(entry.config, backend) == ""
    assert model_shape.doubt(entry.config) == ""


def test_names_and_aliases_are_unique() -> None:
    names = [name for entry in ENTRIES for name in (entry.name.lower(), *entry.aliases)]
    assert len(names) == len(set(names))


def test_it_is_sorted_by_size_and_dated() -> None:
    sizes = [entry.parameters for entry in ENTRIES]
    assert sizes == sorted(sizes)
    assert date(2026, 11, 1) <= catalogue.dated() <= date.today() + timedelta(days=1)  # noqa: DTZ011


@pytest.mark.parametrize(
    ("served", "name"),
    [
        ("qwen3:4b", "Qwen/Qwen3-4B"),
        ("qwen3:4b-q4_K_M", "Qwen/Qwen3-4B"),
        ("qwen3:4b-instruct", "Qwen/Qwen3-4B-Instruct-2507"),
        ("qwen3:4b-instruct-2507-q8_0", "Qwen/Qwen3-4B-Instruct-2507"),
        ("qwen/qwen3-0.6b", "Qwen/Qwen3-0.6B"),
        ("mlx-community/Qwen3-0.6B-4bit", "Qwen/Qwen3-0.6B"),
        ("hf.co/unsloth/Qwen3-1.7B-GGUF:Q4_K_M", "Qwen/Qwen3-1.7B"),
        ("Qwen3-0.6B-Q8_0.gguf", "Qwen/Qwen3-0.6B"),
        ("meta-llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.2", "meta-llama/Llama-3.2-3B-Instruct"),
    ],
)
def test_served_names_lead_to_weights(served: str, name: str) -> None:
    found = catalogue.find(served)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "served", ["", "/", ":", "qwen3:4b-thinking", "Qwen3-0.6B-Base", "gpt-oss:20b", "nomic", "-q"]
)
def test_another_model_is_not_taken_for_one_of_ours(served: str) -> None:
    assert catalogue.find(served) is None
