"""`executor add`"""

from __future__ import annotations

import shlex
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from executor.cli.credentials import NONE, Credentials
from executor.cli.options import HERE, HERE_VIA, Flag, UsageError, Via, Where, document_source
from executor.cli.session import open_session

Many = Annotated[list[str] | None, Parameter(negative="")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Place:
    """Where an integration goes.

    Parameters
    ----------
    connection
        What the account is called, the third part of the paths.
    scope
        Whose it is, the second part of the paths.
    replace
        Replace an integration of the same name.
    """

    connection: str = "main"
    scope: Literal["org", "user"] = "org"
    replace: Flag = False

    def options(self) -> dict[str, Any]:
        return asdict(self)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reaching(Place):
    """Where an integration goes that reaches out by itself.

    Parameters
    ----------
    allow_private
        A private host, address or network that it may reach, such as 127.0.0.1. May be repeated.
    """

    allow_private: Many = None

    def options(self) -> dict[str, Any]:
        return super().options() | {"allow_private": self.allow_private or []}


THERE: Final = Place()
REACHING: Final = Reaching()


async def openapi(
    source: str,
    /,
    *,
    name: str,
    base_url: str | None = None,
    server: str | None = None,
    variable: Many = None,
    idempotent: Many = None,
    json: Flag = False,
    place: Reaching = REACHING,
    credentials: Credentials = NONE,
    where: Where = HERE,
) -> None:
    """Add an API: each operation of its OpenAPI document becomes a tool.

    Parameters
    ----------
    source
        The document: a file or a URL, JSON or YAML.
    name
        What the integration is called, the first part of its tools' paths.
    base_url
        Where the API is, when the document does not say or is wrong.
    server
        Which of the document's servers is called: its URL or its description.
    variable
        A variable of the server, such as region=eu. May be repeated.
    idempotent
        A pattern over tools that may be called again when nobody knows what became of a call. May be repeated.
    json
        Print the answer as JSON.
    """
    options = place.options() | credentials.options()
    options |= {"source": document_source(source), "base_url": base_url, "server": server}
    options |= {"server_variables": dict(map(_variable, variable or [])), "idempotent": idempotent or []}
    await _add("openapi", name, options, where, json)


async def graphql(
    source: str,
    /,
    *,
    name: str,
    endpoint: str | None = None,
    any_query: Flag = False,
    idempotent: Many = None,
    json: Flag = False,
    place: Reaching = REACHING,
    credentials: Credentials = NONE,
    where: Where = HERE,
) -> None:
    """Add a GraphQL API: each root field of its schema becomes a tool.

    Parameters
    ----------
    source
        The API's endpoint, which is asked for its schema; or, with --endpoint, a file or a URL of the schema: SDL or
        the JSON of an introspection.
    name
        What the integration is called, the first part of its tools' paths.
    endpoint
        Where the API answers, when the source is its schema.
    any_query
        Also add the tool `graphql`, which takes any document within what the other tools may do.
    idempotent
        A pattern over tools that may be called again when nobody knows what became of a call. May be repeated.
    json
        Print the answer as JSON.
    """
    where_from = document_source(source)
    if endpoint is None and not isinstance(where_from, str):
        raise UsageError("a schema does not say where its API is", hint="name it with --endpoint URL")
    options = place.options() | credentials.options() | {"source": where_from, "url": endpoint}
    options |= {"any_query": any_query, "idempotent": idempotent or []}
    await _add("graphql", name, options, where, json)


async def http(
    name: str,
    /,
    *,
    allow: Annotated[list[str], Parameter(negative="")],
    fetch: Flag = False,
    json: Flag = False,
    place: Reaching = REACHING,
    credentials: Credentials = NONE,
    where: Where = HERE,
) -> None:
    """Add plain HTTP requests to exactly the hosts that you allow.

    Parameters
    ----------
    name
        What the integration is called, the first part of its tools' paths.
    allow
        A URL that may be called, such as https://api.example.com/v1. May be repeated.
    fetch
        Let the fetch() of scripts go there too.
    json
        Print the answer as JSON.
    """
    from catalog.origin import BadUrl, parse_reach

    for entry in allow:
        try:
            parse_reach(entry)
        except BadUrl as e:
            raise UsageError(f"{entry!r} cannot be allowed: {e}") from None
    options = place.options() | credentials.options() | {"allow": allow, "fetch": fetch}
    await _add("http", name, options, where, json)


async def mcp(
    name: str,
    *,
    url: str | None = None,
    command: str | None = None,
    arg: Many = None,
    cwd: str | None = None,
    json: Flag = False,
    place: Reaching = REACHING,
    credentials: Credentials = NONE,
    where: Via = HERE_VIA,
) -> None:
    """Add the tools of an MCP server: one at a URL, or a program of this machine.

    Parameters
    ----------
    name
        What the integration is called, the first part of its tools' paths.
    url
        Where the server is (streamable HTTP), such as https://mcp.example.com/mcp.
    command
        The program, with arguments in quotes: "npx -y @modelcontextprotocol/server-memory". No shell runs it.
    arg
        An argument of the program exactly as it is, such as --arg=-y; the command is not split then. May be repeated.
    cwd
        The folder that the program runs in.
    json
        Print the answer as JSON.
    """
    options = place.options() | credentials.options()
    options |= {"url": url, "command": _command(command, arg), "cwd": cwd}
    await _add("mcp", name, options, where, json)


def _command(command: str | None, arguments: list[str] | None) -> list[str] | None:
    if command is None:
        if arguments:
            raise UsageError("--arg is an argument of a --command")
        return None
    if arguments:
        return [command, *arguments]
    try:
        return shlex.split(command)
    except ValueError as e:
        raise UsageError(
            f"the command cannot be split: {e}", hint="give each argument as an --arg of its own"
        ) from None


async def npm(
    package: str,
    /,
    *,
    name: str,
    json: Flag = False,
    place: Place = THERE,
    credentials: Credentials = NONE,
    where: Via = HERE_VIA,
) -> None:
    """Add an npm package: each tool that it exports becomes one here. Its environment is what --env and --set name.

    Parameters
    ----------
    package
        The package, with @ and a version, a range or a dist-tag behind it where it is not the latest.
    name
        What the integration is called, the first part of its tools' paths.
    json
        Print the answer as JSON.
    """
    at = package.rfind("@")
    asked, version = (package[:at], package[at + 1 :]) if at > 0 else (package, "latest")
    options = place.options() | credentials.options() | {"package": asked, "version": version}
    await _add("npm", name, options, where, json)


async def _add(kind: str, name: str, options: dict[str, Any], where: Where, json: bool) -> None:
    async with open_session(where, learns=True) as session:
        report = await session.add(kind, name, **options)
    _show(report, json)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"{text!r} is not a variable", hint="write it like region=eu")
    return name, value


def _show(report: dict[str, Any], as_json: bool) -> None:
    from rich.text import Text

    from executor.cli import output

    if as_json:
        output.print_json(report)
        return
    tools = report["tools"]
    output.out.print(
        Text.assemble(
            ("✔ ", "good"), "added ", (report["name"], "strong"), f": {len(tools)} tool{'s' if len(tools) != 1 else ''}"
        )
    )
    for path in tools[:8]:
        output.out.print(Text(f"  {path}", style="name"))
    if len(tools) > 8:
        output.out.print(
            Text(f"  … and {len(tools) - 8} more: executor tools list --integration {report['name']}", style="quiet")
        )
    if any(place.startswith("stdio:") for place in report.get("origins") or ()):
        output.out.print(Text("  runs a program with your rights: it can do whatever you can", style="odd"))
    elif report.get("origins"):
        output.out.print(Text(f"  may reach {', '.join(report['origins'])}", style="quiet"))
    if report.get("private"):
        output.out.print(Text(f"  private addresses allowed: {', '.join(report['private'])}", style="odd"))
    for each in (report.get("diagnostics") or [])[:10]:
        place, message = (each["where"], each["message"]) if isinstance(each, dict) else (each[0], each[1])
        if place in ("oauth", "secret"):
            output.out.print(Text.assemble(("  ! ", "odd"), message))
            continue
        output.out.print(Text.assemble(("  note ", "odd"), (place, "quiet"), f" {message}"))
