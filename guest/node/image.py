"""The Node image: the engine of the JavaScript image, with modules and with what npm packages expect around them.

Parts of Node's library that are packages of their own come from npm, pinned by hash; the rest is in lib/ and boot/.
They are all loaded when the image is built, so that a run finds them ready. The tables of locales are data of the
module, so that all isolates share their pages; each is inflated in the isolate that asks for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from guest import npm, toolchain
from guest.context import BuildContext
from guest.javascript.image import EXPORTS, boot_source, check, link
from guest.node.cldr import cldr
from guest.node.zones import zones

HERE: Final = Path(__file__).parent
SHIM: Final = HERE / "shim"
BOOT: Final = HERE / "boot"
LIB: Final = HERE / "lib"
PACKAGES: Final = {
    "base64-js": ("index.js",),
    "buffer": ("index.js",),
    "events": ("events.js",),
    "ieee754": ("index.js",),
    "readable-stream": ("lib/",),
    "string_decoder": ("lib/string_decoder.js",),
    "web-streams-polyfill": ("dist/ponyfill.js",),
}
"""What is taken of each package: files, or folders of them."""


def build_node(ctx: BuildContext) -> bytes:
    """The pre-initialised image. Raises BuildFailed when a package is not to be had or is not the expected one."""
    locales, index = cldr(ctx)
    calls = [("boot", boot_source()), ("modules", modules_source(library(ctx), zones(ctx), index))]
    module = link(ctx, sorted(SHIM.glob("*.c")), {"locales.bin": locales})
    image = ctx.preinitialise(module, calls, drop=["problem"])
    check(image, EXPORTS)
    return image


def library(ctx: BuildContext) -> dict[str, str]:
    """The sources of Node's library by id: `node:fs` and the like, and `buffer/index.js` of a package."""
    ctx.progress("getting the packages of Node's library")
    npm.fetch(list(PACKAGES), ctx.cache)
    found = {f"node:{path.relative_to(LIB).with_suffix('')}": path.read_text() for path in sorted(LIB.rglob("*.js"))}
    for name, wanted in PACKAGES.items():
        ctx.inputs[name] = " ".join(toolchain.lock()[name].values())
        taken = npm.package(name, ctx.cache, under=tuple(f"package/{part}" for part in wanted))
        if not taken:
            raise toolchain.BuildFailed(f"the package {name} is not the one that is expected")
        for path, body in taken.items():
            if path.endswith((".js", ".cjs")):
                found[f"{name}/{path.removeprefix('package/')}"] = body.decode()
    return found


def modules_source(sources: dict[str, str], zones: dict[str, Any], locales: dict[str, Any]) -> bytes:
    """The layer of modules as one function of the natives: what it is made from, then boot/ in the names' order."""
    names = json.loads((HERE / "names.json").read_text())
    parts = [path.read_text() for path in sorted(BOOT.glob("*.js"))]
    given = {"LIBRARY": sources, "NAMES": names, "ZONES": zones, "CLDR": locales}
    tables = "".join(f"const {name} = {json.dumps(value, separators=(',', ':'))};\n" for name, value in given.items())
    return f"(function (natives) {{\n{tables}{chr(10).join(parts)}\n}})".encode()
