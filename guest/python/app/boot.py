"""Runs once, when the image is built: loads the other files of this folder, sets the world up, and warms up.

`sources` maps names to their text, `wire` is the shim's module; both are put there by the shim.
"""

# ruff: noqa: F821
import array
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
    for source in WARM + WARM[:1] * 60 + WARM * 5:
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


def survey():
    """Where every object lies that is alive now, each with where its type lies: pairs of addresses, four bytes each.

    It makes no container that the collector knows before it has the list of those that there are, and looks at nothing
    that it has made itself: the build writes to these addresses in an image that was taken before.
    """
    gc.unfreeze()
    waiting = gc.get_objects()
    seen = {id(thing) for thing in waiting}
    found = array.array("I")
    while waiting:
        thing = waiting.pop()
        kind = type(thing)
        found.append(id(thing))
        found.append(id(kind))
        parts = gc.get_referents(thing)
        if kind is types.CodeType:
            parts += [thing.co_consts, thing.co_names, thing.co_name, thing.co_qualname, thing.co_filename]
            parts += [*thing.co_varnames, *thing.co_cellvars, *thing.co_freevars]
        elif isinstance(thing, type):
            parts += [*gc.get_referents(type.__dict__["__dict__"].__get__(thing)), *thing.__mro__]
        for part in parts:
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)
    return found.tobytes()


HOLES = [*(1 << power for power in range(18, 9, -1)), *range(1008, 16, -16)]
"""Sizes of blocks, from the largest down."""


def plug():
    """Fill the holes that the start-up left in the heap, so that what a script makes lies together on fresh pages.

    Blocks are taken of each size until one comes from the top of the heap; what was taken out of holes is kept.
    """
    kept = []
    top = id(bytes(1 << 20))
    for size in HOLES:
        for _ in range(100_000):
            block = bytes(size - 17)
            if id(block) >= top:
                break
            kept.append(block)
    # and the objects that CPython keeps for re-use, which lie in the same holes
    kept += [[float(n), [n], {n: n}, slice(n), {n}, iter([n]), len.__call__] for n in range(300, 500)]
    kept += [tuple([n] * size) for n in range(40) for size in range(1, 21)]
    return kept


package = load()
package.world.install(hidden, zones)
package.run.install()
warm(package)
warnings.resetwarnings()
wire.survey = survey
sys.dont_write_bytecode = True
gc.collect()
gc.collect()
wire.kept = plug()
gc.freeze()
