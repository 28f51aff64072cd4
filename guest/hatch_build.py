"""The wheel's build hook: builds the guest images and puts them into the wheel as guest/images/*.

EXECUTOR_SKIP_IMAGES=1 leaves them out; an editable install leaves them to `executor images build`.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found]


class ImagesHook(BuildHookInterface):  # type: ignore[misc]
    def dependencies(self) -> list[str]:
        """What building the images needs at build time; the compiler itself is fetched by the build."""
        return [] if _skipped() else ["pip", "platformdirs>=4.3", "wasmtime==50.0.1"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self.target_name != "wheel" or _skipped():
            return
        sys.path.insert(0, self.root)
        try:
            from guest import images

            manifest = images.build(progress=self.app.display_info)
        finally:
            sys.path.remove(self.root)
        names = [entry.file for entry in manifest.images.values()]
        build_data["force_include"].update(
            {str(manifest.folder / name): f"guest/images/{name}" for name in [*names, "manifest.json"]}
        )


def _skipped() -> bool:
    return os.environ.get("EXECUTOR_SKIP_IMAGES") == "1"
