"""The wheel's build hook: builds the guest images and puts them into the wheel as guest/images/*.

The Python image is part of the wheel where it can be built; elsewhere the wheel is made without it, which is said, and
it is built when the first Python script runs. EXECUTOR_SKIP_IMAGES=1 leaves all images out, EXECUTOR_SKIP_IMAGES=python
that one; an editable install leaves them to `executor images build`.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found]


class ImagesHook(BuildHookInterface):  # type: ignore[misc]
    _stage: Path | None = None

    def dependencies(self) -> list[str]:
        """What building the images needs at build time; the compiler itself is fetched by the build."""
        return [] if _skip() == "1" else ["msgpack>=1.2.4", "pip", "platformdirs>=4.3", "wasmtime==50.0.1"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or self.target_name != "wheel" or _skip() == "1":
            return
        sys.path.insert(0, self.root)
        try:
            from guest import images
            from guest.toolchain import BuildFailed
            from guest.wasm import MalformedModule

            made = [images.build(progress=self.app.display_info, sets=(one,)) for one in ("javascript", "node")]
            if _skip() != "python":
                try:
                    made.append(images.build(progress=self.app.display_info, sets=("python",)))
                except (BuildFailed, MalformedModule, OSError, RuntimeError) as e:
                    self.app.display_warning(f"the wheel is made without the Python image: {str(e)[-500:]}")
            self._stage = Path(tempfile.mkdtemp(prefix="guest-images-"))
            manifest = images.gathered(made, self._stage)
        finally:
            sys.path.remove(self.root)
        names = [entry.file for entry in manifest.images.values()]
        build_data["force_include"].update(
            {str(manifest.folder / name): f"guest/images/{name}" for name in [*names, "manifest.json"]}
        )

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._stage is not None:
            shutil.rmtree(self._stage)


def _skip() -> str | None:
    return os.environ.get("EXECUTOR_SKIP_IMAGES")
