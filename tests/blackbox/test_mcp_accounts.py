"""Accounts of one MCP server that are offered different tools: what is let in for one is not taken for the other."""

import sys
from pathlib import Path

import pytest

from executor import Config, Executor, ToolError

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]
GUEST = {"type": "env", "name": "ROLE", "secret": "env:ROLE_OF_GUEST"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def failed(ex: Executor, path: str) -> ToolError:
    with pytest.raises(ToolError) as caught:
        await ex.call(path)
    return caught.value


async def paths(ex: Executor) -> set[str]:
    return {one["path"].removeprefix("roles.org.") for one in (await ex.tools(limit=100))["items"]}


async def test_an_account_is_offered_and_decided_by_what_its_server_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ROLE_OF_GUEST", "guest-0123456789")
    log = tmp_path / "log"
    async with Executor.open(config=Config(workers=1, search="words")) as ex:
        command = [sys.executable, "-m", "tests.blackbox.mcp_roles", str(tmp_path)]
        await ex.add_mcp("roles", command=command, cwd=str(ROOT))
        await ex.connect("roles", connection="guest", auth=GUEST)
        assert await ex.call("roles.org.guest.look") == "look guest"

        error = await failed(ex, "roles.org.guest.wipe")
        assert (error.code, error.details) == ("tool_not_found", {"connection": "roles.org.guest"})
        assert "does not offer this tool to roles.org.guest" in error.message
        # From now on it is not there for that account, and the other has it still.
        assert await paths(ex) == {"main.look", "main.change", "main.wipe", "guest.look", "guest.change"}
        assert "does not offer this tool to roles.org.guest" in (await failed(ex, "roles.org.guest.wipe")).message
        assert await ex.call("roles.org.main.wipe") == "wipe owner"

        # It reads for one and destroys for the other, so that the first one's word is not the second one's.
        error = await failed(ex, "roles.org.guest.change")
        assert (error.code, error.details["side_effect"]) == ("blocked", "delete")
        assert await ex.call("roles.org.main.change") == "change owner"

        # What only the other account has is not in the catalog, which is made from the first.
        assert (await failed(ex, "roles.org.guest.own")).code == "tool_not_found"
        assert log.read_text().split() == ["look", "wipe", "change"]

        (tmp_path / "granted").touch()
        await ex.toolbox.refresh("roles")
        assert await ex.call("roles.org.guest.wipe") == "wipe guest"

        # Without the account that described it, its word is still not the other one's.
        await ex.disconnect("roles")
        assert (await failed(ex, "roles.org.guest.change")).code == "blocked"
        await ex.toolbox.refresh("roles")
        assert "awaits review" in (await failed(ex, "roles.org.guest.change")).message


async def test_what_an_account_is_not_offered_is_known_after_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROLE_OF_GUEST", "guest-0123456789")
    settings = Config(workers=1, search="words")
    async with Executor.open(tmp_path / "home", config=settings) as ex:
        command = [sys.executable, "-m", "tests.blackbox.mcp_roles", str(tmp_path)]
        await ex.add_mcp("roles", command=command, cwd=str(ROOT))
        await ex.connect("roles", connection="guest", auth=GUEST)
        await ex.toolbox.refresh("roles")
    async with Executor.open(tmp_path / "home", config=settings) as ex:
        assert await paths(ex) == {"main.look", "main.change", "main.wipe", "guest.look", "guest.change"}
