"""Coverage-guided fuzzing of what reads hostile bytes: `python -m tests.corpora.fuzz TARGET SECONDS [FOLDER]`.

TARGET is one of `frames` (what a worker may send), `urls` (the one reader of URLs), `json` (request bodies), `paths`
(values in the path of a request). It needs `pip install atheris`, no dependency: there are wheels for some versions of
Python only. FOLDER keeps inputs that reached something new.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["bridge", "catalog", "executor.http"]):
    from tests.corpora.targets import TARGETS

if __name__ == "__main__":
    target, seconds, *folder = sys.argv[1:]
    options = [sys.argv[0], f"-max_total_time={int(seconds)}", "-max_len=4096", "-rss_limit_mb=1024", *folder]
    atheris.Setup(options, TARGETS[target])
    atheris.Fuzz()
