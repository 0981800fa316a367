"""What may stand in `[http]`."""

from __future__ import annotations

from urllib.parse import urlsplit

from goodbot.config.sections import HttpConfig
from goodbot.config.toml import Where

_NO_NAME = frozenset(" \t/:@?#\\")
"""In a name these would be another part of an address."""


def check(http: HttpConfig, where: Where) -> None:
    """Raises ConfigError for what is no port, no name, no address."""
    if not 0 <= http.port < 65536:
        raise where.error("port", "port must lie between 0 (off) and 65535")
    for name in http.names:
        if not name or _NO_NAME & set(name):
            raise where.error("names", 'names are like "bot.example.org", without scheme and port')
    if http.url and not _is_base_url(http.url):
        raise where.error("url", 'url must be like "https://bot.example.org"')


def _is_base_url(text: str) -> bool:
    """Whether it is a scheme, a host and maybe a port, to which a path can be appended."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:  # of a port that is no number
        return False
    whole = text == f"{parts.scheme}://{parts.netloc}" and parts.scheme in ("http", "https")
    return whole and bool(host) and port != 0 and not {" ", "@", "\\"} & set(parts.netloc)
