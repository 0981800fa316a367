# SPDX-License-Identifier: Apache-2.0
"""Keys and tokens that people paste, masked before anything is stored: what is learnt can be said again.

Formats are those that their issuers have published, each known by its first characters. The time is
linear in the text: what repeats without a bound either ends its pattern or cannot be entered half way. Long
texts are looked through in pieces, so that others are served meanwhile.
"""

from __future__ import annotations

import re

from goodbot.base import in_pieces

MASKED = "***"

_WORD = r"[A-Za-z0-9]"
_WIDE = r"[A-Za-z0-9_-]"
_BASE64 = r"[A-Za-z0-9+/]"
_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![A-Za-z0-9-])"
_RANDOM = r"(?=[a-z_-]{0,60}[A-Z0-9])"
"""Names of things are words in small letters; what was drawn at random is not."""
_BEGIN, _KEY, _END = "-----BEGIN ", "PRIVATE KEY", "-----END "
_LINE = 80
"""Characters in which a key file's first line, and its last, says what it is."""


def _begins(start: str, no: str = _WORD) -> str:
    """`start` with nothing of `no` before it, but an escape: of a line in JSON, of an address, a colour.

    The look back comes after it: a pattern that begins with letters is found fast.
    """
    escapes = (r"\\[nrtbf]", r"%[0-9A-F]{2}", r"\[[0-9]m", r"\[[0-9]{2}m")
    literal = re.escape(start)
    return rf"{literal}(?:(?<!{no}{literal})|{'|'.join(f'(?<={one}{literal})' for one in escapes)})"


def _word(least: int) -> str:
    return rf"{_RANDOM}{_WORD}{{{least},}}+"


def _wide(least: int) -> str:
    return rf"{_RANDOM}{_WIDE}{{{least},}}+=*+"


def _hex(count: int) -> str:
    return rf"[0-9a-f]{{{count}}}(?!{_WORD})"


_KINDS = (
    # of models
    ("sk-", rf"(?:(?:proj|ant|svcacct|admin|None|or|lf)-{_wide(20)}|{_word(32)})"),
    ("hf_ gsk_ xai- pplx- csk- tvly- r8_ api_org_ vck_ rpa_", _word(30)),
    ("nvapi- lsv2_pt_ lsv2_sk_ pcsk_ tgp_v1_ wandb_v1_", _wide(40)),
    ("jina_", _word(40)),
    ("fw_", rf"{_word(22)}(?!{_WIDE})"),
    ("gb_", rf"{_WIDE}{{43}}(?!{_WIDE})"),
    # of code and packages
    ("ghp_ gho_ ghu_ ghs_ ghr_ npm_ NRAK- PMAK- phx_ phc_", _word(31)),
    ("github_pat_ pypi- ATATT3 ATCTT3 figd_ figo_ figu_ dckr_pat_ dckr_oat_", _wide(40)),
    ("pscale_tkn_ pscale_pw_ pscale_oauth_ CCIPAT_ CCIPRJ_ nfp_ ops_eyJ", _wide(32)),
    ("glpat-", rf"{_wide(20)}(?:\.[0-9a-z]{{2}}\.?[0-9a-z]{{7}}(?!{_WORD}))?+"),
    ("glrt- gldt- glptt- glcbt- glft- glimt- glagent- glsoat- gloas- glffct- ATBB glsa_", _wide(20)),
    ("rubygems_ sk_", _hex(48)),
    ("sqp_ squ_ sqa_ bkua_ shippo_live_", _hex(40)),
    ("CLOJARS_", _hex(60)),
    ("cio AKCp", rf"{_RANDOM}(?:{_WORD}{{32}}|{_WORD}{{69}})(?!{_WORD})"),
    ("oy2", rf"(?=[a-z]{{0,43}}[0-9])[a-z0-9]{{43}}(?!{_WORD})"),
    # of chats, mail and notes
    ("xoxb- xoxp- xoxa- xoxc- xoxd- xoxe- xoxr- xoxs- xapp-", _wide(20)),
    ("lin_api_ lin_oauth_ ntn_ tfp_ apify_api_ rdme_ pnu_", _word(30)),
    ("secret_", rf"{_RANDOM}{_WORD}{{43}}(?!{_WORD})"),
    ("CFPAT-", _wide(40)),
    ("pat", rf"{_WORD}{{14}}\.[0-9a-f]{{64}}(?!{_WORD})"),  # Airtable's
    ("pat-na1- pat-na2- pat-eu1- pat-ap1- sdk-", _UUID),
    ("SG.", rf"{_RANDOM}{_WIDE}{{22}}\.{_WIDE}{{43}}(?!{_WIDE})"),
    ("xkeysib-", rf"[0-9a-f]{{64}}-{_WORD}{{16}}(?!{_WORD})"),
    ("re_", rf"{_RANDOM}{_WORD}{{8}}_{_WORD}{{24}}(?!{_WORD})"),
    ("SK", _hex(32)),
    # of clouds
    ("AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}(?![A-Za-z0-9])"),
    ("ABSK bedrock-api-key- IQoJb3JpZ2lu FwoGZXIvYXdz", rf"{_BASE64}{{100,}}+=*+"),
    ("AIza", rf"{_WIDE}{{35}}(?!{_WIDE})"),
    ("1//0", _wide(40)),
    ("ya29. GOCSPX- hvs. hvb. hvr. tskey- sb_secret_", _wide(20)),
    ("cfk_ cfut_ cfat_ mdb_sa_sk_ fo1_ HRKU-", _wide(36)),
    ("v1.0-", rf"[0-9a-f]{{24}}-[0-9a-f]{{146}}(?!{_WORD})"),
    ("fm1r_ fm1a_ fm2_", rf"{_BASE64}{{60,}}+=*+"),
    ("dp.st. dp.scim.", rf"(?:[a-z0-9_-]{{2,35}}\.)?{_word(30)}"),
    ("dp.pt. dp.ct. dp.sa. dp.audit. glc_ sbp_ rnd_", _word(28)),
    ("dop_v1_ doo_v1_ dor_v1_", _hex(64)),
    ("dapi", _hex(32)),
    ("AccountKey=", rf"{_BASE64}{{80,}}+=*+"),
    ("SharedAccessKey=", rf"{_BASE64}{{40,}}+=*+"),
    ("pul-", _hex(40)),
    # of who watches over programs
    ("eyJrIjoi", rf"{_word(60)}=*+"),  # Grafana's older ones
    ("sntrys_", r"[A-Za-z0-9+/=_-]{31,}+"),
    ("sntryu_ sntrya_ sntryi_", _hex(64)),
    ("NRJS-", _hex(19)),
    ("NRII- NRIQ-", _wide(32)),
    ("dt0c01. dt0s01. dt0s08. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}(?![A-Za-z0-9])"),
    # of shops, and a key for files
    ("sk_live_ sk_test_ rk_live_ rk_test_ whsec_", _word(20)),
    ("sq0atp- sq0csp-", _wide(20)),
    ("EZAK", rf"{_WORD}{{54}}(?!{_WORD})"),
    ("shpat_ shpss_ shpca_ shppa_", _hex(32)),
    ("AGE-SECRET-KEY-", r"[A-Z0-9]{40,}+"),
)
"""First characters by which they are known, and what follows those."""

_AMAZON = r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])"
_NAMED = r"(?i:(?:api|app|application|auth|access|account|client|license|secret)[_-]?(?:key|token|secret))"
"""What programs call a key; of many issuers its form alone is that of a hash."""
_SHAPES = (
    (":AA", r"()(?<![0-9])[0-9]{8,12}:AA[A-Za-z0-9_-]{33}"),  # Telegram's bots
    (  # Discord's bots: their number, in base64
        re.compile(rf"\.{_WIDE}{{6}}\.{_WIDE}{{27}}"),
        rf"(){_begins('', _WIDE)}"
        rf"(?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){{5,6}}[A-Za-z0-9]{{0,3}}\.{_WIDE}{{6}}\.{_WIDE}{{27,}}+",
    ),
    ("/webhooks/", rf"(/webhooks/)[0-9]{{17,20}}/{_WIDE}{{60,}}+"),
    ("/IncomingWebhook/", r"(/IncomingWebhook/)[0-9a-f]{32}/[0-9a-f-]{36}(?:/[A-Za-z0-9_-]{20,}+)?"),  # Teams
    ("hooks.slack.com/", r"(hooks\.slack\.com/)[a-z]{1,20}/[A-Za-z0-9/]{20,}+"),
    ("sk.eyJ", rf"(){_begins('sk.eyJ')}{_WIDE}{{20,}}+\.{_WIDE}{{20,}}+"),  # Mapbox's
    ("eyJ", rf"(){_begins('eyJ', _WIDE)}{_WIDE}{{10,}}+(?:\.{_WIDE}*+){{1,3}}\.{_WIDE}++"),  # JSON web tokens
    ("key-", rf"(){_begins('key-', _WIDE)}{_hex(32)}"),  # Mailgun's
    ("key_", rf"(){_begins('key_', _WIDE)}{_hex(64)}"),  # Cursor's
    ("fc-", rf"(){_begins('fc-', _WIDE)}{_hex(32)}"),  # Firecrawl's
    ("pa-", rf"(){_begins('pa-', _WIDE)}(?=[a-z0-9_-]{{0,43}}[A-Z]){_WIDE}{{43}}(?!{_WIDE})"),  # Voyage's
    (  # Mailgun's newer ones, and Mailchimp's
        re.compile(r"[0-9a-f]{32}-[0-9a-fu]"),
        rf"(){_begins('', _WIDE)}[0-9a-f]{{32}}-(?:us[0-9]{{1,2}}|[0-9a-f]{{8}}-[0-9a-f]{{8}})(?!{_WIDE})",
    ),
    (".atlasv1.", rf"(){_begins('')}{_WORD}{{14}}\.atlasv1\.{_WIDE}{{60,}}+"),  # Terraform's
    ("NRAL", rf"(){_begins('')}{_WORD}{{36}}NRAL(?!{_WORD})"),  # New Relic's licenses
    # Azure's: of applications, of services, of its storage, and what is signed with one
    (
        "Q~",
        rf"(){_begins('', '[A-Za-z0-9_~.-]')}[A-Za-z0-9_~.-]{{3}}[0-9]Q~[A-Za-z0-9_~.-]{{31,34}}(?!{_WORD})",
    ),
    ("JQQJ99", rf"(){_begins('')}{_WORD}{{52}}JQQJ99{_WORD}{{26}}(?!{_WORD})"),
    ("+ASt", rf"(){_begins('', _BASE64)}{_BASE64}{{76}}\+ASt{_BASE64}{{6}}=="),
    ("sig=", r"(sig=)(?=[A-Za-z+/]{0,60}[0-9%])[A-Za-z0-9%+/]{40,}+=*+"),
    (  # Square's and Meta's
        "EAA",
        rf"(){_begins('EAA', '[A-Za-z0-9+/_-]')}(?:A{_WIDE}{{60}}(?!{_WIDE})|{_word(100)})",
    ),
    (  # PuTTY's keys
        "Private-Lines:",
        rf"(Private-Lines: [0-9]{{1,4}}\s{{1,4}}){_BASE64}{{40,}}+=*+(?:\s{{1,4}}[A-Za-z0-9+/=]++(?!-))*+",
    ),
    ("earer ", r"(earer )(?=[A-Za-z._~+/-]{0,60}[0-9])[A-Za-z0-9._~+/-]{24,}+=*+"),
    ("asic ", r"(asic )(?=[A-Za-z+/]{0,60}[0-9=])[A-Za-z0-9+/]{12,}+=*+"),
    ("ecret", rf"(ecret_?[Aa]ccess_?[Kk]ey{_AMAZON}"),
    ("SECRET_ACCESS_KEY", rf"(SECRET_ACCESS_KEY{_AMAZON}"),
    (  # of who names them
        re.compile(r"(?i:key|token|secret)[\"']?\s{0,3}[:=]"),
        rf"({_NAMED}[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?)"
        rf"(?=[A-Za-z_-]{{0,40}}[0-9][A-Za-z_-]{{0,40}}[0-9]){_WIDE}{{32,}}+(?![(\[]|\.[A-Za-z_])",
    ),
    (  # who and with what password; a port is none
        "://",
        r"(://)[^\s/@:?#\"'`<>()\[\]{}|]{0,80}:(?!\d{1,5}(?![\w@.-]))[^\s/@\"'`<>|]{1,200}"
        r"(?:@[^\s/@\"'`<>|]{1,100}){0,3}(?=@)",
    ),
)
"""What must be in a text for it to be looked for, and its pattern; what is in brackets stays."""

_LONGEST = 1000
"""Characters of a key, but for tokens that name much."""
_SIGNS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+=~%-"
"""What keys are made of."""

_LONG = re.compile(r"\S{16}")
"""Nothing shorter is a key; most of what people say has no such word."""
_KEYLIKE = re.compile(r"[A-Za-z0-9_./+=-]{20,}+")
"""What is long enough for a key with its first characters: little of a text, to look for those in."""
_PREFIXED = {start: _begins(start) + rest for starts, rest in _KINDS for start in starts.split()}


def redact(text: str) -> str:
    """The text with `***` for every key, token and password that can be told by its form."""
    if "://" not in text and in_pieces.search(_LONG, text) is None:
        return text
    words = " ".join(word for piece in in_pieces.pieces(text) for word in _KEYLIKE.findall(piece))
    for start, pattern in _PREFIXED.items():
        if start in words:
            text = in_pieces.sub(pattern, _masked, text)
    for sign, pattern in _SHAPES:
        if sign in text if isinstance(sign, str) else words and in_pieces.search(sign, text):
            text = in_pieces.sub(pattern, _masked_behind, text)
    return _without_key_files(text) if _BEGIN in text else text


def _masked(found: re.Match[str]) -> str:
    del found
    return MASKED


def _masked_behind(found: re.Match[str]) -> str:
    return f"{found[1]}{MASKED}"


def redact_beginning(text: str, longest: int) -> str:
    """The first so many characters without keys, for less time than the whole text takes.

    A word that the cut goes through may be half a key, which nothing tells from other words: it is left out.
    """
    cut = text[: longest + _LONGEST]
    if len(cut) < len(text):
        words = cut.rsplit(maxsplit=1)
        whole = words[0] if len(words) > 1 else ""
        cut = whole if len(whole) >= longest else cut.rstrip(_SIGNS)
    return redact(cut)[:longest]


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
