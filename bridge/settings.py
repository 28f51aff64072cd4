"""What an operator may set about the bridge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.policy import Approver
from bridge.secrets.server import ServerSettings


@dataclass(frozen=True, slots=True)
class ToolboxSettings:
    """`egress_allow`: allowlist entries that bound every integration (None: any public host). `allow_private`: private
    hosts, addresses or networks that any integration may reach. `key_file` and `config_dir` None: the defaults of
    `bridge.secrets.masterkey`; `ephemeral_key`: a key that is never written, for a home in memory. `vault` and
    `onepassword`: the servers behind `vault:` and `op:` references, of which answers are kept `secret_cache_s` seconds.
    `http_references`: patterns of the references that a caller over the network may name, beside local ones.
    `http_programs`: whether one may have programs run on this machine. `approver`: who may allow a call where no rule
    says `another`."""

    egress_allow: Sequence[str] | None = None
    allow_private: Sequence[str] = ()
    tool_timeout_s: float = 30.0
    response_bytes: int = 32 * 1024 * 1024
    document_bytes: int = 64 * 1024 * 1024
    connections_per_host: int = 32
    ca_file: Path | None = None
    key_file: Path | None = None
    config_dir: Path | None = None
    ephemeral_key: bool = False
    vault: ServerSettings | None = None
    onepassword: ServerSettings | None = None
    secret_cache_s: float = 1.0
    http_references: Sequence[str] = ()
    http_programs: bool = False
    approver: Approver = "anyone"
