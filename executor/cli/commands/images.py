"""`executor images`"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from bridge.wire.errors import ConfigError
from executor.cli.options import Flag


async def build(*, target: Path | None = None, json: Flag = False) -> None:
    """Build the guest images from their pinned packages, unless they are built already.

    Parameters
    ----------
    target
        Also copy them to this folder.
    json
        Print the manifest as JSON.
    """
    from executor.cli import output
    from guest import images, toolchain
    from guest.wasm import MalformedModule

    try:
        manifest = await asyncio.to_thread(images.build, target, lambda line: output.say(f"  {line}", "quiet"))
    except (toolchain.BuildFailed, MalformedModule) as e:
        raise ConfigError(f"the images cannot be built: {e}") from None
    _show(manifest.as_dict(), json)


async def list_images(*, json: Flag = False) -> None:
    """List the guest images: what they are built from and the hash of what came out.

    Parameters
    ----------
    json
        Print the manifest as JSON.
    """
    from guest import images

    packaged = images.ROOT / "images"
    folder = packaged if packaged.is_dir() else images.cache_dir() / "images" / images.build_key()
    try:
        _show(images.read_manifest(folder).as_dict(), json)
    except images.ImageUnavailable as e:
        raise ConfigError(str(e)) from None


def _show(manifest: dict[str, Any], as_json: bool) -> None:
    from executor.cli import output

    if as_json:
        output.print_json(manifest)
        return
    rows = output.table("image", "size", "sha256", "from", right=("size",))
    for name, entry in sorted(manifest["images"].items()):
        inputs = ", ".join(f"{key} {value[:24]}" for key, value in sorted(entry["inputs"].items()))
        rows.add_row(name, output.size(entry["size"]), entry["sha256"], inputs)
    output.out.print(rows)
