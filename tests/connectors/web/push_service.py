# SPDX-License-Identifier: Apache-2.0
"""A push service on this machine, and browsers that read what it carries: the other side of the RFCs."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import os
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def data(encoded: str) -> bytes:
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))


class Keys:
    """What one browser keeps to itself, and what it gives out."""

    def __init__(self) -> None:
        self._own = ec.generate_private_key(ec.SECP256R1())
        self._secret = os.urandom(16)
        self._point = self._own.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        self.given = {"p256dh": text(self._point), "auth": text(self._secret)}

    def read(self, body: bytes) -> dict[str, Any]:
        """Decrypt a message, in the steps of RFC 8291, section 3.4, written out."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, sealed = body[21 : 21 + length], body[21 + length :]
        assert length == 65
        assert len(sealed) <= size, "one record"
        other = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        first = _hmac(self._secret, self._own.exchange(ec.ECDH(), other))
        shared = _hmac(first, b"WebPush: info\x00" + self._point + sender + b"\x01")
        second = _hmac(salt, shared)
        key = _hmac(second, b"Content-Encoding: aes128gcm\x00\x01")[:16]
        nonce = _hmac(second, b"Content-Encoding: nonce\x00\x01")[:12]
        plain, mark, _ = AESGCM(key).decrypt(nonce, sealed, None).rpartition(b"\x02")
        assert mark
        return json.loads(plain)


def _hmac(key: bytes, said: bytes) -> bytes:
    return hmac.new(key, said, hashlib.sha256).digest()


def sender(headers: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Whose key has signed, and what it says; raises InvalidSignature."""
    scheme, _, rest = headers["Authorization"].partition(" ")
    assert scheme == "vapid"
    parts = dict(one.strip().split("=", 1) for one in rest.split(","))
    head, said, signature = parts["t"].split(".")
    assert json.loads(data(head)) == {"typ": "JWT", "alg": "ES256"}
    both = data(signature)
    assert len(both) == 64
    der = encode_dss_signature(int.from_bytes(both[:32], "big"), int.from_bytes(both[32:], "big"))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data(parts["k"]))
    key.verify(der, f"{head}.{said}".encode(), ec.ECDSA(SHA256()))
    return parts["k"], json.loads(data(said))


@dataclass
class Service:
    """Everything that came; what is answered is 201 once `answers` is used up, and 0 is nothing, ever."""

    origin: str = ""
    paths: list[str] = field(default_factory=list[str])
    bodies: list[bytes] = field(default_factory=list[bytes])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    answers: list[int] = field(default_factory=list[int])
    retry_after: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        self.bodies.append(await request.read())
        self.headers.append(dict(request.headers))
        status = self.answers.pop(0) if self.answers else 201
        if not status:
            await asyncio.Event().wait()
        said = {"Location": "/elsewhere"} | ({"Retry-After": self.retry_after} if self.retry_after else {})
        return web.Response(status=status, headers=said)


@contextlib.asynccontextmanager
async def push_service() -> AsyncGenerator[Service]:
    service, app = Service(), web.Application()
    app.router.add_post("/{any:.*}", service.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield service
    finally:
        await runner.cleanup()
