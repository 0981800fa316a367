# SPDX-License-Identifier: Apache-2.0
"""A sentence of the code that can be said in other languages: its English text finds it in the catalogue.

The rooms below the catalogue raise errors, too. They say them in English, and keep what stands in them
apart; whoever shows one to a person says it in that person's language (`goodbot.api.texts.reworded`).
"""

from __future__ import annotations

from collections.abc import Mapping


class Worded(str):
    """A sentence in English, which logs, programs and tests read as any text."""

    __slots__ = ("text", "values")
    text: str
    """With `{names}`, as the catalogue has it."""
    values: Mapping[str, object]
    """What stands in the text; a value may be worded, or be an error that is."""

    def __new__(cls, text: str, /, **values: object) -> Worded:
        """Put values into a text; one without values stays as it is."""
        made = super().__new__(cls, text.format_map(values) if values else text)
        made.text, made.values = text, values
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, object]]:
        """What a copy is made of."""
        return (self.text,), dict(self.values)


def said_by(error: BaseException) -> str:
    """What an error says, still worded where it was raised so."""
    match error.args:
        case (Worded() as said,):
            return said
        case _:
            return str(error)
