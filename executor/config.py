"""What the operator decides: `<home>/config.toml`, overridden by `EXECUTOR_*` of the environment.

A setting `max_running` is `max_running = 64` in the file and `EXECUTOR_MAX_RUNNING=64` in the environment. Defaults of
budgets are `[budgets]` `fuel = 1000000` or `EXECUTOR_BUDGETS_FUEL`, ceilings `[ceilings]` or `EXECUTOR_CEILINGS_FUEL`.
Lists in the environment are separated by commas.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from bridge.wire.errors import ConfigError, InvalidRequest
from catalog.origin import parse_url
from catalog.scopes import innermost, lowest
from executor.validation import validated
from runtime.budgets import TABLE, BudgetPolicy

FILE: Final = "config.toml"
PREFIX: Final = "EXECUTOR_"


def _processors() -> int:
    return max(1, min(4, os.cpu_count() or 1))


class Config(BaseModel):
    """The settings of one Executor. An unknown name and a value out of bounds are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    workers: int = Field(default_factory=_processors, ge=1, le=256, description="worker processes")
    threads: int = Field(2, ge=1, le=64, description="threads for long steps, in each worker")
    max_running: int = Field(128, ge=1, le=10_000, description="runs at once")
    max_queued: int = Field(512, ge=0, le=100_000, description="runs that wait for a place; further ones are refused")
    max_fresh: int = Field(8, ge=1, le=256, description="runs at once with a worker of their own")
    isolation: Literal["shared", "run"] = Field("shared", description="where a run goes that does not say")
    recycle_after_runs: int = Field(5_000, ge=1, description="runs after which a worker is replaced")
    grace_ms: int = Field(500, ge=10, le=60_000, description="how long a worker may take to stop a run")
    require: Literal["full", "syscalls", "process"] = Field("syscalls", description="lowest acceptable isolation level")
    keep_runs: int | None = Field(None, ge=1, description="ended runs that are kept; else 10 000, in memory 1 000")
    keep_days: float | None = Field(None, gt=0, description="days that ended runs are kept; else for ever")
    keep_bytes: int | None = Field(
        None, ge=1024**2, description="bytes of the store above which old runs go; else 4 GiB, in memory 64 MiB"
    )
    approval_s: float = Field(86_400.0, gt=0, le=366 * 86_400, description="seconds that a person has to answer")
    max_waiting: int = Field(10_000, ge=0, description="calls that wait for a person at once; further ones fail")
    max_denials: int = Field(
        5, ge=1, le=10_000, description="calls of a tool denied in a row after which its caller waits ten minutes"
    )
    approver: Literal["anyone", "another"] = Field(
        "anyone", description="who may allow a call; another: never the one whose run makes it"
    )
    journal_bytes: int = Field(64 * 1024**2, ge=0, description="bytes of one run's journal")
    egress_allow: tuple[str, ...] | None = Field(None, description="the only hosts any integration may reach")
    allow_private: tuple[str, ...] = Field((), description="private hosts or networks any integration may reach")
    public_url: str | None = Field(
        None, description="where browsers reach the server, such as https://exec.example.com"
    )
    tool_timeout_s: float = Field(30.0, gt=0, le=600, description="seconds that one tool call may take")
    search: Literal["auto", "words", "semantic"] = Field(
        "auto", description="how tools are ranked; auto: by meaning too where the extra `semantic` is installed"
    )
    ca_file: Path | None = Field(None, description="certificate authorities to trust instead of the usual ones")
    key_file: Path | None = Field(None, description="the master key of local secrets")
    vault_address: str | None = Field(None, description="the Vault behind vault: references, an https:// URL")
    vault_token: str = Field("env:VAULT_TOKEN", description="where its token is: env:NAME or file:/PATH")
    vault_namespace: str | None = Field(None, description="its namespace")
    vault_ca_file: Path | None = Field(None, description="certificate authorities to trust for it")
    op_address: str | None = Field(None, description="the 1Password Connect server behind op: references")
    op_token: str = Field("env:OP_CONNECT_TOKEN", description="where its token is: env:NAME or file:/PATH")
    op_ca_file: Path | None = Field(None, description="certificate authorities to trust for it")
    secrets_plain_http: bool = Field(False, description="allow http:// to these servers beyond this machine")
    secret_cache_s: float = Field(1.0, ge=0, le=300, description="seconds that their answers are kept")
    http_programs: bool = Field(False, description="allow MCP servers that are programs here to be added over HTTP")
    http_references: tuple[str, ...] = Field((), description="references that may be named over HTTP, * for any text")
    api_key: SecretStr | None = Field(None, min_length=1, description="the bearer key of /execute-tool alone")
    npm_registry: str | None = Field(None, description="URL of the npm registry; else the one that npm uses here")
    npm_cache: Path | None = Field(None, description="folder of downloaded packages; else in the user's cache folder")
    npm_cache_bytes: int = Field(4 * 1024**3, ge=0, description="bytes of packages above which old ones go")
    npm_allow: tuple[str, ...] | None = Field(None, description="the only npm packages that may be asked for")
    npm_deny: tuple[str, ...] = Field((), description="npm packages that are never installed")
    npm_min_age_days: float = Field(0.0, ge=0, description="days that a version must have been published")
    npm_sha1: bool = Field(False, description="accept packages of which the registry states a SHA-1 only")
    npm_timeout_s: float = Field(60.0, gt=0, le=600, description="seconds that installing a package may take")
    npm_packed_bytes: int = Field(16 * 1024**2, ge=1024, description="bytes of one package's archive")
    npm_unpacked_bytes: int = Field(64 * 1024**2, ge=1024, description="bytes of one package's files")
    npm_files: int = Field(5_000, ge=1, description="files of one package")
    npm_packages: int = Field(400, ge=1, description="packages of one install")
    package_wall_ms: int = Field(120_000, ge=1, description="milliseconds that a package's tool may take")
    package_fuel: int = Field(200_000_000_000, ge=1, description="instructions that a package's tool may take")
    budgets: dict[str, int] = Field(default_factory=dict, description="defaults of budgets")
    ceilings: dict[str, int] = Field(default_factory=dict, description="ceilings of budgets")
    user_budgets: dict[str, int] = Field(default_factory=dict, description="the inner scope's defaults, which win")
    user_ceilings: dict[str, int] = Field(default_factory=dict, description="its ceilings, which can only be lower")

    @field_validator("budgets", "ceilings", "user_budgets", "user_ceilings")
    @classmethod
    def _known(cls, figures: dict[str, int]) -> dict[str, int]:
        try:
            BudgetPolicy(ceilings=figures)
        except ConfigError as e:
            raise ValueError(f"{e.message}{f' ({e.hint})' if e.hint else ''}") from None
        return figures

    @field_validator("public_url")
    @classmethod
    def _origin(cls, text: str | None) -> str | None:
        if text is None:
            return None
        url = parse_url(text)
        here = url.host.name == "localhost" or (url.host.address is not None and url.host.address.is_loopback)
        if url.target != "/" or (url.scheme != "https" and not here):
            raise ValueError("it is an origin without a path, and https unless it is this machine")
        return url.origin

    @field_validator("vault_token", "op_token")
    @classmethod
    def _reference(cls, text: str) -> str:
        if not text.startswith(("env:", "file:/")):
            raise ValueError("it is env:NAME or file:/PATH, never the token itself")
        return text

    @classmethod
    def load(cls, home: Path | str | None = None, environ: Mapping[str, str] | None = None) -> Self:
        """The configuration of `home` and of the environment. Raises ConfigError naming the setting that is wrong."""
        settings: dict[str, Any] = {}
        if home is not None:
            settings = _read(Path(home) / FILE)
        for name, value in _from(os.environ if environ is None else environ).items():
            settings[name] = settings.get(name, {}) | value if isinstance(value, dict) else value
        try:
            return validated(cls, settings, "setting", strict=False)
        except InvalidRequest as e:
            unknown = [name for name in settings if name not in cls.model_fields]
            meant = difflib.get_close_matches(unknown[0], cls.model_fields, n=1) if unknown else []
            raise ConfigError(e.message, hint=f"did you mean {meant[0]}?" if meant else None) from None

    def budget_policy(self) -> BudgetPolicy:
        """The budgets that both scopes make: the innermost default, below the lowest ceiling."""
        defaults = innermost((self.budgets, self.user_budgets))
        return BudgetPolicy(defaults, lowest((self.ceilings, self.user_ceilings)))

    def with_weak_isolation(self) -> Self:
        """The same, content with whatever walls the machine has."""
        return self.model_copy(update={"require": "process"})


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        raise ConfigError(f"the home {str(path.parent)!r} is not a directory") from None
    except (OSError, ValueError) as e:
        raise ConfigError(f"{FILE} of the home cannot be read: {e}") from None


def _from(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, field in Config.model_fields.items():
        value = environ.get(f"{PREFIX}{name.upper()}")
        if value is not None:
            found[name] = _split(value) if "tuple" in str(field.annotation) else value
    for table in ("budgets", "ceilings", "user_budgets", "user_ceilings"):
        figures = {name: environ.get(f"{PREFIX}{table}_{name}".upper()) for name in TABLE}
        given = {name: value for name, value in figures.items() if value is not None}
        if given:
            found[table] = given
    return found


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
