"""The compiled time zones of the tzdata package."""

from __future__ import annotations

import io
import tarfile

from guest.context import BuildContext
from guest.toolchain import BuildFailed


def compiled(context: BuildContext) -> dict[str, bytes]:
    """Each zone's TZif file by its name. Raises BuildFailed."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(context.source("tzdata"))) as archive:
        for member in archive:
            _, inside, name = member.name.partition("/zoneinfo/")
            data = archive.extractfile(member) if inside and member.isfile() else None
            if data is not None and (zone := data.read()).startswith(b"TZif"):
                found[name] = zone
    if "UTC" not in found:
        raise BuildFailed("the tzdata package holds no time zones where they were expected")
    return found
