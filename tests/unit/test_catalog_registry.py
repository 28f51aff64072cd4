"""The registry, and the catalog as the store remembers it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from bridge.toolbox import Toolbox, ToolboxSettings
from bridge.wire.errors import Conflict, InvalidRequest, ToolError
from catalog import address, rows
from catalog.store import MemoryCatalog
from runtime.store.store import Store
from tests.unit.upstream import call, document, operation, parameter, toolbox, upstream

pytestmark = pytest.mark.anyio

PETSTORE = Path(__file__).parents[2] / "examples" / "petstore" / "openapi.json"


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("github.org.work.issues.list", ("github", "org", "work", "issues.list")),
        ("a-b_1.user.x.Y_z-9", ("a-b_1", "user", "x", "Y_z-9")),
        ("a.b.c", None),
        ("a..b.c.d", None),
        ("a.b.c.d.", None),
        ("A.b.c.d", None),
        ("-a.b.c.d", None),
        ("a.b.c." + "x" * 600, None),
    ],
)
def test_an_address_has_four_parts_of_which_the_last_may_hold_dots(path: str, parts: Any) -> None:
    assert address.parse(path) == parts
    if parts is not None:
        assert str(address.parse(path)) == path


@pytest.mark.parametrize("path", ["search.org.main.x", "a.team.main.x", "a.org.main", "a.org.main.x y", ""])
async def test_a_tool_cannot_stand_at_what_is_not_an_address(path: str) -> None:
    async with toolbox() as box:
        with pytest.raises(InvalidRequest):
            box.add_code_tool(path, lambda args: 1)


async def test_a_schema_that_is_not_one_is_refused_and_the_tool_not_added() -> None:
    async with toolbox() as box:
        with pytest.raises(InvalidRequest, match="JSON Schema"):
            box.add_code_tool("a.org.main.x", lambda args: 1, input_schema={"type": "objekt"})
        assert box.list_tools()["total"] == 0


async def test_python_tools_do_not_mix_with_an_integration_of_another_kind() -> None:
    async with toolbox() as box:
        await box.add_http("web", ["https://93.184.216.34"])
        with pytest.raises(Conflict):
            box.add_code_tool("web.org.main.x", lambda args: 1)


async def test_every_connection_has_every_tool_and_pages_go_through_them_in_order() -> None:
    async with toolbox() as box:
        described = document(
            {"/x": {"get": operation()}, "/y": {"get": operation(operationId="b")}}, "http://93.184.216.34"
        )
        await box.add_openapi("api", described)
        await box.connect("api", scope="user", connection="other")
        box.add_code_tool("apix.org.main.z", lambda args: 1)
        page = box.list_tools(integration="api", limit=3)
        paths = [item["path"] for item in page["items"]]
        assert paths == ["api.org.main.b", "api.org.main.op", "api.user.other.b"]
        assert (page["total"], page["next"]) == (4, "api.user.other.b")
        rest = box.list_tools(integration="api", limit=3, cursor=page["next"])
        assert [item["path"] for item in rest["items"]] == ["api.user.other.op"]
        assert box.list_tools()["total"] == 5
        assert box.integrations()[0]["tools"] == 4


async def test_suggestions_for_an_unknown_path_are_near_and_few() -> None:
    async with toolbox() as box:
        for number in range(500):
            box.add_code_tool(f"shop.org.main.pet.get{number}", lambda args: 1)
        box.add_code_tool("shop.org.main.store.placeOrder", lambda args: 1)
        for wrong in (
            "shop.org.main.store.placeorder",
            "shop.main.store.placeOrder",
            "store.place_order",
            "placeOrder",
        ):
            with pytest.raises(ToolError) as caught:
                await call(box, wrong)
            assert caught.value.details["suggestions"][0] == "shop.org.main.store.placeOrder"
            assert len(caught.value.details["suggestions"]) <= 3


async def test_of_many_unknown_paths_at_once_some_are_told_what_is_near() -> None:
    def suggestions(box: Toolbox) -> int:
        with pytest.raises(ToolError) as caught:
            box.describe("shop.org.main.store.placeorder")
        return len(caught.value.details["suggestions"])

    async with toolbox() as box:
        box.add_code_tool("shop.org.main.store.placeOrder", lambda args: 1)
        await anyio.lowlevel.checkpoint()
        assert [suggestions(box) for _ in range(6)] == [1, 1, 1, 1, 0, 0]
        await anyio.lowlevel.checkpoint()
        assert suggestions(box) == 1


@pytest.fixture(params=["memory", "file"])
async def homes(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A way to open the same home again and again: the port in memory, and the real store in a file."""
    if request.param == "memory":
        catalog = MemoryCatalog()

        async def opened() -> Any:
            return Toolbox(catalog=catalog), None

        return opened

    async def from_file() -> Any:
        store = await Store.open(tmp_path / "home")
        settings = ToolboxSettings(key_file=tmp_path / "config" / "master.key")
        box = Toolbox(
            settings, catalog=store.catalog, policies=store.policies, secrets=store.secrets, keys=store.secrets
        )
        return box, store

    return from_file


async def _in(homes: Any, work: Any) -> Any:
    box, store = await homes()
    try:
        async with box:
            return await work(box)
    finally:
        if store is not None:
            await store.close()


async def test_what_was_added_is_there_again_after_a_restart(homes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with upstream() as server:

        async def add(box: Toolbox) -> Any:
            source = json.loads(PETSTORE.read_bytes())
            await box.add_openapi("pets", source, base_url=server.base, allow_private=["127.0.0.1"])
            await box.add_http("web", [f"GET {server.base}/v1"], allow_private=["127.0.0.1"])
            await box.connect("pets", scope="user", connection="mine", auth="bearer", secret="env:EXECUTOR_TEST_T")
            return box.integrations(), box.describe("pets.org.main.pet.getPetById", schemas=True), box.list_tools()

        async def again(box: Toolbox) -> Any:
            await box.add_policy("*", "*", "approve")
            answer = await call(box, "pets.user.mine.pet.findPetsByStatus", {"status": ["sold"]}, meta=True)
            return (
                (box.integrations(), box.describe("pets.org.main.pet.getPetById", schemas=True), box.list_tools()),
                answer.value["target"],
                answer.value["headers"].get("authorization"),
            )

        before = await _in(homes, add)
        monkeypatch.setenv("EXECUTOR_TEST_T", "the-secret-token")
        after, target, authorization = await _in(homes, again)
        assert after == before
        assert target == "/pet/findByStatus?status=sold"
        assert authorization == "Bearer [secret]"


async def test_what_was_removed_stays_away_after_a_restart(homes: Any) -> None:
    async def add(box: Toolbox) -> None:
        described = document({"/x": {"get": operation(parameter("q"))}}, "http://93.184.216.34")
        for name in ("one", "two"):
            await box.add_openapi(name, described)
            await box.connect(name, scope="user", connection="second")
        await box.remove("one")
        await box.disconnect("two")

    async def paths(box: Toolbox) -> list[str]:
        return [item["path"] for item in box.list_tools()["items"]]

    await _in(homes, add)
    assert await _in(homes, paths) == ["two.user.second.op"]


async def test_a_replaced_integration_keeps_its_connections(homes: Any) -> None:
    async def add(box: Toolbox) -> None:
        await box.add_openapi("api", document({"/x": {"get": operation()}}, "http://93.184.216.34"))
        await box.connect("api", scope="user", connection="mine")
        changed = document({"/x": {"get": operation(operationId="renamed")}}, "http://93.184.216.34")
        await box.add_openapi("api", changed, replace=True)

    async def paths(box: Toolbox) -> list[str]:
        return [item["path"] for item in box.list_tools()["items"]]

    await _in(homes, add)
    assert await _in(homes, paths) == ["api.org.main.renamed", "api.user.mine.renamed"]


async def test_secrets_and_policies_survive_a_restart_in_the_real_store(tmp_path: Path) -> None:
    async def opened() -> Any:
        store = await Store.open(tmp_path / "home")
        settings = ToolboxSettings(key_file=tmp_path / "config" / "master.key")
        box = Toolbox(
            settings, catalog=store.catalog, policies=store.policies, secrets=store.secrets, keys=store.secrets
        )
        return box, store

    async def add(box: Toolbox) -> Any:
        await box.set_secret("token", "cnry_value_of_the_secret")
        return await box.add_policy("*", "op*", "block", reason="because")

    async def again(box: Toolbox) -> Any:
        return await box.secret_names(), box.policies()

    rule = await _in(opened, add)
    names, policies = await _in(opened, again)
    assert names == ["token"]
    assert policies == [{key: value for key, value in rule.items() if key != "matches"}]
    for path in (tmp_path / "home").iterdir():
        assert b"cnry_value" not in path.read_bytes()


async def test_one_integration_that_cannot_be_read_does_not_keep_the_others_away() -> None:
    catalog = MemoryCatalog()
    async with Toolbox(catalog=catalog) as box:
        for name in ("good", "bad"):
            await box.add_openapi(name, document({"/x": {"get": operation()}}, "http://93.184.216.34"))
    (bad,) = [row for row in await catalog.integrations() if row.name == "bad"]
    await catalog.put_integration(bad._replace(manifest=b"damaged"), [])
    async with Toolbox(catalog=catalog) as box:
        assert [one["name"] for one in box.integrations()] == ["good"]


async def test_of_two_that_add_the_same_name_at_once_one_is_refused() -> None:
    async with toolbox() as box:
        outcomes: list[str] = []

        async def add() -> None:
            try:
                await box.add_openapi("api", document({"/x": {"get": operation()}}, "http://93.184.216.34"))
            except Conflict:
                outcomes.append("refused")
            else:
                outcomes.append("added")

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(add)
        assert sorted(outcomes) == ["added", "refused", "refused", "refused", "refused"]
        assert box.list_tools()["total"] == 1


async def test_others_are_served_while_a_large_document_is_read() -> None:
    paths = {f"/p{one}": {"get": operation(parameter("q"), operationId=f"op{one}")} for one in range(4000)}
    async with toolbox() as box:
        box.add_code_tool("demo.org.main.echo", lambda args: 1, side_effect="read")
        served, done = 0, anyio.Event()

        async def add() -> None:
            await box.add_openapi("api", document(paths, "http://93.184.216.34"))
            done.set()

        async with anyio.create_task_group() as group:
            group.start_soon(add)
            while not done.is_set():
                assert box.search("echo")["total"] == 1
                await call(box, "demo.org.main.echo")
                served += 1
        assert served > 10
        assert box.search("op3999")["items"][0]["path"] == "api.org.main.op3999"


def test_only_stored_kinds_have_a_row() -> None:
    assert set(rows.KINDS) == {"graphql", "http", "mcp", "npm", "openapi"}
