"""`executor images`"""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, Literal

from bridge.wire.errors import ConfigError
from executor.cli.options import Flag


async def build(
    only: Literal["all", "javascript", "node", "python"] = "all", /, *, target: Path | None = None, json: Flag = False
) -> None:
    """Build the guest images from their pinned packages and compile them for this machine, unless that is done already.

    The Python image takes a minute or two; without it, it is built when the first Python script runs. The Node image is
    built when the first npm package does.

    Parameters
    ----------
    only
        Which images: those that JavaScript and TypeScript need, the one of npm packages, the one of Python, or all.
    target
        Also copy them to this folder.
    json
        Print the manifest as JSON.
    """
    from executor.cli import output
    from guest import images, toolchain
    from guest.wasm import MalformedModule
    from runtime.engine.modules import ModuleCache

    sets = images.SETS if only == "all" else (only,)
    progress = partial(output.say, style="quiet")
    try:
        made = await asyncio.to_thread(images.build, None, lambda line: progress(f"  {line}"), sets=sets[:1])
        try:
            made = await asyncio.to_thread(images.build, target, lambda line: progress(f"  {line}"), sets=sets)
        except (toolchain.BuildFailed, MalformedModule) as e:
            if only != "all":
                raise
            output.say(f"  the Python image cannot be built here; everything else works without it: {e}", "odd")
            others = tuple(one for one in sets if one != "python")
            made = await asyncio.to_thread(images.build, target, sets=others)
    except (toolchain.BuildFailed, MalformedModule) as e:
        raise ConfigError(f"the images cannot be built: {e}") from None
    for name in made.images:
        progress(f"  {name}: compiling for this machine")
        await asyncio.to_thread(ModuleCache().compiled, images.load(name).wasm)
    _show(made.as_dict(), json)


async def list_images(*, json: Flag = False) -> None:
    """List the guest images that are built: what they are built from and the hash of what came out.

    Parameters
    ----------
    json
        Print the manifest as JSON.
    """
    from guest import images

    found = images.built()
    if found is None:
        raise ConfigError("the guest images are not built", hint="executor images build")
    _show(found.as_dict(), json)


def _show(manifest: dict[str, Any], as_json: bool) -> None:
    from executor.cli import output

    if as_json:
        output.print_json(manifest)
        return
    rows = output.table("image", "size", "sha256", "from", right=("size",))
    for name, entry in sorted(manifest["images"].items()):
        inputs = ", ".join(f"{key} {value.split()[0]}" for key, value in sorted(entry["inputs"].items()))
        rows.add_row(name, output.size(entry["size"]), entry["sha256"], inputs)
    output.out.print(rows)
