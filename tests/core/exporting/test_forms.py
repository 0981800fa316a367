# SPDX-License-Identifier: Apache-2.0
"""Each form against what its program publishes: TRL reads ours, the others are held to their schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from goodbot.features.forms.plugin import FORMS
from goodbot_training import tiny

from tests.core.exporting.made import export, opened, rated
from tests.core.learning.evaluation.asking import asked, open_asking, prefer
from tests.support import require

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
LANGFUSE = {
    # fern/apis/server/definition/score.yml of langfuse/langfuse: CreateScoreRequest
    "type": "object",
    "required": ["traceId", "name", "value"],
    "additionalProperties": False,
    "properties": {
        "id": TEXT,
        "traceId": TEXT,
        "name": TEXT,
        "value": {"type": "number"},
        "observationId": TEXT,
        "comment": TEXT,
        "dataType": {"enum": ["NUMERIC", "BOOLEAN", "CATEGORICAL"]},
        "configId": TEXT,
    },
}
LABEL_STUDIO = {
    # https://labelstud.io/guide/task_format and the tags' own pages: Choices, Rating, TextArea
    "type": "object",
    "required": ["data", "annotations"],
    "properties": {
        "data": {
            "type": "object",
            "required": ["dialogue", "answer"],
            "properties": {
                "answer": TEXT,
                "dialogue": {
                    "type": "array",
                    "items": {"type": "object", "required": ["author", "text"], "additionalProperties": TEXT},
                },
            },
        },
        "annotations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["result"],
                "properties": {
                    "result": {
                        "type": "array",
                        "items": {
                            "required": ["id", "from_name", "to_name", "type", "value"],
                            "oneOf": [
                                {
                                    "properties": {
                                        "type": {"const": "choices"},
                                        "value": {"properties": {"choices": TEXTS}},
                                    }
                                },
                                {
                                    "properties": {
                                        "type": {"const": "rating"},
                                        "value": {
                                            "properties": {
                                                "rating": {"type": "integer", "minimum": 1, "maximum": 5}
                                            }
                                        },
                                    }
                                },
                                {
                                    "properties": {
                                        "type": {"const": "textarea"},
                                        "value": {"properties": {"text": TEXTS}},
                                    }
                                },
                            ],
                        },
                    }
                },
            },
        },
    },
}
ARGILLA = {
    # argilla/src/argilla/records/_resource.py of argilla-io/argilla: Record.from_dict
    "type": "object",
    "required": ["id", "fields", "metadata", "suggestions", "responses", "vectors"],
    "properties": {
        "id": TEXT,
        "fields": {
            "type": "object",
            "properties": {
                "answer": TEXT,
                "chat": {
                    "type": "array",
                    "items": {
                        "required": ["role", "content"],
                        "additionalProperties": False,
                        "properties": {"role": TEXT, "content": TEXT},
                    },
                },
            },
        },
        "metadata": {"additionalProperties": {"type": ["string", "number"]}},
        "suggestions": {
            "additionalProperties": {
                "required": ["value", "score", "agent"],
                "properties": {"value": TEXT, "score": {"type": ["number", "null"]}, "agent": TEXT},
            }
        },
        "responses": {"type": "object"},
        "vectors": {"type": "object"},
    },
}
SCHEMAS = {"langfuse": LANGFUSE, "label-studio": LABEL_STUDIO, "argilla": ARGILLA}


@pytest.mark.parametrize("name", SCHEMAS)
async def test_a_form_is_what_its_program_publishes(name: str, tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        await rated(bot)
        lines, _ = await export(bot, f"--format {name}")
        assert lines
        for line in lines:
            jsonschema.validate(line, SCHEMAS[name])


async def test_scores_of_langfuse(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        said = await rated(bot)
        lines, _ = await export(bot, "--format langfuse")
        liked = [(one["name"], one["value"]) for one in lines if one["traceId"] == said.liked.turn]
        assert liked == [("rating", 1.0), ("stars", 4), ("rating", 1.0)]
        assert len({one["id"] for one in lines}) == len(lines), "sent again, a score replaces itself"


async def test_annotations_of_label_studio(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        said = await rated(bot)
        lines, data = await export(bot, "--format label-studio")
        assert Path(data["path"]).suffix == ".json", "it takes a list"
        [bad] = [one for one in lines if one["data"]["goodbot_id"] == said.bad.turn]
        [annotation] = bad["annotations"]
        assert [(one["from_name"], one["value"]) for one in annotation["result"]] == [
            ("rating", {"choices": ["bad"]}),
            ("better", {"text": ["It is 4 km."]}),
        ]
        assert bad["data"]["dialogue"][-1] == {"author": "user", "text": "And back?"}


async def test_an_empty_export_is_an_empty_list(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        for form in FORMS:
            assert (await export(bot, f"--format {form.name}"))[0] == []


async def test_trl_takes_what_is_made_for_it(tmp_path: Path) -> None:
    datasets = require("datasets")
    data_utils = require("trl.data_utils")
    transformers = require("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny.__path__[0] + "/model")
    async with opened(tmp_path) as bot:
        await rated(bot)
        for form, columns in (
            ("kto", {"prompt", "completion", "label"}),
            ("dpo", {"prompt", "chosen", "rejected"}),
            ("sft", {"messages"}),
        ):
            lines, data = await export(bot, f"--format {form}")
            loaded: Any = datasets.Dataset.from_json(data["path"], cache_dir=str(tmp_path / "cache"))
            assert set(loaded.column_names) == columns
            assert len(loaded) == len(lines) > 0
            for example in loaded:
                assert data_utils.is_conversational(example)
                applied = data_utils.apply_chat_template(example, tokenizer)
                assert all(isinstance(applied[name], str) for name in applied if name != "label")
            if form == "kto":
                assert {one["label"] for one in loaded} == {True, False}
            if form == "dpo":
                assert len(data_utils.unpair_preference_dataset(loaded)) == 2 * len(loaded)


async def test_what_may_not_teach_is_not_for_training(tmp_path: Path) -> None:
    """A private chat whose person has shared nothing: the file of all has it, those for training do not."""
    async with opened(tmp_path) as bot:
        await rated(bot)
        everything, _ = await export(bot)
        assert any("My secret" in json.dumps(line) for line in everything)
        for form in ("kto", "dpo", "sft"):
            lines, data = await export(bot, f"--format {form}")
            assert "My secret" not in json.dumps(lines)
            assert data["left_out"] == 1
        await bot.command("share", "on", user="talker")
        lines, data = await export(bot, "--format kto")
        assert "My secret" in json.dumps(lines)
        assert data["left_out"] == 0


async def test_pairs_are_what_people_preferred(tmp_path: Path) -> None:
    async with opened(tmp_path) as bot:
        said = await rated(bot)
        lines, _ = await export(bot, "--format dpo")
        pairs = [(one["chosen"][0]["content"], one["rejected"][0]["content"]) for one in lines]
        assert pairs == [("It is 4 km.", said.bad.text), (said.again.text, said.bad.text)]
        assert [one["prompt"][-1]["content"] for one in lines] == ["And back?", "And back?"]


async def test_a_blind_choice_is_a_pair(tmp_path: Path) -> None:
    from goodbot.features.forms import plugin

    async with open_asking(tmp_path) as bot:
        bot.app.plugins.register(plugin, "forms")
        await bot.rated(8)
        await bot.train()
        [question] = await asked(bot)
        await prefer(bot, 1, 2, question)
        lines, _ = await export(bot, "--format dpo")
        chosen = [(one["chosen"][0]["content"][:2], one["rejected"][0]["content"][:2]) for one in lines]
        assert chosen == [("v1", "v0")] * 2
