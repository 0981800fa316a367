# SPDX-License-Identifier: Apache-2.0
"""What is known of whether the server serves what it should, for the registry and for `status`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path

from goodbot.api import fingerprint as fingerprint_check
from goodbot.api.fingerprint import Fingerprint, ServedAs
from goodbot.api.sentences import clause_of
from goodbot.api.server import BASE, Generated, GenerateRequest, Server
from goodbot.api.texts import ENGLISH, catalogue, reworded
from goodbot.base.errors import AdapterError, ServerError
from goodbot.base.worded import Worded, said_by

logger = logging.getLogger(__name__)

_PROBE = ({"role": "user", "content": "Hello"},)
_ALL = 4
"""Prompts that are asked about when much depends on it; else only the most telling one."""
_LONGEST = 120.0
"""Seconds of a probe: whoever wants to go back to another version waits for it."""
_SECONDS = 20.0
"""One token a prompt: a server that takes longer is busy, and is left alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionHealth:
    """What was found of one version. `why` is a worded clause, empty where there is nothing to say."""

    version: int
    verdict: ServedAs
    why: str
    cause: str = ""
    """What `why` says behind its colon: a code, or a server's own words (`clause_of`)."""

    def told(self, language: str = "") -> str:
        """`why`, in the reader's language; a server's own words in it stay as they are."""
        return reworded(self.why, language)


@dataclass(frozen=True, kw_only=True, slots=True)
class Righted:
    """What was wrong with the server and has been put right, when (Unix seconds), as a sentence."""

    at: float
    what: str


NOTHING = VersionHealth(version=BASE, verdict=ServedAs.UNTOLD, why="")
"""Of the base model there is nothing to prove."""


async def probe(server: Server, version: int) -> None:
    """See that a loaded version answers at all, and within `_LONGEST`. Raises ServerError."""
    request = GenerateRequest(messages=_PROBE, max_tokens=4, temperature=1.0, seed=0, version=version)
    answered: int | None = None
    try:
        async with asyncio.timeout(_LONGEST), contextlib.aclosing(server.generate(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Generated):
                    answered = piece.version
    except TimeoutError as error:
        late = Worded(
            "v{version} did not answer within {seconds} s", version=version, seconds=round(_LONGEST)
        )
        raise ServerError(late) from error
    if answered != version:
        other = "the server answered with v{answered} when asked for v{version}"
        raise ServerError(Worded(other, answered=answered, version=version))


class HealthMonitor:
    """Asks one server, and keeps the last answer about the version that should be active."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.found = NOTHING
        self.righted: Righted | None = None

    async def examine(self, version: int, directory: Path, *, thorough: bool) -> VersionHealth:
        """Prove one loaded version; raises nothing: what cannot be asked is untold."""
        try:
            fingerprint = await asyncio.to_thread(Fingerprint.of, directory)
        except AdapterError as error:
            return _proof(version, ServedAs.UNTOLD, said_by(error))
        if fingerprint is None:
            return _proof(version, ServedAs.UNTOLD, "kept_no_fingerprint")
        try:
            async with asyncio.timeout(_SECONDS):
                most = _ALL if thorough else 1
                verdict = await fingerprint_check.prove(self._server, version, fingerprint, most)
        except AdapterError as error:  # it does not know it any more
            return _proof(version, ServedAs.BASE, said_by(error))
        except TimeoutError:
            return _proof(version, ServedAs.UNTOLD, "kept_busy")
        except ServerError as error:
            silent = Worded("the model server did not tell: {why}", why=said_by(error))
            return _proof(version, ServedAs.UNTOLD, silent)
        return _proof(version, verdict)

    def doubts(self, found: VersionHealth) -> bool:
        """Whether a version had better be loaded anew: it answers like the base, or like itself no more.

        The second is how a cache of another version looks. What never was like itself is not made so
        by loading it again: it has another template, or coarser weights.
        """
        was_itself = self.found.version == found.version and self.found.verdict is ServedAs.ADAPTER
        return found.verdict is ServedAs.BASE or (found.verdict is ServedAs.NEITHER and was_itself)

    def keep(self, found: VersionHealth) -> None:
        """Remember it; a server that says nothing this time has not taken back what it said."""
        silent = found.verdict is ServedAs.UNTOLD and self.found.verdict is not ServedAs.UNTOLD
        if silent and found.version == self.found.version:
            return
        if found.why and found != self.found:
            logger.warning("%s", found.why, extra={"version": found.version})
        self.found = found

    def forget(self) -> None:
        """The base model answers, or nobody does."""
        self.found = NOTHING


_CAUSES = {
    ServedAs.ADAPTER: "",
    ServedAs.BASE: "kept_like_base",
    ServedAs.NEITHER: "kept_like_neither",
    ServedAs.UNTOLD: "kept_no_logprobs",
    ServedAs.TOO_CLOSE: "kept_too_close",
}


def _proof(version: int, verdict: ServedAs, cause: str = "") -> VersionHealth:
    cause = cause or _CAUSES[verdict]
    key = "proof_lost" if verdict is ServedAs.BASE else "proof_untold"
    inner = cause if isinstance(cause, Worded) else Worded(clause_of(cause))
    why = Worded(str(catalogue(ENGLISH)[key]), version=version, why=inner) if cause else ""
    return VersionHealth(version=version, verdict=verdict, why=why, cause=cause)
