# SPDX-License-Identifier: Apache-2.0
"""What programs read in which people look at answers and annotate them.

Langfuse: the body of `POST /api/public/scores` (`CreateScoreRequest` of its API). Label Studio: tasks of its
JSON format, with annotations (https://labelstud.io/guide/task_format). Argilla: records as
`dataset.records.from_json` reads them; who rated is no user there, so ratings come as suggestions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from goodbot.api.export import ExportedAnswer, Line
from goodbot.api.labels import STARS, Opinion


def langfuse(answer: ExportedAnswer) -> Iterator[Line]:
    """One score a rating; what the same person wrote is its comment."""
    trace = answer.record["id"]
    for rater, opinion in answer.ratings.items():
        value = opinion[0] if isinstance(opinion, list) else opinion
        comment = "\n".join(_remarks(answer, rater, "comment"))
        score = {"id": f"{trace}-{rater}", "traceId": trace, "name": "rating", "value": value}
        yield {**score, "dataType": "NUMERIC", **({"comment": comment} if comment else {})}
        if (stars := _stars(opinion)) is not None:
            told = {"id": f"{trace}-{rater}-stars", "name": "stars", "value": stars}
            yield {**score, **told, "dataType": "NUMERIC"}


def label_studio(answer: ExportedAnswer) -> Iterator[Line]:
    """One task, with an annotation of each person; docs/export.md has the labeling interface for it."""
    record = answer.record
    people = {*answer.ratings, *(one["rater"] for one in record["remarks"])}
    annotations = [{"result": _results(answer, who)} for who in sorted(people)]
    yield {
        "data": {
            "dialogue": [
                {"author": message["role"], "text": str(message.get("content") or "")}
                for message in answer.prompt[0]
            ],
            "answer": record["answer"],
            "goodbot_id": record["id"],
            "model": record["answered_by"] or record["model"],
            "version": record["version"],
            "answered_at": datetime.fromtimestamp(record["at"], UTC).isoformat(),
        },
        "annotations": annotations,
    }


def argilla(answer: ExportedAnswer) -> Iterator[Line]:
    """One record: the fields `chat` and `answer`, suggestions for the questions `rating` and `better`."""
    record = answer.record
    suggestions: dict[str, Any] = {}
    if answer.score:
        suggestions["rating"] = _suggestion("good" if answer.score > 0 else "bad")
    if better := [one["text"] for one in record["remarks"] if one["kind"] == "better"]:
        suggestions["better"] = _suggestion(better[-1])
    yield {
        "id": record["id"],
        "fields": {
            "chat": [
                {"role": message["role"], "content": str(message.get("content") or "")}
                for message in answer.prompt[0]
            ],
            "answer": record["answer"],
        },
        "metadata": {
            "model": record["answered_by"] or record["model"],
            "version": record["version"],
            "place": record["connector"],
            **({} if answer.score is None else {"score": answer.score}),
        },
        "suggestions": suggestions,
        "responses": {},
        "vectors": {},
    }


def _suggestion(value: str) -> Mapping[str, Any]:
    return {"value": value, "score": None, "agent": "goodbot"}


def _results(answer: ExportedAnswer, who: str) -> list[dict[str, Any]]:
    """What one person said, as regions of the whole answer."""
    said: list[tuple[str, str, dict[str, Any]]] = []
    opinion = answer.ratings.get(who)
    if opinion is not None:
        value = opinion[0] if isinstance(opinion, list) else opinion
        if value:
            said.append(("rating", "choices", {"choices": ["good" if value > 0 else "bad"]}))
        if (stars := _stars(opinion)) is not None:
            said.append(("stars", "rating", {"rating": stars}))
    for kind in ("comment", "better"):
        if texts := _remarks(answer, who, kind):
            said.append((kind, "textarea", {"text": texts}))
    return [
        {"id": f"r{n}", "from_name": name, "to_name": "answer", "type": kind, "value": value}
        for n, (name, kind, value) in enumerate(said)
    ]


def _remarks(answer: ExportedAnswer, who: str, kind: str) -> list[str]:
    return [one["text"] for one in answer.record["remarks"] if (one["rater"], one["kind"]) == (who, kind)]


def _stars(opinion: Opinion) -> int | None:
    """The stars that stand beside a thumb: `star_value` the other way round."""
    return round(opinion[1] * 2 + (STARS + 1) / 2) if isinstance(opinion, list) else None
