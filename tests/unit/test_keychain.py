"""`keychain:` through the keyring library, with a keychain that is a dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoBackend
from keyring.errors import KeyringLocked

from bridge.secrets.keychain import KeychainSecrets
from bridge.secrets.ports import SecretMissing, SecretUnavailable
from bridge.toolbox import Toolbox

pytestmark = pytest.mark.anyio


class Chain(KeyringBackend):
    """Entries by service and account."""

    priority = 1
    entries: ClassVar[dict[tuple[str, str], Any]] = {("git/hub", "ann"): "cnry_0123456789abcdef", ("raw", "x"): b"abc"}

    def get_password(self, service: str, username: str) -> str | None:
        if service == "locked":
            raise KeyringLocked("cnry_in_an_error_text")
        if service == "bus":
            raise OSError("cnry_in_an_error_text")
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        raise AssertionError

    def delete_password(self, service: str, username: str) -> None:
        raise AssertionError


@pytest.fixture
def _chain() -> Iterator[None]:
    earlier = keyring.get_keyring()
    keyring.set_keyring(Chain())
    yield
    keyring.set_keyring(earlier)


@pytest.fixture
def _no_chain() -> Iterator[None]:
    earlier = keyring.get_keyring()
    keyring.set_keyring(NoBackend())
    yield
    keyring.set_keyring(earlier)


@pytest.mark.usefixtures("_chain")
async def test_an_entry_is_read_by_service_and_account() -> None:
    provider = KeychainSecrets()
    assert (await provider.resolve("org", "git/hub/ann")).reveal() == "cnry_0123456789abcdef"
    with pytest.raises(SecretMissing, match="no entry git/hub/bob"):
        await provider.resolve("org", "git/hub/bob")
    for service in ("locked", "bus"):
        with pytest.raises(SecretUnavailable) as caught:
            await provider.resolve("org", f"{service}/ann")
        assert "cnry" not in caught.value.reason
    with pytest.raises(SecretMissing, match="no text"):
        await provider.resolve("org", "raw/x")


async def test_a_keychain_that_is_set_up_wrongly_hinders_only_who_refers_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ModuleNotFoundError("No module named 'gone'")

    monkeypatch.setattr(keyring, "get_keyring", broken)
    monkeypatch.setenv("EXECUTOR_TEST_TOKEN", "a-secret-value")
    with pytest.raises(SecretMissing, match="cannot be used"):
        await KeychainSecrets().resolve("org", "a/b")
    async with Toolbox() as box:
        report = await box.add_http("web", ["https://api.example.com"], secret="env:EXECUTOR_TEST_TOKEN")
        assert report.diagnostics == []
        report = await box.connect("web", connection="other", secret="keychain:a/b")
        assert "cannot be used" in report.diagnostics[0].message


@pytest.mark.usefixtures("_no_chain")
async def test_a_machine_without_a_keychain_says_so_when_an_account_is_connected_and_when_it_is_used() -> None:
    with pytest.raises(SecretMissing, match="no keychain"):
        await KeychainSecrets().resolve("org", "a/b")
    async with Toolbox() as box:
        report = await box.add_http("web", ["https://api.example.com"], secret="keychain:a/b")
        assert "no keychain" in report.diagnostics[0].message
