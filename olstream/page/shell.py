"""The page around its parts: one document without any other, and the policy that lets nothing else in."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

from olstream.page.html import Html, element
from olstream.page.script import READ, RENEW
from olstream.page.style import STYLE

REFRESH_S: Final = 5
_WITHOUT_SCRIPT_S: Final = 15


@dataclass(frozen=True, slots=True)
class Page:
    """HTML, and the Content-Security-Policy that it is served with."""

    html: str
    policy: str

    def encode(self) -> bytes:
        return self.html.encode()


def live(title: str, main: Html) -> Page:
    """A page that renews itself."""
    lost = element("p", id="lost", role="alert", hidden=True)
    body = [lost, main, element("script", Html(READ)), element("script", Html(RENEW), id="renew", data_every=REFRESH_S)]
    refresh = element("meta", http_equiv="refresh", content=_WITHOUT_SCRIPT_S)
    head = [element("noscript", refresh)]
    policy = f"{_policy(READ, RENEW)}; connect-src 'self'; frame-ancestors 'none'"
    return Page(_document(title, head, body), policy)


def still(title: str, main: Html) -> Page:
    """A page to keep: its policy stands in it."""
    policy = _policy(READ)
    head = [element("meta", http_equiv="Content-Security-Policy", content=policy)]
    return Page(_document(title, head, [main, element("script", Html(READ))]), policy)


def _document(title: str, head: list[Html], body: list[Html]) -> str:
    heads = [
        element("meta", charset="utf-8"),
        *head,
        element("title", title),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("style", Html(STYLE)),
    ]
    return f"<!doctype html>\n{element('html', element('head', *heads), element('body', *body), lang='en')}\n"


def _policy(*scripts: str) -> str:
    ours = f"script-src {' '.join(map(_hash, scripts))}; style-src {_hash(STYLE)}"
    return f"default-src 'none'; {ours}; img-src data:; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
