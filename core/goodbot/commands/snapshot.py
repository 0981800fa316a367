# SPDX-License-Identifier: Apache-2.0
"""The files of one export: the data, which appear whole or not at all, and a card that says what they are."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goodbot.api.export import ExportedAnswer, ExportForm, Line
from goodbot.base import durable
from goodbot.base.encrypted import ENDING
from goodbot.config import private

_CARD = """\
# {name}

{lines} in the form `{form}`, from {answers} that people rated, wrote something of or compared.

| | |
|---|---|
{rows}

The text of questions and answers is what people and models wrote. goodbot sets no licence on it: whose words
they are decides. Write yours here before you hand the file on.
"""


class Snapshot:
    """Writes an export bit by bit beside its place; `finish` puts it there."""

    def __init__(self, path: Path, form: ExportForm) -> None:
        """Raises OSError."""
        self.path, self.form = path, form
        self.lines = self.answers = self.kept_out = 0
        self._hash = hashlib.sha256()
        self._versions: Counter[str] = Counter()
        self._ratings: Counter[str] = Counter()
        self._span: list[float] = []
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._partial = path.with_name(f"{path.name}.partial")
        self._file = private.create(self._partial)

    @property
    def card(self) -> Path:
        """Where the card is put."""
        stem = Path(self.path.name.removesuffix(ENDING)).stem
        return private.named(self.path.with_name(f"{stem}.card.md"))

    def add(self, answers: Iterable[ExportedAnswer]) -> None:
        """Raises OSError, and what a form raises."""
        for one in answers:
            if self.form.teaches and not one.may_teach:
                self.kept_out += 1
                continue
            self.answers += 1
            self._count(one)
            for line in self.form.lines(one):
                self._put(line)

    def finish(self, about: Mapping[str, str]) -> str:
        """The file is whole: it and its card appear; returns its SHA-256. Raises OSError."""
        if self.form.array:
            self._write(b"\n]\n" if self.lines else b"[]\n")
        self._file.finish()
        sha256 = self._hash.hexdigest()
        card = private.create(self.card)
        card.write(self._told(sha256, about).encode())
        card.finish()
        self._partial.rename(self.path)
        durable.sync(self.path.parent)
        return sha256

    def drop(self) -> None:
        """Nothing of it stays."""
        with contextlib.suppress(OSError):
            self._file.close()  # it writes what is left, which a full disk refuses
        self._partial.unlink(missing_ok=True)
        if not self.path.exists():
            self.card.unlink(missing_ok=True)

    def _put(self, line: Line) -> None:
        text = json.dumps(line, ensure_ascii=False)
        if self.form.array:
            text = f"{',' if self.lines else '['}\n{text}"
        else:
            text += "\n"
        self._write(text.encode())
        self.lines += 1

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)

    def _count(self, answer: ExportedAnswer) -> None:
        record, score = answer.record, answer.score
        who = record["answered_by"] or f"{record['model']} v{record['version']}"
        self._versions[who] += 1
        rated = "none" if score is None else "good" if score > 0 else "bad" if score < 0 else "tie"
        self._ratings[rated] += 1
        self._span = [*self._span[:1], record["at"]]

    def _told(self, sha256: str, about: Mapping[str, str]) -> str:
        rows: dict[str, Any] = {
            "SHA-256": f"`{sha256}`",
            "answers given": " to ".join(_day(at) for at in self._span) or "none",
            "answered by": _counted(self._versions),
            "ratings": _counted(self._ratings),
            "left out, since nothing may be learnt from them": self.kept_out,
            **about,
        }
        return _CARD.format(
            name=self.path.name.removesuffix(ENDING),
            form=self.form.name,
            lines=f"{self.lines} line{'' if self.lines == 1 else 's'}",
            answers=f"{self.answers} answer{'' if self.answers == 1 else 's'}",
            rows="\n".join(f"| {name} | {_cell(value)} |" for name, value in rows.items()),
        )


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counter.items())) or "none"


def _cell(value: object) -> str:
    """A text that ends no cell of a table."""
    return " ".join(str(value).replace("|", "\\|").split())
