# SPDX-License-Identifier: Apache-2.0
"""SQL about what a turn answers, and whether it is the answer that stands."""

QUESTION = (
    "iif(t.origin = 'captured', coalesce((SELECT json_extract(q.value, '$.content')"
    " FROM json_each(t.messages) q WHERE json_extract(q.value, '$.role') = 'user'"
    " ORDER BY q.key DESC LIMIT 1), ''),"
    " json_extract(t.messages, '$[#-' || (1 + 2 * coalesce(r.depth, 0)) || '].content'))"
)
"""SQL: what a turn `t` answers, where its retry, if it is one, is `r`.

A retry's question is that of the first answer, which lies before all answers in its prompt. That of an
agent's answer lies before the results of its tools; where nobody asked anything it is empty.
"""
ASKABLE = (
    "kind = 'main' AND (origin <> 'captured' OR (length(messages) < 20000"
    " AND json_extract(messages, '$[#-1].role') = 'user'))"
)
"""SQL: its prompt may be answered once more, to compare. An agent's is long, and ends amid its work."""
_SENT = "EXISTS (SELECT 1 FROM messages m WHERE m.turn = {})"
STANDING = (
    f"(r.turn IS NULL OR {_SENT.format('t.id')}) AND NOT EXISTS"  # noqa: S608
    f" (SELECT 1 FROM retries l WHERE l.instead_of = t.id AND {_SENT.format('l.turn')})"
)
"""SQL: it was not replaced by another answer, and is shown if it was to replace one."""
