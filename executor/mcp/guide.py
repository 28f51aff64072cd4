"""What a model is told: a few lines that are always loaded, and a guide that it reads when it wants to know more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NAMED: Final = 12
"""Integrations that a description names; a long list would cost every conversation its tokens."""

GUIDE_URI: Final = "executor://guide"

GUIDE: Final = """\
# Writing scripts for run_code

A script runs in an isolate: no network, no files, no packages. It reaches the world through `tools` alone, and what it
returns is all that comes back, so do the looping, filtering and adding up in the script.

## Find, look, call

- `search` (or `await tools.search("list open issues", { limit: 5 })` in a script) gives paths.
- `describe` (or `await tools.describe(path)`) gives the signature, parameters and what the call returns.
- `await tools.<path>({ ...arguments })` calls. It returns the value itself, the parsed body of an API's answer.
  `tools.call(path, arguments, { meta: true })` returns `{ value, http: { status, headers } }`.
- Independent calls go together: `await Promise.all(ids.map((id) => tools.shop.org.main.orders.get({ id })))`.

## Results

The value of the last expression is the result; `return` works too. `console.log` lines and `emit(value)` come back
besides it. Results are JSON values, and bytes. An image for the reader: `emit({ type: "image", mimeType: "image/png",
data: bytes })`.

## When a call fails

A failed call throws a `ToolError` with `code`, `message`, `hint`, `retryable` and `status`; catch it like any error.
`approval_denied` means that a person said no to the call; `blocked` that a policy forbids it;
`connection_missing` and `credential_rejected` that an operator must act. Do not repeat a call after `outcome_unknown`
without checking whether it took effect.

## Languages and limits

TypeScript (the default; types are stripped, not checked), JavaScript, and Python (`language: "python"`; `tools` calls
take keyword arguments). Fuel, wall time, memory, calls, arguments and results are limited; `budgets` lowers the limits,
and an answer that ran into one names it in `limit`. Runs are deterministic but for what tools answer.
"""


def instructions(integrations: Sequence[str]) -> str:
    """The server's instructions: what it is for, in two sentences."""
    return (
        f"Runs scripts in a sandbox where `tools` reaches {connected(integrations)}. "
        "Prefer one run_code script over many single calls; use search and describe to find tools first."
    )


def run_code_description(integrations: Sequence[str]) -> str:
    """The description of `run_code`: short enough to be always loaded."""
    return (
        "Run a TypeScript (default), JavaScript or Python script in a sandbox. "
        f"`await tools.<path>({{...}})` calls {connected(integrations)}; find paths with search, signatures with "
        "describe. Loop, filter and combine in the script: only its result comes back (the last expression, or "
        f"`return`), with console output. `input` holds the input. No network, files or packages. Guide: {GUIDE_URI}"
    )


def connected(integrations: Sequence[str]) -> str:
    """The integrations by name, as a part of a sentence."""
    if not integrations:
        return "the connected tools (none yet)"
    more = len(integrations) - NAMED
    names = ", ".join(integrations[:NAMED])
    return f"the connected tools: {names}{f' and {more} more' if more > 0 else ''}"
