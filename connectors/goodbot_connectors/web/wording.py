# SPDX-License-Identifier: Apache-2.0
"""What the pages say, in their reader's language: filled into the HTML, and data for the scripts."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from string import Template

from goodbot.api.texts import ENGLISH, Text, catalogue

PREFIX = "page_"
"""How the keys of the pages' texts begin."""


def wording(language: str) -> Mapping[str, Text]:
    """What all pages say in one language, by key."""
    return {key: text for key, text in catalogue(language).items() if key.startswith(PREFIX)}


def filled(page: str, language: str, scripts: str) -> str:
    """Fill a page's HTML in.

    Args:
        page: It names texts as `${key}`; `${language}` is the language, `${texts}` what scripts say.
        language: What the reader reads; empty: English.
        scripts: All that the page loads; they name texts as `"key"`.

    Returns:
        The HTML. No script stands in it: the texts are data, which a browser runs nothing of.
    """
    language = language or ENGLISH
    texts = wording(language)
    spoken = {key: text for key, text in texts.items() if f'"{key}"' in scripts}
    return Template(page).substitute(_Values(texts, language=language, spoken=spoken))


class _Values(Mapping[str, str]):
    """What stands at each place of a page."""

    def __init__(self, texts: Mapping[str, Text], *, language: str, spoken: Mapping[str, Text]) -> None:
        self._texts = texts
        self._language = language
        self._spoken = spoken

    def __getitem__(self, name: str) -> str:
        if name == "language":
            return self._language
        if name == "texts":
            data = json.dumps(self._spoken, ensure_ascii=False).replace("<", "\\u003c")
            return f'<script type="application/json" id="texts">{data}</script>'
        if isinstance(text := self._texts[name], str):
            return _marked(text)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def _marked(text: str) -> str:
    """A text as HTML: what stands in backticks is to be typed, or pressed."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(parts))
