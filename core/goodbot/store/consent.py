# SPDX-License-Identifier: Apache-2.0
"""SQL about whose words may train: those of shared channels, and private ones with consent.

Whoever set the bot up decides who else talks to it, so their own private words train unless they say
`share off`: that somebody is added takes no rating of theirs away. So do those of all owners while nobody
else talks. Everybody else's train once they say `share on`. `:owners` is a JSON list of the people whom
the config names, `:scope` the scope. What everybody's adapter learns is meant; in a scope of their own (see
`scopes`) there may be nobody to ask.
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
OWN = "own "
"""How the notes in `told` begin that name an account which is joined with the owner's at the machine.

One lasts as long as that: whoever is linked again otherwise is asked like anybody (`people.unlink`).
"""
# Named by the config, at the machine, joined with one of these there, or paired with a code of there.
_FIRST = (
    "(SELECT value AS person FROM json_each(:owners)"  # noqa: S608
    " UNION ALL SELECT k.person FROM json_each(:owners) o JOIN links f ON f.person = o.value"
    f" JOIN links k ON k.identity = f.identity JOIN told j ON j.person = '{OWN}' || k.person"
    " UNION ALL SELECT person FROM grants WHERE role = 'owner' AND given_by = 'pairing'"
    " UNION ALL SELECT 'web:' || person FROM grants WHERE role = 'owner' AND given_by = 'pairing')"
)
ALWAYS = (
    f"SELECT person FROM shares UNION SELECT person FROM {_FIRST}"  # noqa: S608
    " WHERE person NOT IN (SELECT person FROM withheld)"
)
"""Everybody whose private words may train, whoever else talks."""
# While only owners talk there is nobody to leak to: an owner by a grant (a program's token) needs no word.
_ALONE = (
    "NOT EXISTS (SELECT 1 FROM talkers"  # noqa: S608
    f" WHERE scope IN (:scope, 'default') AND person NOT IN {OWNERS})"
)
SHARING = (
    f"{ALWAYS} UNION SELECT person FROM {OWNERS}"  # noqa: S608
    f" WHERE {_ALONE} AND person NOT IN (SELECT person FROM withheld)"
)
"""Everybody whose private words may train."""
_SEEN = "s.connector || ':' || s.talker"
_ALL = f"NOT EXISTS (SELECT 1 FROM traces s WHERE s.turn = t.id AND {_SEEN} NOT IN ({{}}))"  # noqa: S608
ALL_SHARE = _ALL.format(SHARING)
"""Of a turn that several connectors have seen, everybody agrees whom one of them has seen there."""
CONSENT = f"(:consented OR t.channel_kind = 'shared' OR ({PERSON} IN ({SHARING}) AND {ALL_SHARE}))"
"""Whether a turn `t` may train. `:consented`: what is learnt of it answers those alone who have said it."""
_SAID = "SELECT person FROM shares"
SHARED = f"({PERSON} IN ({_SAID}) AND {_ALL.format(_SAID)})"
"""Whether those who talk in the private chat of a turn `t` have said `share on` themselves."""
