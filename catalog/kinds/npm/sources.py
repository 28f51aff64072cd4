"""What a source file is, and what it asks for, as far as its text tells: no code is run to find out.

A specifier that stands only in a comment or a string costs a file that is never used; one that code puts together is
found when it runs, among the files that came along. Every expression is bounded: the texts are hostile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

Format = Literal["esm", "cjs", "json", "native"]

_STEP: Final = 64 * 1024
_LONGEST: Final = 24 * 1024
"""No match of any expression here is longer."""
_STRING: Final = r"[\"'`]((?:[^\"'`\n$\\]|\$(?!\{)){1,300})[\"'`]"
_STATIC: Final = re.compile(
    r"(?<![\w$.])(?:import|export)([\w$*\s,]{0,220}+(?:\{[^{}]{0,20000}+\}[\w$*\s,]{0,124}+)?)"
    + _STRING.replace("`", "")
)
"""What stands between the keyword and the string is looked at by itself: an expression that tried all the ways to read
it would take a hundred times as long."""
_FROM: Final = re.compile(r"(?<![\w$])from\Z|(?<![\w$.])(?:im|ex)port\Z")
_DYNAMIC: Final = re.compile(r"(?<![\w$])import\s{0,20}\(\s{0,50}(?:/\*[^*]{0,200}\*/\s{0,50}){0,4}" + _STRING)
_REQUIRE: Final = re.compile(r"(?<![\w$])[\w$]{0,40}[rR]equire[\w$]{0,40}(?:\.resolve)?\s{0,20}\(\s{0,50}" + _STRING)
_COMPUTED: Final = re.compile(
    r"(?<![\w$])(?:require|import)\s{0,20}\(\s{0,50}[\"'`](\.{1,2}/[^\"'`\n$\\]{0,200}/)(?:[\"']\s{0,20}\+|\$\{)"
)
_PLACED: Final = re.compile(r"(?<![\w$])(?:__dirname|import\.meta)(?![\w$])")
_DATA: Final = re.compile(
    r"[\"'`]([\w./@-]{1,200}\.(?:css|csv|ejs|graphql|hbs|html|json|pem|proto|svg|tpl|txt|wsdl|xml|xsd|ya?ml))[\"'`]"
)
_MODULE_WORD: Final = re.compile(
    r"import(?=\s{0,20}+[\w${*\"'])"
    r"|export(?=\s{0,20}+(?:default\b|const\b|let\b|var\b|function\b|class\b|async\b|\{|\*))"
)
_INDENT: Final = 200
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
    return "esm" if _is_es_module(text) and next(_found(_COMMONJS, text), None) is None else "cjs"


def _is_es_module(text: str) -> bool:
    """Whether a statement that only ES modules have stands at the start of a line or behind another statement."""
    return any(_begins(text, match.start()) for match in _found(_MODULE_WORD, text))


def _begins(text: str, at: int) -> bool:
    before = text[max(0, at - _INDENT - 1) : at]
    code = before.rstrip()
    return "\n" in before[len(code) :] or code.endswith((";", "}")) or (not code and at <= _INDENT)


def asked(text: str, form: Format) -> Asked:
    """The specifiers in a source, each once, in the order in which they stand."""
    if form in ("json", "native"):
        return _NOTHING
    statics = [match[2] for match in _found(_STATIC, text) if _imports(match[1])] if form == "esm" else []
    return Asked(
        _once(statics),
        _once(_strings(_DYNAMIC, text)),
        _once(_strings(_REQUIRE, text)),
        _once(_strings(_COMPUTED, text)),
        _once(_strings(_DATA, text)) if next(_found(_PLACED, text), None) else (),
    )


def _imports(between: str) -> bool:
    """Whether `between` an `import` or `export` and a string is what makes the string a module's name."""
    words = between.rstrip()
    return not words or _FROM.search(words) is not None


def _strings(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (match[1] for match in _found(pattern, text))


def _found(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """The matches in `text`, looked for a piece at a time: one search holds the interpreter from every other thread."""
    at = 0
    while at < len(text):
        end = at + _STEP
        for match in pattern.finditer(text, at, end + _LONGEST):
            if match.start() >= end:
                break
            yield match
            at = match.end()
        at = max(at, end)


def _once(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))
