# SPDX-License-Identifier: Apache-2.0
"""How updates are received: long polling, or a webhook. Never both."""

from __future__ import annotations

from typing import Any

from goodbot_fakes.telegram.account import BotAccount
from goodbot_fakes.telegram.errors import WEBHOOK_ACTIVE, Json, conflict


async def get_updates(
    account: BotAccount,
    *,
    offset: int = 0,
    limit: int = 100,
    timeout: int = 0,
    allowed_updates: list[Any] | None = None,
) -> list[Json]:
    """getUpdates."""
    if account.webhook.url:
        raise conflict(WEBHOOK_ACTIVE)
    if allowed_updates is not None:
        account.updates.allow(allowed_updates)
    return await account.updates.poll(offset, limit, timeout)


def set_webhook(
    account: BotAccount,
    *,
    url: str = "",
    secret_token: str = "",
    max_connections: int = 40,
    allowed_updates: list[Any] | None = None,
    drop_pending_updates: bool = False,
    ip_address: str = "",
) -> bool:
    """setWebhook; on loopback an `http` address will do, as on a Bot API server of one's own."""
    account.webhook.set(url, secret_token, max_connections)
    if allowed_updates is not None:
        account.updates.allow(allowed_updates)
    if drop_pending_updates:
        account.updates.drop()
    return True


def delete_webhook(account: BotAccount, *, drop_pending_updates: bool = False) -> bool:
    """deleteWebhook."""
    return set_webhook(account, drop_pending_updates=drop_pending_updates)


def get_webhook_info(account: BotAccount) -> Json:
    """getWebhookInfo."""
    return account.webhook.info


METHODS = (get_updates, set_webhook, delete_webhook, get_webhook_info)
