"""What an image's builder is given: pinned sources, the compiler, pre-initialisation, and a line to report on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from guest import snapshot, toolchain

Progress = Callable[[str], None]


@dataclass
class BuildContext:
    """`cache` keeps downloads, tools and objects between builds; `progress` gets one short line at a time."""

    cache: Path
    progress: Progress
    inputs: dict[str, str] = field(default_factory=dict)
    """What went into the image, by name, for the manifest. Filled by `source`; a builder may add to it."""

    @cached_property
    def compiler(self) -> toolchain.Compiler:
        version = toolchain.lock()["ziglang"]["version"]
        self.inputs["ziglang"] = version
        self.progress(f"getting the compiler (ziglang {version})")
        return toolchain.Compiler(self.cache)

    def source(self, package: str) -> bytes:
        """The archive of a package in images.lock, its SHA-256 checked."""
        entry = toolchain.lock()[package]
        self.progress(f"getting the source of {package} {entry['version']}")
        self.inputs[package] = f"{entry['version']} sha256:{entry['sdist_sha256']}"
        return toolchain.source_archive(package, self.cache)

    def preinitialise(
        self,
        module: bytes,
        calls: Sequence[tuple[str, bytes]],
        *,
        drop: Iterable[str] = (),
        imports: Collection[str] = (),
        survey: tuple[str, snapshot.Finish] | None = None,
    ) -> bytes:
        """`module` as it is after `calls`: see guest.snapshot.preinitialise."""
        self.progress("running the start-up and taking the snapshot")
        return snapshot.preinitialise(module, calls, drop=drop, imports=imports, survey=survey)
