# SPDX-License-Identifier: Apache-2.0
"""Who signs what: the tokens that Teams shows to a bot, and those that it gives to one.

The Bot Framework signs a JWT for each request to a bot, with keys that its OpenID metadata leads to:
learn.microsoft.com/azure/bot-service/rest-api/bot-framework-rest-connector-authentication. `forgeries`
has what must be refused. Needs PyJWT and cryptography, which a bot's SDK brings.
"""

from __future__ import annotations

import functools
import json
import secrets
from collections.abc import Callable
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from goodbot.base.clock import Clock, SystemClock
from jwt.algorithms import RSAAlgorithm

from goodbot_fakes.teams.errors import TeamsError

Json = dict[str, Any]
ISSUER = "https://api.botframework.com"
SCOPE = "https://api.botframework.com/.default"
_HOUR = 3600


@functools.cache
def _key(name: str) -> RSAPrivateKey:
    """Keys are dear to make: one a name and process."""
    return generate_private_key(public_exponent=65537, key_size=2048)


class IdentityProvider:
    """The Bot Framework's signing keys, and the logins of one bot."""

    def __init__(self, clock: Clock, app_id: str, password: str) -> None:
        self.app_id, self.password = app_id, password
        self.kid = "key-1"
        self.endorsements: list[str] = ["msteams", "webchat"]
        self.rotated = 0
        self.fetched = 0
        """How often the keys were fetched."""
        self.lifetime = _HOUR
        """Seconds that an access token is good for."""
        self._clock = clock
        self._granted: dict[str, float] = {}
        self._header: tuple[object, str] = ((), "")

    # -- to the bot

    def metadata(self, url: str) -> Json:
        """The OpenID document that leads to the keys."""
        return {
            "issuer": ISSUER,
            "authorization_endpoint": "https://invalid.botframework.com",
            "jwks_uri": f"{url}/openid/keys",
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        }

    def keys(self) -> Json:
        """The public keys, each with the channels that it speaks for."""
        self.fetched += 1
        jwk: Json = json.loads(RSAAlgorithm.to_jwk(_key(self.kid).public_key()))
        jwk.pop("key_ops", None)
        return {
            "keys": [
                jwk
                | {
                    "use": "sig",
                    "kid": self.kid,
                    "x5t": self.kid,
                    "alg": "RS256",
                    "endorsements": self.endorsements,
                }
            ]
        }

    def rotate(self) -> None:
        """From now on another key signs; the old one is gone."""
        self.rotated += 1
        self.kid = f"key-{self.rotated + 1}"

    def claims(self, service_url: str, **other: Any) -> Json:
        """What a good token says. Who checks it asks the machine's clock, so this does too."""
        now = int(SystemClock().now())
        return {
            "serviceurl": service_url,
            "nbf": now - 60,
            "exp": now + _HOUR,
            "iss": ISSUER,
            "aud": self.app_id,
            **other,
        }

    def sign(self, claims: Json, *, key: str = "", **headers: Any) -> str:
        """The Authorization header with these claims; by default signed with the newest key."""
        name = key or self.kid
        made = jwt.encode(claims, _key(name), "RS256", {"kid": self.kid, **headers})
        return f"Bearer {made}"

    def header(self, service_url: str) -> str:
        """What goes with a request to the bot; one token serves a minute of them."""
        minute = (service_url, self.kid, int(SystemClock().now()) // 60)
        if self._header[0] != minute:
            self._header = minute, self.sign(self.claims(service_url))
        return self._header[1]

    # -- from the bot

    def log_in(self, form: Json) -> Json:
        """An access token for client id and secret, as OAuth's client credentials ask for it."""
        if form.get("grant_type") != "client_credentials" or form.get("scope") != SCOPE:
            raise _oauth(400, "invalid_request", "AADSTS900144: the request is not as it should be")
        if form.get("client_id") != self.app_id:
            raise _oauth(400, "unauthorized_client", "AADSTS700016: Application was not found")
        if not secrets.compare_digest(str(form.get("client_secret", "")), self.password):
            raise _oauth(401, "invalid_client", "AADSTS7000215: Invalid client secret provided.")
        token = secrets.token_urlsafe(24)
        self._granted[token] = self._clock.now() + self.lifetime
        return {"token_type": "Bearer", "expires_in": self.lifetime, "access_token": token}

    def check(self, header: str) -> None:
        """401 unless the bot shows a token that is still good."""
        token = header.removeprefix("Bearer ")
        if self._granted.get(token, 0.0) <= self._clock.now():
            raise TeamsError(401, "Unauthorized", "Authorization has been denied for this request.")

    def revoke(self) -> None:
        """No access token that was given is good any more."""
        self._granted.clear()


def _oauth(status: int, error: str, description: str) -> TeamsError:
    refusal = TeamsError(status, error, description)
    refusal.body = {"error": error, "error_description": description}
    return refusal


def forgeries(identity: IdentityProvider, service_url: str) -> dict[str, str]:
    """Authorization headers that a bot must refuse, by what is wrong with them; "" is none at all."""
    now = int(identity.claims(service_url)["nbf"]) + 60
    good = identity.header(service_url)
    head, body, sign = good.removeprefix("Bearer ").split(".")

    def claims(**other: Any) -> str:
        return identity.sign(identity.claims(service_url, **other))

    def without(name: str) -> str:
        kept = {key: value for key, value in identity.claims(service_url).items() if key != name}
        return identity.sign(kept)

    made: dict[str, Callable[[], str]] = {
        "no header": lambda: "",
        "no token": lambda: "Bearer ",
        "another scheme": lambda: good.replace("Bearer", "Basic"),
        "a word": lambda: "Bearer goodbot",
        "three parts of nothing": lambda: "Bearer ..",
        "two tokens": lambda: f"{good} {good}",
        "another issuer": lambda: claims(iss="https://sts.windows.net/f8cdef31/"),
        "the emulator's issuer": lambda: claims(
            iss="https://sts.windows.net/d6d49420-f39b-4df7-a1dc-d59a935871db/",
            ver="1.0",
            appid=identity.app_id,
        ),
        "a skill's token": lambda: claims(
            iss="https://login.microsoftonline.com/d6d49420-f39b-4df7-a1dc-d59a935871db/v2.0",
            ver="2.0",
            azp="0d5e5f0e-0000-4000-8000-00000000000a",
        ),
        "no issuer": lambda: without("iss"),
        "another audience": lambda: claims(aud="0d5e5f0e-0000-4000-8000-00000000000b"),
        "no audience": lambda: without("aud"),
        "an empty audience": lambda: claims(aud=""),
        "expired ten minutes ago": lambda: claims(nbf=now - 2 * _HOUR, exp=now - 600),
        "no expiry": lambda: without("exp"),
        "good in ten minutes": lambda: claims(nbf=now + 600),
        "another service": lambda: claims(serviceurl="https://smba.example/emea/"),
        "no service": lambda: without("serviceurl"),
        "an unknown key": lambda: identity.sign(identity.claims(service_url), kid="key-0"),
        "no key": lambda: identity.sign(identity.claims(service_url), kid=""),
        "another key of the same name": lambda: identity.sign(identity.claims(service_url), key="forged"),
        "no signature": lambda: f"Bearer {head}.{body}.",
        "another body": lambda: f"Bearer {head}.{body[:-4]}AAAA.{sign}",
        "no algorithm": lambda: (
            "Bearer " + jwt.encode(identity.claims(service_url), "", "none", {"kid": identity.kid})
        ),
        "a shared secret": lambda: (
            "Bearer "
            + jwt.encode(
                identity.claims(service_url), identity.app_id.ljust(32), "HS256", {"kid": identity.kid}
            )
        ),
    }
    return {name: make() for name, make in made.items()}
