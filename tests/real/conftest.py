"""The real model, or the reason why it cannot be had; where a CI runs that is a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.real import model
from tests.support import missing, require


@pytest.fixture(scope="session")
def real_model() -> Path:
    """The directory of SmolLM2-135M-Instruct, made once for all runs."""
    for module in ("gguf", "tokenizers", "safetensors"):
        require(module)
    try:
        return model.directory()
    except model.UnavailableError as error:
        if os.environ.get("CI", "").lower() in ("1", "true"):
            pytest.fail(f"CI is set, but {error}")
        missing(str(error))
