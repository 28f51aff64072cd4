"""What the suite drives as a client: the server at the last argument, added as an integration and called by a script.

Prints what a call gave, so that a failure can be understood.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from executor import Config, Executor, ExecutorError

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
KINDS: dict[str, Any] = {"string": "x", "number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}


def example(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that the schema takes: of each property its default, its first value, or one of its type."""
    made = {}
    for name, each in (schema.get("properties") or {}).items():
        kind = each.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        made[name] = each.get("default", (each.get("enum") or [KINDS.get(kind, "x")])[0])
    return made


def filled_in(form: dict[str, Any]) -> dict[str, Any]:
    """What a person fills in who leaves every field alone that may be left alone."""
    return {name: value for name, value in example(form).items() if name in form["required"]}


async def main(url: str) -> None:
    async with Executor.open(config=Config(workers=1, search="words", tool_timeout_s=25)) as ex:
        await ex.add_mcp("suite", url=url, allow_private=["127.0.0.1", "localhost", "::1"])
        await ex.toolbox.add_policy("suite", "*", "approve")
        asked = CONTEXT.get("toolCalls")
        for tool in (await ex.tools(limit=100))["items"]:
            described = await ex.describe(tool["path"], schemas=True)
            name = tool["path"].removeprefix("suite.org.main.")
            # A null that a schema does not allow is refused before it is sent, so what is null is left out.
            given = [
                {key: value for key, value in one["arguments"].items() if value is not None}
                for one in asked or ()
                if one["name"] == name
            ]
            for args in given if asked else [example(described.get("input_schema") or {})]:
                run = await ex.run(
                    "await tools.call(input.path, input.args)", input={"path": tool["path"], "args": args}
                )
                while run.status == "waiting":
                    (one,) = run.interactions
                    run = await ex.resume(run.run_id, one["id"], "approve", filled_in(one["question"]["schema"]))
                print(name, json.dumps(args), run.status, run.result, run.error, file=sys.stderr)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[-1]))
    except ExecutorError as e:
        print(e.as_dict(), file=sys.stderr)
        sys.exit(1)
