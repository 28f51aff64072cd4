"""What a caller asked for, checked: nothing that is malformed gets an id, a record or a place."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridge.view import Narrowing
from bridge.wire import codec
from bridge.wire.errors import InvalidRequest, PayloadTooLarge, Unserializable
from runtime.budgets import BudgetPolicy, Budgets, lowered

LANGUAGES: Final = ("typescript", "javascript", "python")
ISOLATIONS: Final = ("shared", "run")

MAX_LABELS: Final = 32
MAX_LABEL: Final = 128
MAX_KEY: Final = 255
MAX_NAME: Final = 128

_NO_LABELS: Final[dict[str, str]] = {}


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A request that can run. `input` is msgpack; `input_value` is what it was made of."""

    code: str
    code_bytes: int
    language: str
    input: bytes
    input_value: Any
    budgets: Budgets
    toolkit: str | None
    narrowings: tuple[Narrowing, ...]
    labels: dict[str, str]
    isolation: str
    principal: str
    idempotency_key: str | None
    source_sha256: str

    def fingerprint(self) -> str:
        """The SHA-256 of everything that makes two requests the same request."""
        parts: list[Any] = [
            self.language,
            self.source_sha256,
            self.isolation,
            self.toolkit,
            list(self.budgets),
            self.labels,
        ]
        parts += [one.as_dict() for one in self.narrowings]
        packed = json.dumps(parts, sort_keys=True).encode()
        return hashlib.sha256(packed + self.input).hexdigest()


def checked(
    policy: BudgetPolicy,
    code: Any,
    *,
    languages: tuple[str, ...],
    language: Any,
    input: Any,
    budgets: Any,
    ceilings: Mapping[str, int] | None,
    toolkit: Any,
    narrowings: tuple[Narrowing, ...],
    labels: Any,
    isolation: Any,
    default_isolation: str,
    principal: str,
    idempotency_key: Any,
) -> RunRequest:
    """The request, ready to run. Raises InvalidRequest and PayloadTooLarge (source or input over its budget)."""
    chosen = _one_of("language", language, languages, "typescript")
    given = lowered(policy.resolve(budgets, chosen), ceilings or {})
    source = _source(code)
    if len(source) > given.source_bytes:
        raise PayloadTooLarge(
            f"the code has {len(source)} bytes, its budget is {given.source_bytes}",
            hint="budgets.source_bytes can be raised up to its ceiling",
            details={"name": "source_bytes", "limit": given.source_bytes, "used": len(source)},
        )
    packed = _input(input)
    if len(packed) > given.input_bytes:
        raise PayloadTooLarge(
            f"the input has {len(packed)} bytes, its budget is {given.input_bytes}",
            hint="budgets.input_bytes can be raised up to its ceiling",
            details={"name": "input_bytes", "limit": given.input_bytes, "used": len(packed)},
        )
    return RunRequest(
        code=code,
        code_bytes=len(source),
        language=chosen,
        input=packed,
        input_value=input,
        budgets=given,
        toolkit=_text("toolkit", toolkit, MAX_NAME),
        narrowings=narrowings,
        labels=_NO_LABELS if labels is None else _labels(labels),
        isolation=_one_of("isolation", isolation, ISOLATIONS, default_isolation),
        principal=principal,
        idempotency_key=_text("idempotency_key", idempotency_key, MAX_KEY),
        source_sha256=hashlib.sha256(source).hexdigest(),
    )


def _one_of(name: str, value: Any, allowed: tuple[str, ...], default: str) -> str:
    if value is None:
        return default
    if value not in allowed:
        shown = f"{value[:64]!r}" if isinstance(value, str) else f"of type {type(value).__name__}"
        raise InvalidRequest(f"{name} {shown} is not available", hint=f"use one of {', '.join(allowed)}")
    assert isinstance(value, str)
    return value


def _source(code: Any) -> bytes:
    if not isinstance(code, str):
        raise InvalidRequest(f"code must be a string, not {type(code).__name__}")
    try:
        return code.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("the code holds a lone surrogate: it is not Unicode text") from None


def _input(value: Any) -> bytes:
    if value is None:
        return b"\xc0"
    try:
        codec.check(value, json=True)
        return codec.encode(value, parsed=True)
    except Unserializable as e:
        raise InvalidRequest(
            f"the input cannot cross the bridge: {e.message} at {e.path}", hint="input is JSON data, or bytes"
        ) from None


def _text(name: str, value: Any, longest: int) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
        raise InvalidRequest(f"{name} must be a printable string of 1 to {longest} characters")
    return value


def _labels(labels: Any) -> dict[str, str]:
    if isinstance(labels, (list, tuple)):
        if not all(isinstance(label, str) for label in labels):
            raise InvalidRequest("a label must be a string")
        labels = dict.fromkeys(labels, "")
    if not isinstance(labels, Mapping):
        raise InvalidRequest("labels must be an object of strings, or a list of strings")
    if len(labels) > MAX_LABELS:
        raise InvalidRequest(f"a run has at most {MAX_LABELS} labels")
    for key, value in labels.items():
        if _text("a label", key, MAX_LABEL) is None or "=" in key:
            raise InvalidRequest("a label's name must not contain '='")
        if value != "" and _text(f"label {key!r}", value, MAX_LABEL) is None:
            raise InvalidRequest(f"label {key!r} must be a string")
    return dict(labels)
