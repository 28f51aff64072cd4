"""What a source file is, and what it asks for, as far as its text tells: no code is run to find out.

A specifier that stands only in a comment or a string costs a file that is never used; one that code puts together is
found when it runs, among the files that came along. Every expression is bounded: the texts are hostile.
"""

from __future__ import annotations

import re
from typing import Any, Final, Literal, NamedTuple

Format = Literal["esm", "cjs", "json", "native"]

_STRING: Final = r"[\"'`]((?:[^\"'`\n$\\]|\$(?!\{)){1,300})[\"'`]"
_STATIC: Final = re.compile(
    r"(?<![\w$.])(?:import|export)\s{0,20}"
    r"(?:[\w$*\s,]{0,200}(?:\{[^{}]{0,20000}\}[\w$*\s,]{0,100})?(?<![\w$])from\s{0,20})?" + _STRING.replace("`", "")
)
_DYNAMIC: Final = re.compile(r"(?<![\w$])import\s{0,20}\(\s{0,50}(?:/\*[^*]{0,200}\*/\s{0,50}){0,4}" + _STRING)
_REQUIRE: Final = re.compile(r"(?<![\w$])[\w$]{0,40}[rR]equire[\w$]{0,40}(?:\.resolve)?\s{0,20}\(\s{0,50}" + _STRING)
_COMPUTED: Final = re.compile(
    r"(?<![\w$])(?:require|import)\s{0,20}\(\s{0,50}[\"'`](\.{1,2}/[^\"'`\n$\\]{0,200}/)(?:[\"']\s{0,20}\+|\$\{)"
)
_PLACED: Final = re.compile(r"(?<![\w$])(?:__dirname|import\.meta)(?![\w$])")
_DATA: Final = re.compile(
    r"[\"'`]([\w./@-]{1,200}\.(?:css|csv|ejs|graphql|hbs|html|json|pem|proto|svg|tpl|txt|wsdl|xml|xsd|ya?ml))[\"'`]"
)
_ES_MODULE: Final = re.compile(
    r"(?:^|[;}])\s{0,200}(?:import\s{0,20}[\w${*\"']|export\s{0,20}(?:default\b|const\b|let\b|var\b|function\b|class\b"
    r"|async\b|\{|\*))",
    re.MULTILINE,
)
_COMMONJS: Final = re.compile(r"(?<![\w$.])module\.exports\b|(?<![\w$.])exports\.[\w$]{1,200}\s{0,20}=")


class Asked(NamedTuple):
    """What a file asks for: by static imports, by `import()`, by `require`, folders from which it picks, and, where it
    asks in which folder it is, paths of texts that it may read there."""

    statics: tuple[str, ...]
    dynamics: tuple[str, ...]
    requires: tuple[str, ...]
    folders: tuple[str, ...]
    texts: tuple[str, ...]


_NOTHING: Final = Asked((), (), (), (), ())


def format_of(path: str, text: str, manifest: dict[str, Any]) -> Format:
    """The format of a file, by its name, its package's `type`, or, where neither says, by its text."""
    ending = path.rpartition(".")[2]
    if ending in ("mjs", "cjs", "json", "node", "wasm"):
        named: dict[str, Format] = {"mjs": "esm", "cjs": "cjs", "json": "json", "node": "native", "wasm": "native"}
        return named[ending]
    kind = manifest.get("type")
    if ending == "js" and kind == "module":
        return "esm"
    if kind == "commonjs":
        return "cjs"
    return "esm" if _ES_MODULE.search(text) and not _COMMONJS.search(text) else "cjs"


def asked(text: str, form: Format) -> Asked:
    """The specifiers in a source, each once, in the order in which they stand."""
    if form in ("json", "native"):
        return _NOTHING
    statics = _STATIC.findall(text) if form == "esm" else []
    return Asked(
        _once(statics),
        _once(_DYNAMIC.findall(text)),
        _once(_REQUIRE.findall(text)),
        _once(_COMPUTED.findall(text)),
        _once(_DATA.findall(text)) if _PLACED.search(text) else (),
    )


def _once(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
