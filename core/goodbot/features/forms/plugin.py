# SPDX-License-Identifier: Apache-2.0
"""The forms that ship with goodbot, for the plugin host: the one table of them."""

from __future__ import annotations

from collections.abc import Sequence

from goodbot.api.export import ExportForm
from goodbot.api.hookspecs import hookimpl
from goodbot.features.forms import annotation, trl

FORMS = (
    ExportForm(name="kto", summary="TRL's KTO: an answer, and good or bad", lines=trl.kto, teaches=True),
    ExportForm(name="dpo", summary="TRL's DPO: a better and a worse answer", lines=trl.dpo, teaches=True),
    ExportForm(name="sft", summary="TRL's SFT: talks with liked answers", lines=trl.sft, teaches=True),
    ExportForm(name="langfuse", summary="Langfuse: a score a rating", lines=annotation.langfuse),
    ExportForm(
        name="label-studio",
        summary="Label Studio: tasks with annotations",
        lines=annotation.label_studio,
        array=True,
    ),
    ExportForm(
        name="argilla", summary="Argilla: records with suggestions", lines=annotation.argilla, array=True
    ),
)


@hookimpl
def register_export_form() -> Sequence[ExportForm]:
    return FORMS
