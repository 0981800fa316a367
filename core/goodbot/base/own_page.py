# SPDX-License-Identifier: Apache-2.0
"""What a page of ours in a browser carries, and how what it sends is told from what another page sends."""

from __future__ import annotations

from urllib.parse import urlsplit

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
    " worker-src 'self'; manifest-src 'self';"
    " base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
SITES = ("same-origin", "none")
"""What `Sec-Fetch-Site` says of our own pages, and of an address that a person has opened."""


def is_ours(origin: str, host: str, address: str = "") -> bool:
    """Whether `Origin` names us: by the `Host` of the same request, which was looked at, or by `address`."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    whole = parts.scheme in ("http", "https") and origin == f"{parts.scheme}://{parts.netloc}"
    return whole and (parts.netloc == host or origin == address)
