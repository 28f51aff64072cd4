"""Everything that is kept, behind one handle."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from runtime.store.catalog import Catalog
from runtime.store.home import HomeLock
from runtime.store.keys import Keys
from runtime.store.policies import Policies
from runtime.store.runs import Retention, RunStore
from runtime.store.secrets import Secrets
from runtime.store.sqlite import Database
from runtime.store.toolkits import Toolkits

FILE: Final = "executor.db"


class Store:
    """The store of one home directory, or of nothing but memory. Open it with `Store.open`, close it once."""

    def __init__(self, database: Database, retention: Retention, lock: HomeLock | None) -> None:
        self.database = database
        self.runs = RunStore(database, retention)
        self.keys = Keys(database)
        self.catalog = Catalog(database)
        self.policies = Policies(database)
        self.toolkits = Toolkits(database)
        self.secrets = Secrets(database)
        self._lock = lock

    @classmethod
    async def open(cls, home: Path | None, retention: Retention | None = None) -> Store:
        """Lock the home, check and migrate its database, find what a crash left open.

        Raises ConfigError (in use by another process, damaged, newer) and StorageFull.
        """
        retention = retention or Retention()
        if home is None:
            store = cls(await Database.open(None), retention, None)
        else:
            lock = HomeLock(home)
            try:
                store = cls(await Database.open(home / FILE), retention, lock)
            except BaseException:
                lock.release()
                raise
        try:
            await store.runs.load()
        except BaseException:
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """Commit what was posted and give the home back. Safe to call again."""
        await self.database.close()
        if self._lock is not None:
            self._lock.release()

    def health(self) -> dict[str, Any]:
        return {"durable": self.database.durable, "full": self.database.failing}
