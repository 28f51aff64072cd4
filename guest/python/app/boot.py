"""Runs once, when the image is built: loads the other files of this folder, sets the world up, and warms up.

`sources` maps names to their text, `wire` is the shim's module; both are put there by the shim.
"""

# ruff: noqa: F821
import gc
import sys
import types
import warnings

PACKAGE = "executor_guest"
ORDER = ("state", "loop", "tools", "values", "script", "failures", "world", "run")


def load():
    package = types.ModuleType(PACKAGE)
    package.__path__ = []
    sys.modules[PACKAGE] = package
    wire.__name__ = f"{PACKAGE}.wire"
    sys.modules[wire.__name__] = wire
    package.wire = wire
    for name in ORDER:
        module = types.ModuleType(f"{PACKAGE}.{name}")
        module.__package__ = PACKAGE
        sys.modules[module.__name__] = module
        setattr(package, name, module)
        exec(compile(sources[name], f"<executor>/{name}.py", "exec"), vars(module))
    return package


WARM = (
    "1 + 1",
    "import json, re, datetime, statistics, collections, itertools, math, csv, io\n"
    "print('x', 1.5, [1, {'a': None}])\nemit([1])\njson.loads(json.dumps({'a': [1, 2.5, None, True, 'x']}))\n"
    "re.findall('[a-z]+', 'ab cd')\nsorted({'b': 1, 'a': 2}.items(), key=lambda t: t[1])\n"
    "statistics.mean([1, 2, 3])\nf'{datetime.date(2020, 1, 1)} {1.5:>8.2f}'",
    "async def f(x):\n    return await tools.a.b(x=x)\n"
    "r = await asyncio.gather(f(1), f(2), asyncio.sleep(0.001))\n[r, await asyncio.wait_for(tools.q(), 5)]",
    "try:\n    tools.a.b(x=1)\nexcept ToolError as e:\n    e.code",
    "def f():\n    return 1 / 0\nf()",
    "raise ValueError('x')",
    "def f(: syntax",
)


def warm(package):
    """Run a few scripts, so that what CPython makes on first use is in the image already."""
    run = package.run
    for source in WARM:
        outcome = run.start(source, None, 1)
        for _ in range(10):
            if outcome[0] != 1:
                break
            numbers = list(run.state.loop.waiting)
            outcome = run.resume([(number, True, {"v": [1, 2]}) for number in numbers])
    del run.state.loop
    run.state.main = None
    run.state.source = ""
    sys.modules.pop("__main__", None)


package = load()
package.world.install(hidden)
package.run.install()
warm(package)
warnings.resetwarnings()
sys.dont_write_bytecode = True
gc.collect()
gc.collect()
gc.freeze()
