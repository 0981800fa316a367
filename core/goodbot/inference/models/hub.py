# SPDX-License-Identifier: Apache-2.0
"""The hub, through its own client library: what a model is, and the bytes of a file.

Which host is asked is the library's affair (`HF_ENDPOINT`).
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import re
from collections.abc import Generator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from goodbot.base.errors import ConfigError, GoodbotError, MissingExtraError
from goodbot.base.worded import Worded

_WANTED = re.compile(r"model[\w.-]{0,80}\.safetensors|[\w-]{1,80}\.(?:json|model|jinja)|merges\.txt")
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ENOUGH = 1 << 20
"""Bytes of a config.json that is read before a download."""


_PIECE = 1 << 18


class HubError(GoodbotError):
    """The hub does not give what was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HubFile:
    """One file that goodbot takes."""

    name: str
    size: int
    digest: str
    """SHA-256 of a large file; of a small one git's SHA-1 of its blob. Also its name in the cache."""

    @property
    def is_large(self) -> bool:
        return len(self.digest) == 64


@dataclass(frozen=True, kw_only=True, slots=True)
class HubModel:
    """A model on the hub at one commit."""

    repo: str
    commit: str
    licence: str
    gated: bool
    files: tuple[HubFile, ...]

    @property
    def bytes(self) -> int:
        """Of all files that goodbot takes."""
        return sum(file.size for file in self.files)

    @property
    def weights(self) -> int:
        """Bytes of the weights alone."""
        return sum(file.size for file in self.files if file.name.endswith(".safetensors"))


def describe(repo: str, commit: str, token: str | None) -> HubModel:
    """Ask the hub for a model; `commit` may be empty for the newest. Raises GoodbotError."""
    library = _library()
    with sentences(repo):
        info = library.HfApi().model_info(
            repo, revision=commit or None, files_metadata=True, token=token, timeout=15.0
        )
    names = {str(sibling.rfilename) for sibling in info.siblings or ()}
    files = tuple(
        _file(repo, sibling)
        for sibling in info.siblings or ()
        if _WANTED.fullmatch(sibling.rfilename)
        # Some models lie there twice, as one file and in parts: the index names the parts.
        and not (
            sibling.rfilename == "model.safetensors"
            and "model.safetensors.index.json" in names
            and any(name.startswith("model-0") for name in names)
        )
    )
    if not _HASH.fullmatch(str(info.sha)):
        raise HubError(Worded("the hub names no commit of {repo}", repo=repo))
    if not any(file.name.endswith(".safetensors") for file in files):
        other = (
            "{repo} holds no model*.safetensors, and goodbot loads no other format of weights: take the "
            "model that it was made from"
        )
        raise ConfigError(Worded(other, repo=repo))
    card: Any = info.card_data or {}
    return HubModel(
        repo=repo,
        commit=str(info.sha),
        licence=str(card.get("license_name") or card.get("license") or "not stated")[:60],
        gated=bool(info.gated),
        files=files,
    )


def config(model: HubModel, token: str | None) -> dict[str, Any]:
    """The model's `config.json`, into memory. Raises GoodbotError."""
    for file in model.files:
        if file.name == "config.json" and file.size <= _ENOUGH:
            arrived = io.BytesIO()
            with sentences(model.repo):
                get(model, file, arrived, 0, token)
            try:
                found = json.loads(arrived.getvalue())
            except (ValueError, RecursionError) as error:
                wrong = Worded("{repo}'s config.json is not JSON", repo=model.repo)
                raise ConfigError(wrong) from error
            if isinstance(found, dict):
                return found  # pyright: ignore[reportUnknownVariableType]
    none = "{repo} is no model that goodbot can load: it has no config.json"
    raise ConfigError(Worded(none, repo=model.repo))


def get(model: HubModel, file: HubFile, target: Any, start: int, token: str | None) -> None:
    """Write a file's bytes from `start` on to `target`, with the library's own new attempts."""
    library = _library()
    transfer = import_module("huggingface_hub.file_download")
    transfer.http_get(
        library.hf_hub_url(model.repo, file.name, revision=model.commit),
        target,
        resume_size=start,
        headers=import_module("huggingface_hub.utils").build_hf_headers(token=token),
        expected_size=file.size,
        displayed_filename=file.name,
    )


def _file(repo: str, sibling: Any) -> HubFile:
    """A file that we take, as the hub describes it; its names become paths here."""
    digest = str(sibling.lfs.sha256 if sibling.lfs else sibling.blob_id)
    size = sibling.lfs.size if sibling.lfs else sibling.size
    if not _HASH.fullmatch(digest) or not isinstance(size, int) or size < 0:
        none = "the hub names no hash for {name} of {repo}"
        raise HubError(Worded(none, name=repr(sibling.rfilename), repo=repo))
    return HubFile(name=str(sibling.rfilename), size=size, digest=digest)


def _library() -> Any:
    try:
        library = import_module("huggingface_hub")
        import_module("huggingface_hub.file_download")
    except ImportError:
        raise MissingExtraError(Worded("downloading a model"), "torch") from None
    # Progress and errors are ours to tell.
    utils = import_module("huggingface_hub.utils")
    utils.logging.set_verbosity_error()
    utils.disable_progress_bars()
    # It hands bytes on in pieces of 10 MB; what is short of one is lost when the connection breaks.
    library.constants.DOWNLOAD_CHUNK_SIZE = _PIECE
    return library


@contextlib.contextmanager
def sentences(repo: str) -> Generator[None]:
    """What went wrong on the way to the hub, as a sentence that says what to do."""
    try:
        yield
    except GoodbotError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            wrong = Worded("the download cannot be written: {why}", why=error.strerror)
            raise HubError(wrong) from error
        raise HubError(_sentence(repo, error)) from error


def _sentence(repo: str, error: Exception) -> str:
    names = {cls.__name__ for cls in type(error).__mro__}
    status = getattr(getattr(error, "response", None), "status_code", None)
    if "OfflineModeIsEnabled" in names:
        text = "{repo} is not on this machine, and HF_HUB_OFFLINE forbids to ask the hub for it"
        return Worded(text, repo=repo)
    if "GatedRepoError" in names:
        text = (
            "{repo} is gated: accept its licence on its page in the hub. Make a read token there, and store "
            "it as HF_TOKEN (in the environment, or in secrets.env in the state directory)"
        )
        return Worded(text, repo=repo)
    if "RevisionNotFoundError" in names or "RepositoryNotFoundError" in names or status == 404:
        text = (
            "the hub has no model {repo}, or it is private: look at the spelling; for a private one store a "
            "read token as HF_TOKEN"
        )
        return Worded(text, repo=repo)
    if status == 401:
        text = "the hub refuses the token in HF_TOKEN for {repo}: make a new read token there"
        return Worded(text, repo=repo)
    if status == 403:
        text = "the hub does not let this token read {repo}: ask for access on the model's page"
        return Worded(text, repo=repo)
    if status is not None:
        text = "the hub answers with error {status} for {repo}: try again later"
        return Worded(text, status=status, repo=repo)
    text = (
        "the hub cannot be reached for {repo} ({error}): look at the network and try again; a download goes "
        "on from where it stopped"
    )
    return Worded(text, repo=repo, error=type(error).__name__)
