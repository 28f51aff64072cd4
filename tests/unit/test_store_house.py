"""What an operator sets up, at rest: keys, integrations, connections, rules, sealed secrets."""

from pathlib import Path

import pytest

from bridge.policy import RuleRow
from bridge.secrets.ports import SecretRow
from bridge.wire.errors import Conflict
from catalog.store import ConnectionRow, IntegrationRow
from runtime.store.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["file", "memory"])
async def store(request, tmp_path: Path):
    store = await Store.open(tmp_path / "home" if request.param == "file" else None)
    yield store
    await store.close()


async def test_keys_are_kept_as_digests_and_a_live_name_is_used_once(store: Store):
    await store.keys.add_key("key_1", "ci", b"\x01" * 32, 1.0)
    with pytest.raises(Conflict):
        await store.keys.add_key("key_2", "ci", b"\x02" * 32, 2.0)
    await store.keys.revoke_key("key_1", 3.0)
    await store.keys.revoke_key("key_1", 4.0)
    await store.keys.add_key("key_2", "ci", b"\x02" * 32, 2.0)
    await store.keys.mark_key_used("key_2", 5.0)
    assert await store.keys.list_keys() == [
        ("key_1", "ci", b"\x01" * 32, 1.0, None, 3.0, "full", None),
        ("key_2", "ci", b"\x02" * 32, 2.0, 5.0, None, "full", None),
    ]


async def test_an_integration_and_its_connections_come_together_and_go_as_asked(store: Store):
    pets = IntegrationRow("pets", "openapi", "{}", b"manifest", 1.0)
    main, other = (ConnectionRow("pets", "org", name, "{}", 1.0) for name in ("main", "other"))
    await store.catalog.put_integration(pets, [main])
    await store.catalog.put_connection(other)
    newer = pets._replace(manifest=b"newer")
    await store.catalog.put_integration(newer, [])
    assert await store.catalog.integrations() == [newer]
    assert await store.catalog.connections() == [main, other]
    await store.catalog.delete_connection("pets", "org", "other")
    assert await store.catalog.connections() == [main]
    await store.catalog.delete_integration("pets", connections=False)
    assert (await store.catalog.integrations(), await store.catalog.connections()) == ([], [main])
    for _ in range(2):
        await store.catalog.delete_integration("pets", connections=True)
    assert (await store.catalog.integrations(), await store.catalog.connections()) == ([], [])


async def test_rules_come_back_as_they_were_said(store: Store):
    rule = RuleRow("rule_1", "org", "pets", "delete*", "block", "no", 1.0)
    await store.policies.put_rule(rule)
    await store.policies.put_rule(rule._replace(effect="approve"))
    assert await store.policies.rules() == [rule._replace(effect="approve")]
    assert await store.policies.delete_rule("rule_1")
    assert not await store.policies.delete_rule("rule_1")


async def test_sealed_secrets_and_the_check_of_their_key_are_kept(store: Store):
    assert await store.secrets.key_check() is None
    await store.secrets.put_key_check(b"check")
    await store.secrets.put_key_check(b"again")
    assert await store.secrets.key_check() == b"again"
    row = SecretRow("org", "github", 1, b"sealed", 1.0)
    await store.secrets.put_secret(row)
    await store.secrets.put_secret(row._replace(version=2))
    assert await store.secrets.secret("org", "github") == row._replace(version=2)
    assert await store.secrets.secret("user", "github") is None
    assert await store.secrets.secret_names("org") == ["github"]
    assert await store.secrets.delete_secret("org", "github")
    assert not await store.secrets.delete_secret("org", "github")
