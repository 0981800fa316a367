# SPDX-License-Identifier: Apache-2.0
"""A message for one browser, which the service that carries it cannot read, and who it is from.

RFC 8291 (with the coding `aes128gcm` of RFC 8188) and RFC 8292. It is imported only once somebody wants
such messages: `cryptography` takes a while, and may be absent.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

_CURVE = ec.SECP256R1()
_RECORD = 4096
_SECRET, _SALT = 16, 16
_HOURS = 12
"""So long a signature holds; a day is the most that services take."""


def made() -> str:
    """A new key of ours, as text."""
    return _text(ec.generate_private_key(_CURVE).private_numbers().private_value.to_bytes(32, "big"))


def public(own: str) -> str:
    """What browsers are given of it."""
    return _text(_point(_private(own).public_key()))


def require_keys(key: str, secret: str) -> None:
    """Raise ValueError for what is not the key and the secret of a browser."""
    _public(key)
    if len(_bytes(secret)) != _SECRET:
        raise ValueError(secret)


def encrypted(
    plain: bytes, key: str, secret: str, *, once: str | None = None, salt: bytes | None = None
) -> bytes:
    """A message that only the holder of a key can read.

    Args:
        plain: What it says.
        key: The browser's public key (`p256dh`).
        secret: What the browser shares with us alone (`auth`).
        once: Our key for this message; by default a new one.
        salt: By default a new one.

    Returns:
        The body of the request.

    Raises:
        ValueError: Key or secret is none.
    """
    own, other = _private(once or made()), _public(key)
    salt = salt or os.urandom(_SALT)
    info = b"WebPush: info\0" + _point(other) + _point(own.public_key())
    shared = _derived(own.exchange(ec.ECDH(), other), _bytes(secret), info, 32)
    content = _derived(shared, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(shared, salt, b"Content-Encoding: nonce\0", 12)
    sender = _point(own.public_key())
    head = salt + _RECORD.to_bytes(4, "big") + len(sender).to_bytes(1, "big") + sender
    return head + AESGCM(content).encrypt(nonce, plain + b"\x02", None)  # 2: the last record


def signed(own: str, endpoint: str, *, now: float, contact: str) -> str:
    """What the header `Authorization` says to the service of an endpoint: who sends, for half a day."""
    parts = urlsplit(endpoint)
    said = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": int(now) + _HOURS * 3600, "sub": contact}
    token = ".".join(_text(json.dumps(one).encode()) for one in ({"typ": "JWT", "alg": "ES256"}, said))
    two = decode_dss_signature(_private(own).sign(token.encode(), ec.ECDSA(SHA256())))
    signature = b"".join(number.to_bytes(32, "big") for number in two)
    return f"vapid t={token}.{_text(signature)}, k={public(own)}"


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(secret)


def _private(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(_bytes(text), "big"), _CURVE)


def _public(text: str) -> ec.EllipticCurvePublicKey:
    return ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, _bytes(text))


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """Raises ValueError."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error:
        raise ValueError(text) from None
