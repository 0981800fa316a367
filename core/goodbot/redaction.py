"""Keys and tokens that people paste, masked before anything is stored: what is learnt can be said again.

Formats are those that their issuers have published, each known by its first characters. The time is
linear in the text: what repeats without a bound either ends its pattern or cannot be entered half way.
"""

from __future__ import annotations

import re

MASKED = "***"

_WORD = r"[A-Za-z0-9]"
_WIDE = r"[A-Za-z0-9_-]"
_BEGIN, _KEY, _END = "-----BEGIN ", "PRIVATE KEY", "-----END "
_LINE = 80
"""Characters in which a key file's first line, and its last, says what it is."""

_FORMATS = {
    # models
    "sk-": rf"(?:(?:proj|ant|svcacct|admin|or|lf)-{_WIDE}{{20,}}+|{_WORD}{{32,}}+)",
    "hf_": rf"{_WORD}{{30,}}+", "gsk_": rf"{_WORD}{{40,}}+", "xai-": rf"{_WORD}{{40,}}+",
    "pplx-": rf"{_WORD}{{40,}}+", "r8_": rf"{_WORD}{{30,}}+", "nvapi-": rf"{_WIDE}{{40,}}+",
    "gb_": rf"{_WIDE}{{30,}}+",
    # code and packages
    "ghp_": rf"{_WORD}{{30,}}+", "gho_": rf"{_WORD}{{30,}}+", "ghu_": rf"{_WORD}{{30,}}+",
    "ghs_": rf"{_WORD}{{30,}}+", "ghr_": rf"{_WORD}{{30,}}+", "github_pat_": r"\w{40,}+",
    "glpat-": rf"{_WIDE}{{20,}}+", "npm_": rf"{_WORD}{{36,}}+", "pypi-": rf"{_WIDE}{{50,}}+",
    "dckr_pat_": rf"{_WIDE}{{20,}}+", "rubygems_": r"[0-9a-f]{40,}+", "dop_v1_": r"[0-9a-f]{40,}+",
    # chats
    "xoxb-": rf"{_WIDE}{{20,}}+", "xoxp-": rf"{_WIDE}{{20,}}+", "xoxa-": rf"{_WIDE}{{20,}}+",
    "xoxe-": rf"{_WIDE}{{20,}}+", "xoxs-": rf"{_WIDE}{{20,}}+", "xapp-": rf"{_WIDE}{{20,}}+",
    "hooks.slack.com/services/": r"[A-Za-z0-9/]{30,}+",
    # clouds
    "AKIA": r"[A-Z0-9]{16}(?![A-Z0-9])", "ASIA": r"[A-Z0-9]{16}(?![A-Z0-9])", "AIza": rf"{_WIDE}{{35}}",
    "ya29.": rf"{_WIDE}{{30,}}+", "GOCSPX-": rf"{_WIDE}{{20,}}+", "dapi": r"[0-9a-f]{32}(?![0-9a-f])",
    "hvs.": rf"{_WIDE}{{20,}}+", "dp.pt.": rf"{_WORD}{{30,}}+", "tfp_": rf"{_WORD}{{40,}}+",
    # money and mail
    "sk_live_": rf"{_WORD}{{20,}}+", "sk_test_": rf"{_WORD}{{20,}}+", "rk_live_": rf"{_WORD}{{20,}}+",
    "whsec_": rf"{_WORD}{{20,}}+", "sq0atp-": rf"{_WIDE}{{20,}}+", "shpat_": r"[0-9a-f]{32}",
    "SG.": rf"{_WIDE}{{16,32}}\.{_WIDE}{{30,}}+", "key-": r"[0-9a-f]{32}(?![0-9a-f])",
    # notes and plans
    "lin_api_": rf"{_WORD}{{30,}}+", "ntn_": rf"{_WORD}{{40,}}+", "secret_": rf"{_WORD}{{40,}}+",
    "AGE-SECRET-KEY-": r"[A-Z0-9]{40,}+",
}  # fmt: skip
"""By its first characters, what follows them."""

_SHAPES = (
    (":AA", r"(?<![0-9])[0-9]{8,12}:AA[A-Za-z0-9_-]{33}"),  # Telegram's bots
    (".", rf"(?<!{_WIDE})[MNO]{_WIDE}{{22,30}}\.{_WIDE}{{6}}\.{_WIDE}{{27,}}+"),  # Discord's
    ("eyJ", rf"(?<!{_WIDE})eyJ{_WIDE}{{10,}}+\.eyJ{_WIDE}{{10,}}+\.{_WIDE}*+"),  # JSON web tokens
    ("earer ", r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{24,}+=*+"),
    ("://", r"(?<=://)[^\s/@:]{1,80}:[^\s/@]{1,200}(?=@)"),  # who and with what password
)
"""What must be in a text for it to be looked for, and its pattern."""

_LONG = re.compile(r"\S{20}")
"""Nothing shorter is a key; most of what people say has no such word."""
_PREFIXES = tuple(_FORMATS)
_PREFIXED = re.compile(
    rf"(?<!{_WORD})(?:{'|'.join(re.escape(start) + rest for start, rest in _FORMATS.items())})"
)
_SHAPED = tuple((sign, re.compile(pattern)) for sign, pattern in _SHAPES)


def redact(text: str) -> str:
    """The text with `***` for every key, token and password that can be told by its form."""
    if "://" not in text and _LONG.search(text) is None:
        return text
    if any(prefix in text for prefix in _PREFIXES):
        text = _PREFIXED.sub(MASKED, text)
    for sign, pattern in _SHAPED:
        if sign in text:
            text = pattern.sub(MASKED, text)
    return _without_key_files(text) if _BEGIN in text else text


def _without_key_files(text: str) -> str:
    """Without private keys in PEM; one whose end is missing goes on to the end of the text."""
    kept: list[str] = []
    at = 0
    while (begin := text.find(_BEGIN, at)) >= 0:
        if _KEY not in text[begin : begin + _LINE].partition("\n")[0]:
            kept.append(text[at : begin + len(_BEGIN)])
            at = begin + len(_BEGIN)
            continue
        kept.append(text[at:begin] + MASKED)
        end = text.find(_END, begin)
        if end < 0:
            return "".join(kept)
        closing = text.find("-----", end + len(_END), end + len(_END) + _LINE)
        at = closing + 5 if closing >= 0 else end + len(_END)
    return "".join([*kept, text[at:]])
