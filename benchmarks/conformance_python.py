"""Run the standard library's own tests inside the isolate and print the pass rate of each module.

    python -m benchmarks.conformance_python FOLDER [MODULE …] [--json FILE]

FOLDER is a `test` folder of a CPython installation, such as `lib/python3.13/test`. The tests are read as text and sent
in as the input of a script, which makes modules of them and runs unittest; nothing of FOLDER is run by the host.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import msgpack

from bridge.wire.frames import Limits
from guest import images
from runtime.engine import protocol, settings
from runtime.engine.image import Image
from runtime.engine.instance import Trapped
from runtime.engine.modules import ModuleCache
from runtime.isolate import Isolate

MODULES: Final[dict[str, tuple[str, ...]]] = {
    "json": tuple(
        f"test_json.{name}"
        for name in [
            "test_decode",
            "test_default",
            "test_dump",
            "test_encode_basestring_ascii",
            "test_enum",
            "test_fail",
            "test_float",
            "test_indent",
            "test_pass1",
            "test_pass2",
            "test_pass3",
            "test_recursion",
            "test_scanstring",
            "test_separators",
            "test_speedups",
            "test_unicode",
        ]
    ),
    "re": ("test_re",),
    "datetime": ("datetimetester",),
    "statistics": ("test_statistics",),
    "collections": ("test_collections", "test_deque", "test_defaultdict", "test_ordered_dict"),
    "itertools": ("test_itertools",),
    "functools": ("test_functools",),
    "dataclasses": ("test_dataclasses",),
    "enum": ("test_enum",),
    "decimal": ("test_decimal",),
    "string": ("test_string", "test_str"),
    "textwrap": ("test_textwrap",),
    "base64": ("test_base64",),
    "hashlib": ("test_hashlib",),
    "csv": ("test_csv",),
    "copy": ("test_copy",),
    "heapq": ("test_heapq",),
    "bisect": ("test_bisect",),
}

_SUPPORT: Final = (
    *("test.support", "test.support.import_helper", "test.support.os_helper", "test.support.warnings_helper"),
    *("test.support.script_helper", "test.support.threading_helper", "test.support.socket_helper"),
    *("test.support.hashlib_helper", "test.support.testcase", "test.support.numbers", "test.support.bytecode_helper"),
    *("test.support.hypothesis_helper", "test.support.i18n_helper", "test.support._hypothesis_stubs"),
    *("test.test_json", "test.seq_tests", "test.list_tests", "test.string_tests", "test.datetimetester"),
    *("test.test_dataclasses", "test.re_tests", "test.mapping_tests", "test.pickletester", "test.typinganndata"),
    *("test.support.refleak_helper", "test.support.isolated", "test._typed_dict_helper", "test.mock_socket"),
)

RUNNER: Final = Path(__file__).with_name("conformance_runner.py")
FUEL: Final = 10**12
MEMORY: Final = 512 << 20
LIMITS: Final = Limits(FUEL, MEMORY, 600_000, 0, 1, 16 << 20, 1 << 20)
NOW_US: Final = 1_760_000_000_000_000


def source(folder: Path, name: str) -> tuple[str, bool] | None:
    """The text of module `test.…` in `folder`, and whether it is a package; None where there is none."""
    path = folder.joinpath(*name.split(".")[1:])
    for file, package in ((path / "__init__.py", True), (path.with_suffix(".py"), False)):
        if file.is_file():
            return file.read_text(errors="surrogateescape"), package
    return None


def gather(folder: Path, tests: tuple[str, ...]) -> dict[str, list[Any]]:
    """The modules that `tests` need, by name: text and whether it is a package."""
    names = [*_SUPPORT, *(f"test.{name}" for name in tests)]
    found = {name: text for name in names if (text := source(folder, name)) is not None}
    return {name: [text.encode("utf-8", "replace").decode(), package] for name, (text, package) in found.items()}


def run(image: Image, folder: Path, tests: tuple[str, ...]) -> dict[str, Any]:
    """What the runner in the isolate reports for `tests`: counts, and the names of what failed with the reason."""
    value = msgpack.packb({"modules": gather(folder, tests), "tests": [f"test.{name}" for name in tests]})
    with Isolate(image, fuel=FUEL, memory_bytes=MEMORY) as isolate:
        began = time.perf_counter()
        try:
            data = protocol.start_input(RUNNER.read_text(), value, 1, LIMITS)
            output = protocol.read_output(isolate.run("start", data, NOW_US))
            while output.wake_us is not None:  # a test that sleeps
                output = protocol.read_output(isolate.run("resume", protocol.resume_input([]), output.wake_us))
        except Trapped as e:
            logs, _ = isolate.unfinished()
            return {"ran": 0, "passed": 0, "trapped": e.code, "last": [log.text for log in logs][-1:]}
    if output.failure is not None or output.result is None:
        return {"ran": 0, "passed": 0, "failed": repr(output.failure)[:2000]}
    report: dict[str, Any] = msgpack.unpackb(output.result)
    return report | {"seconds": round(time.perf_counter() - began, 1)}


def load_image() -> Image:
    """The installed Python image, compiled."""
    wasm = images.load("python").wasm
    return Image.load(settings.engine(), ModuleCache().compiled(wasm))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.conformance_python", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("module", nargs="*", default=list(MODULES))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    image = load_image()
    reports: dict[str, Any] = {}
    print(f"{'module':14}{'ran':>7}{'passed':>8}{'skipped':>9}{'rate':>9}  seconds")
    for name in options.module:
        report = reports[name] = run(image, options.folder, MODULES[name])
        ran = report["ran"] - report.get("skipped", 0)
        rate = f"{100 * report['passed'] / ran:.1f} %" if ran else "–"
        print(
            f"{name:14}{ran:7}{report['passed']:8}{report.get('skipped', 0):9}{rate:>9}  {report.get('seconds', '')}"
            f"{report.get('trapped', '')}{report.get('last', '')}"
            f"{report.get('failed', '')[:200]}",
            flush=True,
        )
        for test, reason in report.get("problems", []):
            print(f"    {test}: {reason}")
    if options.json:
        options.json.write_text(json.dumps(reports, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
