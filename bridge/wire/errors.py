"""Every deliberate error of Executor, in one tree.

ExecutorError
├── RequestRefused            the request never ran: fix it, or come back later
│   ├── InvalidRequest          400
│   ├── Unauthorized            401
│   ├── Forbidden               403
│   ├── NotFound                404
│   ├── Conflict                409
│   ├── PayloadTooLarge         413
│   ├── UnsupportedMediaType    415
│   ├── RangeNotSatisfiable     416, with `total`
│   ├── Overloaded              503, with `retry_after_s`
│   └── StorageError
│       ├── StorageFailed         503
│       └── StorageFull           507
├── ToolError                 a tool call failed; a script can catch it
├── RunFailed                 what `RunResult.unwrap()` raises for a run that did not complete
├── ConfigError               the operator's configuration, key or home directory is not usable
│   └── HomeInUse               another process has the home open
├── ImportFailed              an API description that cannot become an integration; nothing was added
│   └── PackageUnavailable      an npm package that cannot be installed, with `reason`
└── WireError                 bytes that break the protocol between host and worker, or host and guest
    ├── FrameError
    └── Unserializable          a value that cannot cross, with the `path` of the offending part
"""

from __future__ import annotations

from typing import Any, Final, Literal

RunErrorCode = Literal[
    "syntax_error",
    "script_error",
    "never_settles",
    "stack_exhausted",
    "unserializable",
    "result_too_large",
    "fuel_exhausted",
    "deadline_exceeded",
    "memory_exhausted",
    "calls_exhausted",
    "cancelled",
    "expired",
    "worker_lost",
    "internal",
]

ToolErrorCode = Literal[
    "tool_not_found",
    "invalid_arguments",
    "blocked",
    "approval_required",
    "approval_denied",
    "approval_expired",
    "input_required",
    "connection_missing",
    "credential_rejected",
    "egress_denied",
    "upstream_error",
    "upstream_timeout",
    "upstream_unreachable",
    "too_large",
    "outcome_unknown",
    "internal",
]

PackageReason = Literal["refused", "not_found", "integrity", "too_large", "unreachable"]

RETRYABLE: Final[frozenset[str]] = frozenset({"upstream_timeout", "upstream_unreachable"})


class ExecutorError(Exception):
    """Base of every deliberate error: a stable `code`, a `message` fit to show, a `hint` on what to do next."""

    code: str = "internal"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details
        if code is not None:
            self.code = code

    def as_dict(self) -> dict[str, Any]:
        """The error as JSON-ready data; keys without a value are left out."""
        facts = {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}
        return {key: value for key, value in facts.items() if value is not None}


class RequestRefused(ExecutorError):
    """Raised when a request is refused before anything ran."""

    code = "invalid_request"
    status: int = 400


class InvalidRequest(RequestRefused):
    """Raised when a request is malformed or names something that does not exist."""


class Unauthorized(RequestRefused):
    """Raised when no valid key came with the request."""

    code = "unauthorized"
    status = 401


class Forbidden(RequestRefused):
    """Raised when the key, the Host or the Origin of a request does not permit it."""

    code = "forbidden"
    status = 403


class NotFound(RequestRefused):
    """Raised when the addressed thing does not exist, or not for this caller."""

    code = "not_found"
    status = 404


class Conflict(RequestRefused):
    """Raised when the request contradicts the present state, such as a name already taken."""

    code = "conflict"
    status = 409


class PayloadTooLarge(RequestRefused):
    """Raised when a body, source or input is over its limit; nothing ran."""

    code = "too_large"
    status = 413


class UnsupportedMediaType(RequestRefused):
    """Raised when a body is not plain `application/json`."""

    code = "unsupported_media_type"
    status = 415


class Overloaded(RequestRefused):
    """Raised when all isolates are busy and the queue is full; try again after `retry_after_s` seconds."""

    code = "overloaded"
    status = 503

    def __init__(self, message: str, *, retry_after_s: int = 1, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after_s = retry_after_s


class RangeNotSatisfiable(RequestRefused):
    """Raised when a part is asked for that begins beyond the end; `total` is the size of the whole in bytes."""

    code = "range_not_satisfiable"
    status = 416

    def __init__(self, message: str, *, total: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, details={"bytes": total})
        self.total = total


class StorageError(RequestRefused):
    """Base of what keeps the store from taking a new record; existing ones are as they were."""

    status = 503


class StorageFailed(StorageError):
    """Raised when the store cannot be written for another reason than room, such as a disk that fails."""

    code = "storage_failed"
    status = 503


class StorageFull(StorageError):
    """Raised when the store has no room for a new record; existing records stay readable."""

    code = "storage_full"
    status = 507


class ToolError(ExecutorError):
    """Raised when a tool call fails. Inside a script it is a catchable `ToolError` with the same fields.

    `path` is the tool's address, `retryable` says whether the same call may succeed later, `status` is the
    upstream's HTTP status where there was one, `retry_after_ms` how long it asks to wait where it does.
    """

    def __init__(
        self,
        code: ToolErrorCode,
        message: str,
        *,
        path: str | None = None,
        retryable: bool | None = None,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
        status: int | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint, details=details)
        self.path = path
        self.retryable = code in RETRYABLE if retryable is None else retryable
        self.status = status
        self.retry_after_ms = retry_after_ms

    def as_dict(self) -> dict[str, Any]:
        facts = super().as_dict() | {"retryable": self.retryable}
        if self.path is not None:
            facts["path"] = self.path
        if self.status is not None:
            facts["status"] = self.status
        if self.retry_after_ms is not None:
            facts["retry_after_ms"] = self.retry_after_ms
        return facts


class RunFailed(ExecutorError):
    """Raised by `RunResult.unwrap()` when the run did not complete; `run_id` names its record."""

    def __init__(self, code: RunErrorCode, message: str, *, run_id: str, hint: str | None = None) -> None:
        super().__init__(message, code=code, hint=hint)
        self.run_id = run_id


class ConfigError(ExecutorError):
    """Raised when configuration, master key or home directory cannot be used as they are."""

    code = "config_error"


class HomeInUse(ConfigError):
    """Raised when another process has the home directory open."""


class ImportFailed(ExecutorError):
    """Raised when an API description cannot become an integration; the catalog is unchanged."""

    code = "import_failed"


class PackageUnavailable(ImportFailed):
    """Raised when an npm package cannot be installed; nothing of it is kept.

    `reason`: `refused` (its name, its spec, its contents or the operator's rules), `not_found`, `integrity` (it is not
    what the registry or an earlier install says it is), `too_large`, `unreachable` (the registry did not answer).
    """

    def __init__(
        self,
        message: str,
        *,
        reason: PackageReason = "refused",
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason: PackageReason = reason


class WireError(ExecutorError):
    """Base of the errors of the wire itself."""


class FrameError(WireError):
    """Raised when bytes are not a valid frame; the worker that sent them is closed."""

    code = "frame_error"


class Unserializable(WireError):
    """Raised when a value cannot cross the bridge; `path` names the offending part, such as `$.rows[3].at`."""

    code = "unserializable"

    def __init__(self, message: str, *, path: str = "$") -> None:
        super().__init__(message)
        self.path = path
