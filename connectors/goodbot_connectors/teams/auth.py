# SPDX-License-Identifier: Apache-2.0
"""Whether a call really comes from Teams and is meant for us.

The SDK checks the signature (RS256), issuer, audience, expiry and not-before with five minutes of
skew, and that the claimed service URL is the activity's. What it lets pass is refused here: tokens of
other issuers that it would take (the Bot Framework Emulator, other bots), tokens without an end or a
beginning, keys that are not endorsed for Teams, activities without a service URL, and service URLs
that no token of ours may be sent to.
"""

from __future__ import annotations

from typing import Any

import jwt
from botbuilder.integration.aiohttp import ConfigurationBotFrameworkAuthentication
from botbuilder.schema import Activity
from botframework.connector.auth import (
    AuthenticateRequestResult,
    AuthenticationConstants,
    BotFrameworkAuthentication,
    ClaimsIdentity,
    ConnectorFactory,
    PasswordServiceClientCredentialFactory,
    UserTokenClient,
)
from botframework.connector.auth.jwt_token_extractor import JwtTokenExtractor
from goodbot.base.errors import RetriableError

from goodbot_connectors.teams.config import TeamsSettings
from goodbot_connectors.teams.keys import SigningKey, SigningKeys
from goodbot_connectors.teams.tokens import ServiceUrls

ISSUER = AuthenticationConstants.TO_BOT_FROM_CHANNEL_TOKEN_ISSUER
CHANNEL = "msteams"
_LONGEST = 16_384
"""Characters of an Authorization header; Teams's have about 2,000."""


class TeamsAuthentication(BotFrameworkAuthentication):
    """What CloudAdapter asks before it lets an activity in. Refusals are PermissionError."""

    def __init__(
        self, settings: TeamsSettings, keys: SigningKeys, urls: ServiceUrls, factory: ConnectorFactory
    ) -> None:
        self._local, self._urls, self._factory = settings.insecure_local, urls, factory
        sdk: Any = JwtTokenExtractor  # whose cache has no types
        sdk.metadataCache[keys.url] = _Endorsed(keys)
        self._sdk = ConfigurationBotFrameworkAuthentication(
            _Configuration(keys.url),
            credentials_factory=PasswordServiceClientCredentialFactory(settings.app_id),
        )

    async def admit(self, auth_header: str) -> None:
        """Check all of a token that needs no activity. Raises as `authenticate_request` does."""
        if not self._local:
            await self._checked(Activity(channel_id=CHANNEL), auth_header)

    async def authenticate_request(self, activity: Activity, auth_header: str) -> AuthenticateRequestResult:
        """Let an activity in. Raises PermissionError; RetriableError where the keys are not known."""
        if activity.channel_id != CHANNEL:
            raise PermissionError("it is not from Teams")
        if not self._urls.allows(activity.service_url or ""):
            raise PermissionError("its service URL is none of Teams's")
        if self._local:
            identity = ClaimsIdentity({}, True, AuthenticationConstants.ANONYMOUS_AUTH_TYPE)
            result = AuthenticateRequestResult()
            result.claims_identity = identity
        else:
            result = await self._checked(activity, auth_header)
        result.connector_factory = self._factory
        return result

    async def _checked(self, activity: Activity, header: str) -> AuthenticateRequestResult:
        scheme, _, token = header.partition(" ")
        if scheme != "Bearer" or not token or len(header) > _LONGEST:
            raise PermissionError("it bears no token")
        try:
            # Of other issuers the SDK takes other kinds of tokens, with fewer checks.
            if jwt.decode(token, options={"verify_signature": False}).get("iss") != ISSUER:
                raise PermissionError("its token is not from the Bot Framework")
            result: Any = await self._sdk.authenticate_request(activity, header)
        except (PermissionError, RetriableError):
            raise
        except Exception as error:  # PyJWT's errors, and plain ones of the SDK
            raise PermissionError(f"its token is refused: {type(error).__name__}") from None
        claims = result.claims_identity.claims
        if not all(isinstance(claims.get(name), (int, float)) for name in ("exp", "nbf")):
            raise PermissionError("its token is without an end or a beginning")
        return result

    async def authenticate_streaming_request(
        self, auth_header: str, channel_id_header: str
    ) -> AuthenticateRequestResult:
        """Never: Teams calls, and we open no socket."""
        raise PermissionError("there is no streaming connection here")

    def create_connector_factory(self, claims_identity: ClaimsIdentity) -> ConnectorFactory:
        """What makes the clients that we answer with."""
        return self._factory

    async def create_user_token_client(self, claims_identity: ClaimsIdentity) -> UserTokenClient:
        """None: we sign nobody in. (The SDK asks for one with each activity and only keeps it.)"""
        return None  # pyright: ignore[reportReturnType]


class _Endorsed:
    """The keys, as the SDK asks for them; those that are not endorsed for Teams are none."""

    def __init__(self, keys: SigningKeys) -> None:
        self._keys = keys

    async def get(self, key_id: str | None) -> SigningKey:
        key = await self._keys.get(key_id)
        if CHANNEL not in key.endorsements:
            raise PermissionError("signed with a key that is not endorsed for Teams")
        return key


class _Configuration:
    """What the SDK reads: the public cloud, with keys from where the settings say."""

    VALIDATE_AUTHORITY = True
    TO_CHANNEL_FROM_BOT_LOGIN_URL = AuthenticationConstants.TO_CHANNEL_FROM_BOT_LOGIN_URL_PREFIX
    TO_CHANNEL_FROM_BOT_OAUTH_SCOPE = AuthenticationConstants.TO_CHANNEL_FROM_BOT_OAUTH_SCOPE
    TO_BOT_FROM_CHANNEL_TOKEN_ISSUER = ISSUER
    OAUTH_URL = AuthenticationConstants.OAUTH_URL

    def __init__(self, metadata: str) -> None:
        self.TO_BOT_FROM_CHANNEL_OPENID_METADATA_URL = metadata
        self.TO_BOT_FROM_EMULATOR_OPENID_METADATA_URL = metadata
