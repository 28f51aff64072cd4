"""The pages about the doors mention every operation, command, option and code."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

import executor
from bridge.secrets.references import PROVIDERS
from bridge.wire.errors import RequestRefused, ToolErrorCode
from executor.cli.app import _COMMANDS
from executor.cli.commands.add import Reaching
from executor.cli.credentials import Credentials
from executor.config import Config
from executor.http.app import operations_of
from executor.http.metrics import Metrics
from runtime.results import EventType

DOCS = Path(__file__).parents[2] / "docs"
HTTP = (DOCS / "http.md").read_text()
CLI = (DOCS / "cli.md").read_text()
SECRETS = (DOCS / "secrets.md").read_text()
SDK = (DOCS / "sdk.md").read_text()
ERRORS = (DOCS / "errors.md").read_text()


def _commands() -> list[tuple[str, str]]:
    return [
        (f"executor {group} {name}".replace("  ", " "), path)
        for group, commands in _COMMANDS.items()
        for name, (path, _) in commands.items()
    ]


def test_every_operation_is_on_the_page() -> None:
    nobody = SimpleNamespace(toolbox=None, keys=None)
    for operation in operations_of(nobody, Metrics()):  # type: ignore[arg-type]
        assert f"`{operation.method} {operation.path}`" in HTTP, operation.id


def test_every_option_that_several_commands_share_is_on_the_page() -> None:
    for each in (*fields(Credentials), *fields(Reaching)):
        assert f"`--{each.name.replace('_', '-')}`" in CLI, each.name


def test_every_kind_of_reference_and_setting_is_on_the_page() -> None:
    for provider in PROVIDERS:
        assert f"`{provider}:" in SECRETS, provider
    for setting in ("vault_", "op_", "secret", "http_references"):
        for name in Config.model_fields:
            if name.startswith(setting):
                assert f"`{name}`" in SECRETS, name


def _refusals(base: type[RequestRefused]) -> set[str]:
    return {base.code}.union(*(_refusals(each) for each in base.__subclasses__()))


def test_every_code_is_on_the_page() -> None:
    for code in sorted(_refusals(RequestRefused) | set(get_args(ToolErrorCode))):
        assert f"`{code}`" in HTTP, code


def test_every_method_of_the_sdk_is_on_the_page() -> None:
    for name in dir(executor.Executor):
        if not name.startswith("_"):
            assert f"`{name}`" in SDK or f"Executor.{name}(" in SDK, name


def test_every_class_of_an_error_is_public() -> None:
    named = re.findall(r"^\| `\w+` \| \d+ \| `(\w+)` \|", ERRORS, re.MULTILINE)
    assert len(named) > 10
    for name in named:
        assert issubclass(getattr(executor, name), executor.RequestRefused), name


def test_every_event_is_on_the_page() -> None:
    for event in get_args(EventType):
        assert f"`{event}`" in HTTP, event


@pytest.mark.parametrize(("command", "path"), _commands())
def test_every_command_and_option_is_on_the_page(command: str, path: str) -> None:
    assert f"`{command}`" in CLI or f"`{command} " in CLI or f"\n{command} " in CLI, command
    module, _, name = path.partition(":")
    function = getattr(import_module(f"executor.cli.commands.{module}"), name)
    for parameter in inspect.signature(function).parameters.values():
        group = is_dataclass(parameter.default)
        options = [one.name for one in fields(parameter.default)] if group else [parameter.name]
        for option in options if parameter.kind is parameter.KEYWORD_ONLY else ():
            assert f"--{option.replace('_', '-')}" in CLI, (command, option)
        if parameter.kind is not parameter.KEYWORD_ONLY:
            assert parameter.name in (function.__doc__ or ""), (command, parameter.name)
