"""Chooses the proxy of a request: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, as other programs read them."""

from __future__ import annotations

import base64
import os
import re
from urllib.parse import unquote, urlsplit

from ..inner_class import inner_class

# Names of this machine, which no proxy can reach.
LOOPBACK = re.compile(r"(localhost|127\.\d+\.\d+\.\d+|::1)\Z")


@inner_class
class Proxy:
    host: str
    port: int
    headers: dict[str, str]
    """Credentials for the proxy, if there are any."""


def proxy_of(scheme: str, host: str, port: int) -> Proxy | None:
    """Returns None for a direct connection. Never raises. An address on this machine needs no proxy."""
    if LOOPBACK.match(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Imported here, because it is slow to import and seldom needed.
    import urllib.request

    try:
        proxies = urllib.request.getproxies_environment()
        proxy_address = proxies.get(scheme) or proxies.get("all")
        if not proxy_address or urllib.request.proxy_bypass_environment(f"{host}:{port}", proxies):  # type: ignore[attr-defined]
            return None
        url = urlsplit(proxy_address if "://" in proxy_address else f"http://{proxy_address}")
        if url.scheme != "http" or not url.hostname:
            return None
        return Proxy(url.hostname, url.port or 80, _authorization(url.username, url.password))
    except ValueError:
        return None


def _authorization(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"proxy-authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
