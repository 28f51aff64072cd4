"""Runs inside the isolate: makes modules of the texts in `input`, runs their tests, reports.

Modules that the image leaves out are replaced by ones whose every attribute is a class of no use, so that a test file
that only mentions them can be imported; the tests that really use them then fail, and are counted.
"""

# ruff: noqa: F706
# mypy: ignore-errors

import builtins
import importlib.abc
import importlib.util
import io
import os
import sys
import tempfile
import types
import unittest

texts = input["modules"]
originals = dict(sys.modules)
ABSENT = [
    "subprocess",
    "signal",
    "socket",
    "select",
    "selectors",
    "_testcapi",
    "_testinternalcapi",
    "_testlimitedcapi",
    "_testbuffer",
    "multiprocessing",
    "multiprocessing.process",
    "faulthandler",
    "pdb",
    "bdb",
    "bz2",
    "lzma",
    "ctypes",
    "_interpreters",
    "concurrent.interpreters",
    "urllib.request",
    "urllib.error",
    "http.client",
    "ssl",
    "resource",
    "pwd",
    "grp",
    "fcntl",
    "mmap",
    "_posixsubprocess",
    "test.libregrtest",
    "dbm",
]


class Useless(types.ModuleType):
    __all__ = ()
    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (Exception,), {})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "test" or name in texts:
            return importlib.util.spec_from_loader(name, self, is_package=name == "test" or texts[name][1])
        if name in originals and originals[name] is not None:
            # an import afresh, without the C part: there are no files to read it from, so it is the module as it was
            return importlib.util.spec_from_loader(name, self, is_package=hasattr(originals[name], "__path__"))
        if name in ABSENT and not name.startswith("_test"):
            return importlib.util.spec_from_loader(name, self, is_package=True)
        return None

    def create_module(self, spec):
        if spec.name == "test" or spec.name in texts:
            return None
        return originals.get(spec.name) or Useless(spec.name)

    def exec_module(self, module):
        module.__file__ = f"/{module.__name__.replace('.', '/')}.py"
        if module.__name__ in texts:
            exec(compile(texts[module.__name__][0], module.__file__, "exec"), vars(module))


sys.meta_path.insert(0, Finder())
sys.executable = ""


def temporary_file(mode="w+b", *arguments, newline=None, **options):
    return io.BytesIO() if "b" in mode else io.StringIO(newline=newline)


files = {}


class Kept(io.BytesIO):
    name = ""

    def close(self):
        files[self.name] = self.getvalue()
        super().close()


def memory_file(name, mode="r", *arguments, newline=None, **options):
    if "w" in mode:
        raw = Kept()
        raw.name = name
    elif name in files:
        raw = io.BytesIO(files[name])
    else:
        raise FileNotFoundError(name)
    return raw if "b" in mode else io.TextIOWrapper(raw, "utf-8", newline=newline)


# There are no files; what a test writes and reads back itself can be in memory.
tempfile.TemporaryFile = tempfile.NamedTemporaryFile = temporary_file
builtins.open = io.open = memory_file
os.unlink = os.remove = lambda name: files.pop(name, None)
os.listdir = lambda *path: []
os.path.expanduser = lambda path: path
# More than 1000 nested generators are more than the engine's stack holds; a trap would end all tests of a module.
sys.setrecursionlimit = lambda limit: None
problems = []
counts = {"ran": 0, "passed": 0, "skipped": 0}


class Report(unittest.TestResult):
    def addSuccess(self, test):
        counts["passed"] += 1

    def addExpectedFailure(self, test, err):
        counts["passed"] += 1

    def addSkip(self, test, reason):
        counts["skipped"] += 1

    def addError(self, test, err):
        problems.append([test.id(), f"{err[0].__name__}: {str(err[1])[:160]}"])

    def addFailure(self, test, err):
        problems.append([test.id(), f"{err[0].__name__}: {str(err[1])[:160]}"])

    def addSubTest(self, test, subtest, err):
        if err is not None:
            problems.append([subtest.id()[:200], f"{err[0].__name__}: {str(err[1])[:160]}"])

    def startTest(self, test):
        super().startTest(test)
        print(test.id())


import test.support  # noqa: E402  # found by the Finder above

test.support.use_resources = []  # what needs gigabytes, minutes or a network

ENDS = {
    "test_highly_nested_objects_encoding": "ends the isolate: freeing what is nested 100 000 deep overflows its stack",
}
"""Tests after which there is no isolate left to go on in; they count as failed."""


def without(suite):
    """The suite without the tests of ENDS, each counted as run."""
    kept = unittest.TestSuite()
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            kept.addTest(without(part))
        elif reason := ENDS.get(getattr(part, "_testMethodName", "")):
            problems.append([part.id(), reason])
            counts["ran"] += 1
        else:
            kept.addTest(part)
    return kept


report = Report()
for name in input["tests"]:
    try:
        __import__(name)
        suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[name])
    except BaseException as e:
        problems.append([name, f"not imported: {type(e).__name__}: {e}"])
        counts["ran"] += 1
        continue
    before = report.testsRun
    without(suite).run(report)
    counts["ran"] += report.testsRun - before
return {**counts, "problems": problems[:60]}
