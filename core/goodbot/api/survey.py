# SPDX-License-Identifier: Apache-2.0
"""How a model server is found on this machine, and what `goodbot doctor` says of it.

A driver that wants to be found names a `Survey` in its `ServerSpec`. Every usual port is asked the
questions of all surveys at the same time, and the first survey that knows the answers decides what it is.
Whatever listens there is untrusted: answers are bounded JSON objects, and anything odd is no answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

if TYPE_CHECKING:
    from goodbot.api.setup import Check


class Ask(Protocol):
    """Asks the found server one thing."""

    async def __call__(self, path: str, body: object = None) -> tuple[int, dict[str, Any]]:
        """A GET, or a POST of `body` as JSON: the status and the JSON object of the answer.

        A list is under the empty name, anything else is an empty object. 0 without an answer.
        """
        ...


MODELS = "/v1/models"
_MOST_MODELS = 200
_LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedModel:
    """A model as its server tells of it. All of it is untrusted text."""

    name: str
    root: str = ""
    """The weights that it was loaded from (a name in the hub or a path), where the server says so."""
    parent: str = ""
    """The model that it was derived from, on the same server."""
    note: str = ""
    """Format, quantization, size."""
    bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundServer:
    """A server that answers."""

    survey: Survey
    url: str
    models: tuple[ListedModel, ...]
    version: str = ""

    @property
    def kind(self) -> str:
        """The driver's name, if there is one."""
        return self.survey.kind

    @property
    def title(self) -> str:
        return self.survey.title

    @property
    def part(self) -> str:
        """Which one it is, for a line of `goodbot doctor`."""
        return f"port {self.url.rpartition(':')[2]}"

    @property
    def base(self) -> ListedModel | None:
        """The model that the others were derived from."""
        bases = [model for model in self.models if not model.parent] or list(self.models)
        return bases[0] if bases else None


class Survey(ABC):
    """One kind of server. It keeps nothing: one object is asked of any number of servers."""

    kind: ClassVar[str]
    """The driver's `ServerSpec.name`; `goodbot model use KIND/NAME` means it."""
    title: ClassVar[str]
    """As people write it."""
    ports: ClassVar[tuple[int, ...]] = ()
    """Where it usually listens on this machine."""
    moved_by: ClassVar[str] = ""
    """The variable of the environment by which it is told to listen elsewhere (`HOST:PORT`, or a URL)."""
    questions: ClassVar[tuple[str, ...]] = (MODELS,)
    """Paths that are asked by GET; they must be harmless to any other server."""
    priority: ClassVar[int] = 20
    """Higher ones are asked first, and the first that knows the answers decides. Servers that are known by
    OpenAI's API alone have 0 to 5."""

    @abstractmethod
    def recognize(self, url: str, said: Mapping[str, Mapping[str, Any]]) -> FoundServer | None:
        """The server, if these answers are of its kind; `said` has an object for each of all questions."""

    def adapts(self, found: FoundServer) -> bool:
        """Whether it takes goodbot's adapters while it runs, as it is."""
        return False

    def otherwise(self, found: FoundServer) -> str:
        """What to say to somebody whose model it is, where it does not adapt."""
        return f"{self.title} takes no adapters while it runs."

    async def origin(self, ask: Ask, found: FoundServer, name: str) -> list[str]:
        """Look for names under which the weights of one of its models may be known.

        Args:
            ask: Asks the server, by GET or with a body.
            found: The server.
            name: The model's name on it.

        Returns:
            Names from the server's own metadata; none by default.
        """
        return []

    @abstractmethod
    async def examine(self, ask: Ask, found: FoundServer, line: str, rank: int) -> Check:
        """Examine the server, for one line of `goodbot doctor serving`.

        Args:
            ask: Asks the server, by GET or with a body.
            found: The server; the line is about `found.part`.
            line: The settings with which goodbot answers through it, to put into the text.
            rank: What an adapter will have at least.

        Returns:
            The line, of `goodbot.api.setup.ok` or `warn`.
        """


def listed(answer: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list in an answer; at most 200."""
    found = answer.get(key)
    entries = cast("list[Any]", found)[:_MOST_MODELS] if isinstance(found, list) else []
    return [cast("dict[str, Any]", entry) for entry in entries if isinstance(entry, dict)]


def text(value: object) -> str:
    """A text of an answer, at most 200 characters; empty for anything else."""
    return value[:_LONGEST_NAME] if isinstance(value, str) else ""


def size(value: object) -> int:
    """A number of bytes; 0 for anything else."""
    return value if isinstance(value, int) and 0 < value < 1 << 50 else 0


def openai_models(answer: Mapping[str, Any], root: str = "") -> tuple[ListedModel, ...]:
    """The models of an answer to `/v1/models`."""
    found: list[ListedModel] = []
    for entry in listed(answer, "data"):
        meta = entry.get("meta")
        told: Mapping[str, Any] = cast("Mapping[str, Any]", meta) if isinstance(meta, dict) else {}
        found.append(
            ListedModel(
                name=text(entry.get("id")),
                root=text(entry.get("root")) or root,
                parent=text(entry.get("parent")),
                bytes=size(told.get("size")),
            )
        )
    return tuple(model for model in found if model.name)


def owners(answer: Mapping[str, Any]) -> set[str] | None:
    """Whom an answer to `/v1/models` names as owners of the models; None: it is no such answer."""
    if not isinstance(answer.get("data"), list):
        return None
    return {text(entry.get("owned_by")) for entry in listed(answer, "data")}
