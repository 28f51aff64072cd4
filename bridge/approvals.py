"""A call that needs a person's yes: what the person is asked, and what exactly the yes is bound to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from bridge.calls import CallContext
from bridge.policy import Approver, Decision
from bridge.wire import codec
from catalog.kinds.code import Code
from catalog.model import Connection, Schema, Tool
from catalog.registry import Installed


@dataclass(frozen=True, slots=True)
class Ask:
    """One call that waits. `binding` is the hash of the exact call and of everything that decides what it does: a yes
    to it is a yes to nothing else. `arguments` are those that would be sent; `approver` is who may allow it,
    `rule` the one that asks."""

    path: str
    arguments: dict[str, Any]
    reason: str
    side_effect: str
    binding: str
    approver: Approver = "anyone"
    rule: str | None = None


class NeedsApproval(Exception):
    """Raised instead of making a call that a person must allow, where the caller can wait for one."""

    def __init__(self, ask: Ask) -> None:
        super().__init__(ask.path)
        self.ask = ask


class Binder:
    """Computes bindings. Hashes of an integration's definitions are kept: they are large and shared by its tools."""

    def __init__(self) -> None:
        self._definitions: dict[str, tuple[Mapping[str, Schema], str]] = {}

    def ask(
        self,
        ctx: CallContext,
        call_id: int,
        tool: Tool,
        args: dict[str, Any],
        installed: Installed,
        connection: Connection,
        decision: Decision,
    ) -> Ask:
        """What a person is asked before `tool` is called with `args` on `connection`."""
        code = isinstance(installed.integration, Code)
        facts = {
            "run": ctx.run_id,
            "principal": ctx.principal,
            "toolkit": ctx.toolkit,
            "narrowings": [one.as_dict() for one in ctx.narrowings],
            "call": call_id,
            "path": tool.path,
            "kind": installed.kind,
            "side_effect": tool.side_effect,
            "input": tool.input_schema,
            "output": tool.output_schema,
            # A Python callable has no content to hash; the other kinds' bindings are JSON data.
            "binding": None if code else tool.binding,
            "definitions": self._digest(tool),
            "reach": [str(reach) for reach in installed.manifest.reach],
            "config": dict(installed.config),
            "connection": asdict(connection),
            "decision": [decision.effect, decision.rule.id if decision.rule is not None else None],
            "arguments": hashlib.sha256(codec.encode(args)).hexdigest(),
        }
        if decision.approver != "anyone":
            facts["approver"] = decision.approver
        packed = json.dumps(facts, sort_keys=True, default=_opaque).encode("utf-8", "surrogatepass")
        binding = hashlib.sha256(packed).hexdigest()
        rule = decision.rule.id if decision.rule is not None else None
        return Ask(tool.path, args, decision.reason, tool.side_effect, binding, decision.approver, rule)

    def _digest(self, tool: Tool) -> str:
        known = self._definitions.get(tool.integration)
        if known is None or known[0] is not tool.definitions:
            packed = json.dumps(dict(tool.definitions), sort_keys=True, default=_opaque)
            digest = hashlib.sha256(packed.encode("utf-8", "surrogatepass")).hexdigest()
            known = self._definitions[tool.integration] = (tool.definitions, digest)
        return known[1]


def _opaque(value: Any) -> str:
    return f"<{type(value).__qualname__}>"
