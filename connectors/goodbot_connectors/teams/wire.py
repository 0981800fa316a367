# SPDX-License-Identifier: Apache-2.0
"""The Bot Framework, as far as we use it: activities come in, and go out, as plain JSON.

With `auth`, `sender` and `keys` this is all that knows its SDK; see README.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, cast

import aiohttp
from botbuilder.core import InvokeResponse, TurnContext
from botbuilder.integration.aiohttp import CloudAdapter
from botbuilder.schema import (
    Activity,
    ActivityTypes,
    ChannelAccount,
    ConversationAccount,
    ConversationParameters,
)
from botframework.connector.aio import ConnectorClient
from botframework.connector.auth import ConnectorFactory, MicrosoftAppCredentials
from botframework.connector.bot_framework_sdk_client_async import BotFrameworkConnectorConfiguration
from goodbot.base.clock import Clock
from goodbot.base.errors import RetriableError
from goodbot.base.proxies import proxy_url
from goodbot.config.secrets import Secret
from msrest.pipeline import AsyncPipeline
from msrest.pipeline.universal import RawDeserializer

from goodbot_connectors.kit.dates import Dates
from goodbot_connectors.kit.fields import Json, as_json, string, sub
from goodbot_connectors.teams.auth import TeamsAuthentication
from goodbot_connectors.teams.config import TeamsSettings
from goodbot_connectors.teams.keys import SigningKeys
from goodbot_connectors.teams.references import Reference
from goodbot_connectors.teams.sender import TARGETED, RefusedError, Sender
from goodbot_connectors.teams.tokens import AccessToken, ServiceUrls

__all__ = ["RefusedError", "Wire"]

_SECONDS = aiohttp.ClientTimeout(total=30, connect=10)

Take = Callable[[], Awaitable[Json]]
"""Stores what an activity holds, and gives the body of the answer if it is an invoke."""


class Wire:
    """One bot at the Bot Framework."""

    def __init__(
        self,
        settings: TeamsSettings,
        password: Secret,
        clock: Clock,
        trouble: Callable[[str], None],
        dates: Dates,
    ) -> None:
        self._session = aiohttp.ClientSession(timeout=_SECONDS, trace_configs=[dates.trace()])
        urls = ServiceUrls(settings)
        self._token = (
            None
            if settings.insecure_local
            else AccessToken(self._session, clock, settings, password, trouble)
        )
        clients = _Clients(Sender(self._session, self._token, urls))
        self._clients = clients
        keys = SigningKeys(settings.openid_metadata, self._fetch, clock)
        self._authentication = TeamsAuthentication(settings, keys, urls, clients)
        self._adapter = CloudAdapter(self._authentication)

    async def open(self) -> None:
        """Get a token. Raises FatalConnectorError for a wrong secret, RetriableError."""
        if self._token is not None:
            await self._token.get()

    async def close(self) -> None:
        """Let go of the connections; idempotent."""
        await self._session.close()

    async def admit(self, authorization: str) -> None:
        """Whether the caller bears a token for us: asked before anything that they send is read.

        Raises PermissionError, and RetriableError where the keys are not known.
        """
        await self._authentication.admit(authorization)

    async def receive(self, body: Json, authorization: str, take: Take) -> Json | None:
        """Let an activity in and have it taken; what an invoke is to be answered with, else None.

        Raises PermissionError for a call that is not Teams's, and what `take` raises.
        """

        async def logic(context: TurnContext) -> None:
            answer = await take()
            if string(body, "type") == ActivityTypes.invoke:
                told = InvokeResponse(status=200, body=answer)
                await context.send_activity(Activity(type=ActivityTypes.invoke_response, value=told))

        adapter: Any = self._adapter  # whose types promise an answer, also where there is none
        response = await adapter.process_activity(authorization, _envelope(body), logic)
        return None if response is None else as_json(response.body)

    async def send(self, to: Reference, activity: Json, *, targeted: bool = False) -> str:
        """Send an activity into a conversation; its id, empty where Teams gives it none."""
        headers = {TARGETED: "yes"} if targeted else None
        sent = await self._clients.at(to.service_url).conversations.send_to_conversation(
            to.conversation, _Raw(to.addressed(activity)), custom_headers=headers
        )
        return _id(sent)

    async def update(self, to: Reference, message: str, activity: Json) -> None:
        """Put another activity in the place of one of ours."""
        await self._clients.at(to.service_url).conversations.update_activity(
            to.conversation, message, _Raw({**to.addressed(activity), "id": message})
        )

    async def delete(self, to: Reference, message: str) -> None:
        """Delete one of our activities."""
        await self._clients.at(to.service_url).conversations.delete_activity(to.conversation, message)

    async def open_chat(self, beside: Reference, user: str) -> str:
        """The id of the personal chat with somebody of the tenant of `beside`."""
        made = await self._clients.at(beside.service_url).conversations.create_conversation(
            ConversationParameters(
                bot=ChannelAccount(id=beside.bot),
                members=[ChannelAccount(id=user)],
                is_group=False,
                channel_data={"tenant": {"id": beside.tenant}},
            )
        )
        return _id(made)

    async def _fetch(self, url: str) -> Json:
        return await fetch(self._session, url)


async def fetch(session: aiohttp.ClientSession, url: str) -> Json:
    """The JSON at an address. Raises RetriableError."""
    try:
        async with session.get(url, allow_redirects=False, proxy=proxy_url(url)) as answer:
            answer.raise_for_status()
            return as_json(await answer.json(content_type=None))
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise RetriableError(type(error).__name__, retry_after=5.0) from None


class _Clients(ConnectorFactory):
    """A client for each service URL; making one costs milliseconds, and there are a few."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._known: dict[str, Any] = {}

    async def create(self, service_url: str, audience: str = "") -> Any:
        return self.at(service_url)

    def at(self, service_url: str) -> Any:
        if service_url not in self._known:
            configuration = BotFrameworkConnectorConfiguration(
                MicrosoftAppCredentials.empty(), service_url, pipeline_type=cast("Any", self._pipeline)
            )
            self._known[service_url] = ConnectorClient(None, custom_configuration=configuration)
        return self._known[service_url]

    def _pipeline(self, configuration: Any) -> AsyncPipeline[Any, Any]:
        return AsyncPipeline([configuration.user_agent_policy, RawDeserializer()], self._sender)


class _Raw(Activity):
    """An activity that is written as it is: the SDK's models drop what Teams has added since."""

    _attribute_map: ClassVar = {"additional_properties": {"key": "", "type": "{object}"}}

    def __init__(self, json: Json) -> None:
        self.additional_properties = dict(json)


def _envelope(body: Json) -> Activity:
    """What the SDK has to know of an activity; the rest is read from the JSON."""
    conversation = ConversationAccount(id=string(sub(body, "conversation"), "id"))
    return Activity(
        type=string(body, "type"),
        id=string(body, "id"),
        channel_id=string(body, "channelId"),
        service_url=string(body, "serviceUrl"),
        name=string(body, "name"),
        conversation=conversation,
        from_property=ChannelAccount(id=string(sub(body, "from"), "id")),
        recipient=ChannelAccount(id=string(sub(body, "recipient"), "id")),
    )


def _id(answer: Any) -> str:
    """The id in what the SDK made of an answer."""
    found = getattr(answer, "id", None)
    return found if isinstance(found, str) else ""
