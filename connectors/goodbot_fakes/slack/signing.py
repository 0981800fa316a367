# SPDX-License-Identifier: Apache-2.0
"""Slack's request signatures, version v0: docs.slack.dev/authentication/verifying-requests."""

from __future__ import annotations

import hashlib
import hmac


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """`v0=` and the hex HMAC-SHA256 of `v0:TIMESTAMP:BODY`."""
    signed = f"v0:{timestamp}:".encode() + body
    return "v0=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def headers(secret: str, now: float, body: bytes) -> dict[str, str]:
    """The two headers of a request that Slack sends at `now` (seconds since the epoch)."""
    timestamp = str(int(now))
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": signature(secret, timestamp, body)}


def forgeries(secret: str, now: float, body: bytes) -> dict[str, dict[str, str]]:
    """Headers that must be refused with 401, by what is wrong with them."""
    good = headers(secret, now, body)
    stamp, sign = good
    return {
        "no signature": {stamp: good[stamp]},
        "no timestamp": {sign: good[sign]},
        "neither": {},
        "empty": {stamp: "", sign: ""},
        "another secret": headers(secret[::-1], now, body),
        "another body": headers(secret, now, body + b" "),
        "another version": {**good, sign: "v1" + good[sign][2:]},
        "truncated": {**good, sign: good[sign][:-1]},
        "only the version": {**good, sign: "v0="},
        "upper case": {**good, sign: good[sign].upper()},
        "not ASCII": {**good, sign: "v0=\u00e9" + good[sign][4:]},
        "ten minutes old": headers(secret, now - 600, body),
        "ten minutes ahead": headers(secret, now + 600, body),
        "another time than signed": {**good, stamp: str(int(now) + 1)},
        "a time that is no number": {**good, stamp: "yesterday"},
        "a time with a fraction": {**good, stamp: f"{now:.3f}"},
        "a negative time": {**good, stamp: f"-{good[stamp]}"},
        "an endless time": {**good, stamp: "9" * 5000},
    }
