"""SQL about whose words may train: those of shared channels, and private ones with consent.

Private words train what others talk to only with their speaker's consent; where nobody else talks there
is nobody to leak to. `:owners` is a JSON list of the people whom the config names, `:scope` the scope.
"""

PERSON = "t.connector || ':' || t.talker"
"""Whom a turn `t` answers. The index `turns_claimable` is by these very words."""
# An owner who has logged in to the browser from a chat is `web:` and that account there.
OWNERS = (
    "(SELECT value AS person FROM json_each(:owners)"
    " UNION ALL SELECT person FROM grants WHERE role = 'owner'"
    " UNION ALL SELECT 'web:' || person FROM grants WHERE role = 'owner')"
)
"""All owners, as a table of one column, `person`."""
_ALONE = f"NOT EXISTS (SELECT 1 FROM talkers WHERE scope = :scope AND person NOT IN {OWNERS})"  # noqa: S608
SHARING = f"SELECT person FROM shares UNION SELECT person FROM {OWNERS} WHERE {_ALONE}"  # noqa: S608
"""Everybody whose private words may train."""
_SEEN = "s.connector || ':' || s.talker"
ALL_SHARE = (
    "NOT EXISTS (SELECT 1 FROM traces s WHERE s.turn = t.id"  # noqa: S608
    f" AND {_SEEN} NOT IN (SELECT person FROM shares) AND {_SEEN} NOT IN {OWNERS})"
)
"""Of a turn that several connectors have seen, everybody agrees whom one of them has seen there."""
CONSENT = (
    f"(t.channel_kind = 'shared' OR (({PERSON} IN (SELECT person FROM shares)"  # noqa: S608
    f" OR ({PERSON} IN {OWNERS} AND {_ALONE})) AND {ALL_SHARE}))"
)
"""Whether a turn `t` may train."""
