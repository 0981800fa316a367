# SPDX-License-Identifier: Apache-2.0
"""A Microsoft Teams on this machine: a tenant with people in it, the Bot Connector, and its tokens.

::

    async with FakeTeams() as teams:
        teams.endpoint = "http://127.0.0.1:3978/api/messages"   # where your bot listens
        ada = teams.person("Ada")
        lab = teams.channel("Lab", [ada])
        ada.says("hello", lab, mention=True)                    # signed, as the Bot Framework does
        await teams.settled()
        [answer] = ada.sees(lab)
        ada.reacts(answer, "like")
        ada.rates(answer, good=False, text="too long")          # the native thumbs, if it has them
        teams.faults.rate_limit("send", seconds=2)              # 429 with Retry-After

Your bot logs in at `token_endpoint` with `APP_ID` and `PASSWORD`, calls `service_url`, and finds the
keys of what it is sent at `openid_metadata`; `forgeries` are headers that it must refuse. Activities
come again while the bot is too slow (15 seconds) or fails. It is one tenant with one bot; there are
no files to fetch, no tabs, no message extensions. Where Microsoft has told nobody, it is the strict
one.
"""

from __future__ import annotations

from goodbot_fakes.teams.delivery import Delivery, Outbox, Pace
from goodbot_fakes.teams.errors import TeamsError
from goodbot_fakes.teams.identity import IdentityProvider, forgeries
from goodbot_fakes.teams.people import Dialog, Person
from goodbot_fakes.teams.server import APP_ID, PASSWORD, FakeTeams
from goodbot_fakes.teams.tenant import Account, Message, Tenant, TenantConversation

__all__ = [
    "APP_ID",
    "PASSWORD",
    "Account",
    "Delivery",
    "Dialog",
    "FakeTeams",
    "IdentityProvider",
    "Message",
    "Outbox",
    "Pace",
    "Person",
    "TeamsError",
    "Tenant",
    "TenantConversation",
    "forgeries",
]
