"""The few pages for people: text that is escaped, a link at most, nothing that runs, and nobody's frame around them."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Sequence
from typing import Final

from starlette.responses import Response

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:12vh auto;padding:0 1.5em;color:#1c1c1c}"
    "h1{font-size:1.3em}p{overflow-wrap:anywhere}a{display:inline-block;margin-top:.6em;padding:.5em 1.1em;"
    "border-radius:6px;background:#1c1c1c;color:#fff;text-decoration:none}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}a{background:#e8e8e8;color:#161616}}"
)
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
HEADERS: Final = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def html_page(
    title: str, paragraphs: Sequence[str], status: int = 200, *, link: tuple[str, str] | None = None
) -> Response:
    """A page of text; `link` is what it says and an http(s) URL."""
    parts = "".join(f"<p>{html.escape(one)}</p>" for one in paragraphs if one)
    if link is not None:
        text, url = link
        assert url.startswith(("https://", "http://"))
        parts += f'<a href="{html.escape(url)}" rel="noreferrer">{html.escape(text)}</a>'
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    text = f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{html.escape(title)}</h1>{parts}</body></html>'
    return Response(text.encode("utf-8", "replace"), status, HEADERS, "text/html; charset=utf-8")
