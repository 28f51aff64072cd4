"""`keychain:SERVICE/ACCOUNT`: the keychain of the operating system, by way of the keyring library."""

from __future__ import annotations

from typing import Final

import anyio
import anyio.to_thread

from bridge.secrets.ports import Secret, SecretMissing, SecretUnavailable
from bridge.secrets.references import keychain_key

TIMEOUT_S: Final = 10.0
"""A keychain may ask a person, who may not be there."""


class KeychainSecrets:
    async def resolve(self, scope: str, key: str) -> Secret:
        """Raises SecretMissing (no entry, no keychain here), SecretUnavailable (locked, or it does not answer)."""
        service, account = keychain_key(key)
        try:
            with anyio.fail_after(TIMEOUT_S):
                value = await anyio.to_thread.run_sync(_read, service, account, abandon_on_cancel=True)
        except TimeoutError:
            raise SecretUnavailable(f"the keychain did not answer in {TIMEOUT_S:.0f} s") from None
        if not value:
            raise SecretMissing(f"the keychain has no entry {service}/{account}")
        return Secret(value)


def absent() -> str | None:
    """Why there is no keychain on this machine, None when there is one."""
    try:
        import keyring
        from keyring.backends.fail import Keyring as NoBackend
    except ImportError:
        return "the library keyring is not installed (pip install 'executor-runtime[keychain]')"
    try:
        backend = keyring.get_keyring()
    except Exception as e:
        # What a person configured may be anything, or missing.
        return f"the keychain that keyring is set up with cannot be used ({type(e).__name__})"
    return "this machine has no keychain that keyring knows" if isinstance(backend, NoBackend) else None


def _read(service: str, account: str) -> str | None:
    reason = absent()
    if reason is not None:
        raise SecretMissing(reason)
    import keyring

    try:
        value: object = keyring.get_password(service, account)
    except Exception as e:
        # Backends raise what their own libraries do, whose text may say anything.
        raise SecretUnavailable(f"the keychain cannot be read ({type(e).__name__})") from None
    if value is not None and not isinstance(value, str):
        raise SecretMissing(f"the keychain's entry {service}/{account} is no text")
    return value
