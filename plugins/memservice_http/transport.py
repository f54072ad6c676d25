"""The way to an endpoint: direct, or through the proxy that the environment names."""

from __future__ import annotations

import os
import ssl
from functools import cache
from urllib.request import getproxies, proxy_bypass

import httpx

from memservice.domain.errors import ConfigurationError


def open_transport(url: httpx.URL) -> httpx.HTTPTransport:
    """A transport to the host of this URL, without httpx's client around it, whose cookies and
    redirects would take a fifth of the CPU time of a call. Raises `ConfigurationError` for a proxy
    that cannot be used."""
    certificates = _trusted_certificates(
        os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    )
    try:
        return httpx.HTTPTransport(verify=certificates, proxy=_proxy(url))
    except (ValueError, httpx.InvalidURL):
        problem = "is not the URL of a proxy; write http://host:port"
    except ImportError:
        problem = "names a SOCKS proxy, which needs a package: type `pip install httpx[socks]`"
    # Without the URL, which may contain a password.
    raise ConfigurationError(f"{url.scheme.upper()}_PROXY or ALL_PROXY {problem}") from None


@cache
def _trusted_certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Read once for the process: it takes 40 ms, and a service has an endpoint for each model.
    httpx reads the variables itself; they are the cache's key."""
    return httpx.create_ssl_context()


def _proxy(url: httpx.URL) -> str | None:
    """From `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY`, unless `NO_PROXY` names the host."""
    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    host = url.host if url.port is None else f"{url.host}:{url.port}"
    if not address or proxy_bypass(host):
        return None
    return address if "://" in address else f"http://{address}"
