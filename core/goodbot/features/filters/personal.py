# SPDX-License-Identifier: Apache-2.0
"""Personal data in a text, told by their form: addresses, and numbers with their checksums.

Nothing goes back in the text: it is read once, and at each sign that may belong to something so many others
are looked at as that may have at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from goodbot.api.content_filter import ContentFilter, FilterCase
from goodbot.features.filters import addresses, numbers
from goodbot.features.filters.plain import figures

if TYPE_CHECKING:
    from goodbot.features.filters.plugin import PersonalSettings

_KINDS = {
    "email": addresses.email,
    "phone": numbers.phone,
    "iban": numbers.iban,
    "card": numbers.card,
    "ip": addresses.ip,
}


class PersonalData(ContentFilter):
    """`[filters.personal]`."""

    settings: PersonalSettings

    def reasons(self, case: FilterCase) -> Sequence[str]:
        texts = [figures(text) for text in case.texts if text]
        kinds = [kind for kind in _KINDS if getattr(self.settings, kind)]
        return [kind for kind in kinds if any(map(_KINDS[kind], texts))]
