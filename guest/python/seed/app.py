"""What componentize-py snapshots: an interpreter that has imported the standard library, and nothing of ours yet.

The line below `PRELOADED` is written by the build, so that this file stands alone.
"""

import importlib

import wit_world  # type: ignore[import-not-found]  # made by componentize-py from world.wit

PRELOADED: tuple[str, ...] = ()

for name in PRELOADED:
    importlib.import_module(name)


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    def ready(self) -> int:
        return 1
