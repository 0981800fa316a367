"""What a model server refuses, learnt from what it says, and how it is asked from then on.

Some templates refuse the system role, or two messages of one role behind each other; some servers refuse
`max_tokens`, `seed` or a filter. Each is left out or said in another way once the server has refused it, for
as long as its driver lives, and its owner is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from goodbot.events import Message
from goodbot.own_model import with_tools, without_form, without_tools
from goodbot.plain import plainer, system_first, without_system
from goodbot.sampling import UNFILTERED, Filters

FORMS: Mapping[str, Callable[[Sequence[Message]], list[Message]]] = {
    "system_first": system_first, "without_system": without_system, "plainer": plainer,
}  # fmt: skip
"""Ways to say a conversation, each plainer than the one before."""
_TOLD = {
    "system_first": "system messages in the middle (all of them go first)",
    "without_system": "system messages (their words go with the first question)",
    "plainer": "this order of roles (one user's and one assistant's message in turn)",
}
REFUSALS = (400, 422, 500, 501)
"""Statuses of those who do not take a request as it is."""
_ROLES = re.compile(r"\brole|\bsystem (message|prompt)|alternat|\bdeveloper\b", re.ASCII)
_REFUSES = re.compile(
    r"support|not permitted|not allowed|unknown|unrecogni|unexpected|extra|forbidden|must|only|invalid|"
    r"not available|deprecated|disallow|does not|doesn't|cannot|can't|expected|instead|alternat",
    re.ASCII,
)
_TOKENS, _NEWER = "max_tokens", "max_completion_tokens"
_SPARE = (
    "seed", "top_p", "top_k", "min_p", "repetition_penalty", "temperature", "stream_options",
    "chat_template_kwargs", "cache_salt", "parallel_tool_calls", "frequency_penalty",
    "presence_penalty", "logit_bias", "stop", "reasoning_effort",
)  # fmt: skip
"""What an answer can be had without."""


@dataclass
class Manners:
    """One server's."""

    form: str = ""
    """In which of `FORMS` it wants a conversation; empty: as it is."""
    _renamed: bool = False
    """`max_tokens` goes by its newer name."""
    _older: bool = False
    _dropped: list[str] = field(default_factory=list[str])
    refused: str = ""
    """What it said of the last request, if nothing could be done about it."""

    def fitted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A request of chat completions as this server takes it."""
        made = {name: value for name, value in body.items() if name not in self._dropped}
        if self.form and isinstance(made.get("messages"), list):
            made["messages"] = FORMS[self.form](made["messages"])
        old, new = (_TOKENS, _NEWER) if self._renamed else (_NEWER, _TOKENS)
        if (self._renamed or self._older) and old in made:
            made[new] = made.pop(old)
        return made

    def left(self, filters: Filters) -> Filters:
        """What of the filters reaches the server."""
        gone = {name: getattr(UNFILTERED, name) for name in filters.told() if name in self._dropped}
        return replace(filters, **gone) if gone else filters

    def learn(
        self, status: int, words: str, body: Mapping[str, Any], sent: Mapping[str, Any]
    ) -> bool:
        """From a refusal of `sent`, which is what `fitted` made of `body`; whether to ask once more."""
        low = words.lower()
        if status not in REFUSALS or not _REFUSES.search(low):
            return False
        if self.fitted(body) != sent:  # another request was refused meanwhile
            return True
        if named := next((name for name in _named(low) if name in sent), ""):
            return self._leave_out(named, low)
        if "messages" not in body or not _ROLES.search(low):
            return False
        forms = list(FORMS)
        for form in forms[forms.index(self.form) + 1 if self.form else 0 :]:
            if FORMS[form](body["messages"]) != sent["messages"]:
                self.form = form
                return True
        return False

    def _leave_out(self, name: str, low: str) -> bool:
        if name == _TOKENS and not self._older:
            self._renamed = True
        elif name == _NEWER and not self._renamed:
            self._older = True
        elif name in _SPARE:
            self._dropped.append(name)
        else:
            return False
        return True

    def kept(self) -> Manners:
        """As it is now, to go back to with `back`."""
        return replace(self, _dropped=list(self._dropped))

    def back(self, before: Manners, refused: str) -> None:
        """What was learnt of one request did not help it."""
        self.form, self._renamed, self._older = before.form, before._renamed, before._older
        self._dropped, self.refused = before._dropped, refused

    def told(self) -> str:
        """For its owner: what it refuses, and what becomes of it; empty for nothing."""
        parts = [_TOLD[self.form]] if self.form else []
        parts += [f"{_TOKENS} (it gets {_NEWER})"] if self._renamed else []
        parts += [f"{_NEWER} (it gets {_TOKENS})"] if self._older else []
        parts += [f"{name} (left out)" for name in self._dropped]
        if self.refused:
            parts.append(f"what it was asked last: {self.refused}")
        return f"the server refuses: {'; '.join(parts)}" if parts else ""


def _named(low: str) -> list[str]:
    """The fields that a refusal names, the newer name of a pair only where the older is not refused."""
    found = [name for name in (_TOKENS, _NEWER, *_SPARE) if re.search(rf"\b{name}\b", low)]
    too_many = re.search(r"context|too (large|long|many|big)|at most|less than|greater|exceed", low)
    return [] if too_many else found


def formed(messages: Sequence[Message]) -> list[Message]:
    """A stored prompt as it was really sent."""
    plain, form = without_form(messages)
    if form not in FORMS:
        return plain
    words, tools = without_tools(plain)
    return with_tools(FORMS[form](words), tools)
