"""A call of the proxy that fails."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.toolbox import Toolbox
from bridge.wire.errors import ToolError
from tests.unit.upstream import call

ECHO = "demo.org.main.echo"


async def failing(box: Toolbox, path: str = ECHO, args: Any = None, **more: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await call(box, path, args, **more)
    assert caught.value.path == path
    return caught.value
