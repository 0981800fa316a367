"""How a connector ends an answer that its person does not want any more."""

from __future__ import annotations

from goodbot.base.errors import ServerError


class CancelledReplyError(ServerError):
    """Ends an answer half way, out of `ReplyStream.append`.

    A ServerError, since the core takes that for the end of an answer that is never tried again, and
    frees the model.
    """
