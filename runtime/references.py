"""References that stand in a run's record for values that are too large for it."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import msgpack

from runtime.store.runs import RunRow

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def reference_in(emitted: Any) -> dict[str, Any] | None:
    """The reference that stands for a large emitted value, None when the value is there itself.

    A script can emit something that looks like one: a run reads only blobs of its own, so that it leads nowhere.
    """
    ref = emitted.get("$ref") if type(emitted) is dict else None
    sha256 = ref.get("sha256") if type(ref) is dict else None
    return ref if type(sha256) is str and _SHA256.fullmatch(sha256) else None


def sha256_in(row: RunRow, emitted: str | None) -> bytes | None:
    """What a run's stored result, or a stored value that it emitted, is kept under; None where there is none."""
    ref: dict[str, Any] | None
    if emitted is None:
        ref = None if row.result_ref is None else json.loads(row.result_ref)
    else:
        values = msgpack.unpackb(row.emitted, raw=False)
        ref = reference_in(values[int(emitted)]) if int(emitted) < len(values) else None
    return None if ref is None else bytes.fromhex(ref["sha256"])
