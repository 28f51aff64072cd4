"""The TypeScript image: the engine with sucrase's parser loaded, and one export that takes the types out of a text.

Only the parser of sucrase is used, pinned by hash; strip/ writes the output. Its ES modules become one scope,
because in an interpreter a variable of an outer function costs less than a property of a module; the members of its
enums become numbers, the smallest functions are written out where they are called, and what only sucrase's own
transforms read is not recorded. Every such change has to match as often as it did when it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from guest import npm, toolchain
from guest.context import BuildContext
from guest.javascript.image import check, link

STRIP: Final = Path(__file__).parent / "strip"
_OURS: Final = ("parser", "marks", "eraser", "strip")
EXPORTS: Final = frozenset({"memory", "__stack_pointer", "io", "alloc", "dealloc", "strip"})
_UNUSED: Final = ("boot", "problem", "start", "resume", "tail")
_FOLDER: Final = "package/dist/esm/parser/"
_MODULES: Final = (
    "util/charcodes",
    "tokenizer/keywords",
    "tokenizer/types",
    "tokenizer/readWordTree",
    "util/whitespace",
    "util/identifier",
    "tokenizer/state",
    "traverser/base",
    "tokenizer/index",
    "tokenizer/readWord",
    "traverser/util",
    "traverser/lval",
    "plugins/types",
    "plugins/typescript",
    "traverser/expression",
    "traverser/statement",
)
"""In an order in which every constant stands above its first use. Flow and JSX are left out: never enabled here."""

_IMPORT: Final = re.compile(r"^import\b[^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?:default )?(?=class|function|const|let|var)", re.MULTILINE)
_ENUM: Final = re.compile(
    r"^var (\w+); \(function \(\1\) \{$.*?^\}\)\(\1 \|\| \(\1 = \{\}\)\);$", re.MULTILINE | re.DOTALL
)
_MEMBER: Final = re.compile(r"const (\w+) = ([^;]+); (\w+)\[\3\[\"\1\"\] = \1\] = \"\1\";")
_SWITCHES: Final = {"isJSXEnabled": "false", "isTypeScriptEnabled": "true", "isFlowEnabled": "false"}
_LAST: Final = r"^ *state\.tokens\[[^\]]*\]"
_CHANGES: Final = (
    (r"^let is\w+Enabled;$", "", 3),
    (r"^  is\w+Enabled = is\w+EnabledArg;$", "", 3),
    # what sucrase's own transforms read: scopes, roles of names, contexts, chains
    (rf"{_LAST}\.(?:identifierRole|contextId|isExpression)\s*=\s*[^;]*;$", "", 36),
    (rf"{_LAST}\.(?:subscriptStartIndex|nullishStartIndex|isOptionalChain\w+)\s*=\s*[^;]*;$", "", 11),
    (rf"{_LAST}\.numNullishCoalesce\w+\+\+;$", "", 2),
    (r"^ *state\.scopes\.push\([^;]*;$", "", 10),
    (r"^  markPriorBindingIdentifier\(isBlockScope\);$", "", 1),
    # a function call costs as much as ten operators
    (r"\bmatch\((\d+)\)", r"(state.type === \1)", 213),
    (r"\beat\((\d+)\)", r"(state.type === \1 && next())", 97),
    (r"\bisContextual\((\d+)\)", r"(state.contextualKeyword === \1)", 35),
    (r"\binput\.charCodeAt\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)", r"units[\1]", 55),
)
"""What is changed in the parser's text, and how often it is found there. Enum members are numbers by then."""


def build_typescript(ctx: BuildContext) -> bytes:
    """The pre-initialised image: UTF-8 text in, msgpack out, as strip.c says. Raises BuildFailed when it cannot be."""
    package = npm.package("sucrase", ctx.cache)
    ctx.inputs["sucrase"] = " ".join(toolchain.lock()["sucrase"].values())
    try:
        script = bundle(package, "\n".join((STRIP / f"{name}.js").read_text() for name in _OURS))
    except (KeyError, ValueError) as e:
        raise toolchain.BuildFailed(f"sucrase's parser is not the one that is expected: {e}") from e
    image = ctx.preinitialise(link(ctx, [STRIP / "strip.c"]), [("parser", script.encode())], drop=_UNUSED)
    check(image, EXPORTS)
    return image


def bundle(package: Mapping[str, bytes], strip: str) -> str:
    """One script whose value is a function of strip.c's natives that gives `strip`: sucrase's modules and strip/.

    Raises KeyError when a module is missing, ValueError when the package is not the one that this was written for.
    """
    modules = [package[f"{_FOLDER}{name}.js"].decode() for name in _MODULES]
    text = _EXPORT.sub("", _IMPORT.sub("", "\n".join(modules)))
    numbers: dict[str, dict[str, int]] = {}
    text = _ENUM.sub(lambda found: _enumeration(found, numbers), text)
    numbers["tt"] = numbers["TokenType"]
    text = _numbered(text, numbers)
    for pattern, replacement, count in _CHANGES:
        text = _changed(text, pattern, replacement, count)
    text = f"{text}\n{_numbered(strip, numbers)}"
    for name, value in _SWITCHES.items():
        text = re.sub(rf"\b{name}\b(?!Arg)", value, text)
    return f'(function (natives) {{\n"use strict";\n{text}\nreturn strip;\n}})\n'


def _numbered(text: str, numbers: Mapping[str, Mapping[str, int]]) -> str:
    """`text` with the members of enums as numbers."""
    return re.sub(rf"\b({'|'.join(numbers)})\.(\w+)", lambda found: str(numbers[found[1]][found[2]]), text)


def _enumeration(found: re.Match[str], numbers: dict[str, dict[str, int]]) -> str:
    """Take the values of a compiled enum, and leave nothing of it."""
    values: dict[str, int] = {}
    for name, expression, _ in _MEMBER.findall(found[0]):
        values[name] = _value(expression, values)
    if not values:
        raise ValueError(f"the enum {found[1]} has no members that can be read")
    numbers[found[1]] = values
    return ""


def _value(expression: str, known: Mapping[str, int]) -> int:
    """The value of `12`, `0xf`, `1 << 4` or `NAME + 1`."""
    left, _, right = expression.partition(" << ")
    if right:
        return int(left, 0) << int(right, 0)
    left, _, right = expression.partition(" + ")
    return known[left] + int(right) if right else int(left, 0)


def _changed(text: str, pattern: str, replacement: str, count: int) -> str:
    text, found = re.subn(pattern, replacement, text, flags=re.MULTILINE)
    if found != count:
        raise ValueError(f"{pattern} is found {found} times, not {count}")
    return text
