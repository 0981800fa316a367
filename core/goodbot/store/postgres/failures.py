# SPDX-License-Identifier: Apache-2.0
"""What goes wrong with a PostgreSQL database, as sentences that say what to do."""

from __future__ import annotations

import sys
from typing import Any

from goodbot.base.errors import StoreError, StoreFullError
from goodbot.base.worded import Worded

_READ_ONLY = "25006"
_GONE = ("08", "57P", "25P03", "25P04", _READ_ONLY)
"""How the codes begin of a connection that is no more, and of a server that ends or starts.

So do those of one that only reads, which may have been the other one: it is looked for anew.
"""


def errors() -> tuple[type[Exception], ...]:
    """What psycopg raises, once it was loaded."""
    known: Any = sys.modules.get("psycopg")
    return (known.Error,) if known else ()


def _of_ours(error: BaseException | None) -> Any:
    return error if isinstance(error, errors()) else None


def lost(error: Exception) -> bool:
    """Whether the connection is of no more use, as the error or its cause has it."""
    found = _of_ours(error) or _of_ours(error.__cause__)
    if found is None:
        return False
    code = str(found.sqlstate or "")
    broken: Any = sys.modules["psycopg"]
    return code.startswith(_GONE) or (
        not code and isinstance(found, broken.OperationalError | broken.InterfaceError)
    )


def explain(error: Exception) -> StoreError | None:
    """A sentence for what PostgreSQL or the way to it says; None for another error."""
    found = _of_ours(error)
    if found is None:
        return None
    code = str(found.sqlstate or "")
    said = str(found.diag.message_primary or "") or " ".join(str(found).split())
    if code.startswith("53") and code != "53300":
        full = "the database server has no room left ({error}): nothing was stored"
        known: StoreError = StoreFullError(Worded(full, error=said))
    elif lost(error) and code != _READ_ONLY:
        known = StoreError(Worded("{reason} ({error})", reason=_UNREACHABLE, error=said))
    else:
        known = StoreError(Worded("{reason} ({error})", reason=_reason(code), error=said))
    known.__cause__ = error
    return known


def _reason(code: str) -> Worded:
    return next((said for begins, said in _REASONS.items() if code.startswith(begins)), _REFUSED)


_REFUSED = Worded("the database refused")
_UNREACHABLE = Worded(
    "the database server cannot be reached: see whether it runs, and whether [store] url leads to it"
)
READ_ONLY = Worded("the database server can only be read: let [store] url lead to the one that writes")
_REASONS = {
    _READ_ONLY: READ_ONLY,
    "28": Worded(
        "the database server does not let goodbot in: see to the user in [store] url, and to the password in "
        "~/.pgpass"
    ),
    "3D000": Worded("there is no such database on the server: make it, or set its name in [store] url"),
    "42501": Worded("the database user lacks a right: let it own the schema"),
    "53300": Worded("the database server has no connection left: allow more there"),
    "55P03": Worded("the database is locked by another program"),
}
