"""A small issue tracker over GraphQL: graphql-core behind Starlette, on a thread of this process."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from graphql import GraphQLError, GraphQLObjectType, build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from executor.http.server import Server

TOKEN = "tracker-token-0123456789"
SDL = '''
"""Issues and who has them."""
schema { query: Query, mutation: Mutation, subscription: Subscription }

scalar DateTime
scalar Labels

enum State { OPEN CLOSED }

interface Node { id: ID! }
union Found = Issue | User

type User implements Node { id: ID!, login: String!, email: String, issues(first: Int!): [Issue!]! }

type Issue implements Node {
  id: ID!
  number: Int!
  "What it is about."
  title: String!
  state: State!
  labels: Labels
  author: User
  parent: Issue
  children: [Issue!]!
  createdAt: DateTime!
  old: String @deprecated(reason: "gone")
  body(format: String = "text"): String
  comments(first: Int!, author: ID): [String!]!
}

type PageInfo { hasNextPage: Boolean!, endCursor: String }
type IssueEdge { cursor: String!, node: Issue }
type IssueConnection { edges: [IssueEdge], nodes: [Issue!]!, pageInfo: PageInfo!, totalCount: Int! }

input Between { from: Int, to: Int, also: Between }
input IssueFilter { state: State, number: Between, labels: Labels, any: [IssueFilter!] }
input CreateIssueInput { title: String!, body: String, state: State! = OPEN }
input Which @oneOf { id: ID, number: Int }

type CreateIssuePayload { issue: Issue, userErrors: [UserError!]! }
type UserError { field: [String!], message: String! }

type Query {
  viewer: User!
  "One issue by its id."
  issue(id: ID!): Issue
  which(by: Which!): Issue
  issues(first: Int! = 2, after: String, filter: IssueFilter): IssueConnection!
  find(text: String!): [Found!]!
  node(id: ID!): Node
  echo(select: String, when: DateTime): String
  parts: [Issue]
}

type Mutation {
  createIssue(input: CreateIssueInput!): CreateIssuePayload!
  closeIssue(id: ID!): Issue
  deleteIssue(id: ID!): Boolean!
}

type Subscription { changed: Issue }
'''


class Tracker:
    """The tracker's state, and every request that it got: `{query, variables, operationName?}`."""

    def __init__(self) -> None:
        self.schema = build_schema(SDL)
        self.url = ""
        self.reset()
        _resolve_types(self.schema)

    def reset(self) -> None:
        self.requests: list[Any] = []
        self.authorizations: list[str | None] = []
        self.introspection = True
        self.answer: Response | None = None
        self.issues = [_issue(number, f"Issue {number}") for number in (1, 2, 3)]

    def queries(self) -> list[str]:
        return [one["query"] for one in self.requests]

    async def respond(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.requests.append(body)
        self.authorizations.append(request.headers.get("authorization"))
        if self.answer is not None:
            return self.answer
        if not self.introspection and "__schema" in body["query"]:
            return JSONResponse({"errors": [{"message": "GraphQL introspection is not allowed"}]}, 400)
        result = graphql_sync(self.schema, body["query"], self, None, body.get("variables"), body.get("operationName"))
        return JSONResponse(result.formatted, 200 if result.data is not None or not result.errors else 400)

    # Resolvers: graphql-core calls what the root value has under a field's name.

    def viewer(self, info: Any) -> dict[str, Any]:
        return _user("ann")

    def issue(self, info: Any, id: str) -> dict[str, Any]:
        for one in self.issues:
            if one["id"] == id:
                return one
        raise GraphQLError(f"There is no issue {id}.", extensions={"code": "NOT_FOUND"})

    def which(self, info: Any, by: dict[str, Any]) -> dict[str, Any]:
        return self.issue(info, by["id"] if "id" in by else f"i{by['number']}")

    def issues_(self, info: Any, first: int, after: str | None = None, filter: Any = None) -> dict[str, Any]:
        chosen = [one for one in self.issues if not filter or filter.get("state") in (None, one["state"])]
        at = int(after) if after else 0
        nodes = chosen[at : at + first]
        more = at + first < len(chosen)
        edges = [{"cursor": str(at + place + 1), "node": one} for place, one in enumerate(nodes)]
        page = {"hasNextPage": more, "endCursor": str(at + first) if more else None}
        return {"nodes": nodes, "edges": edges, "pageInfo": page, "totalCount": len(chosen)}

    def find(self, info: Any, text: str) -> list[Any]:
        return [*(one for one in self.issues if text in one["title"]), _user(text)]

    def node(self, info: Any, id: str) -> Any:
        return _user(id[1:]) if id.startswith("u") else self.issue(info, id)

    def echo(self, info: Any, select: str | None = None, when: Any = None) -> str:
        return json.dumps([select, when])

    def parts(self, info: Any) -> list[Any]:
        return [self.issues[0], GraphQLError("This one cannot be read.", extensions={"code": "BROKEN"})]

    def createIssue(self, info: Any, input: dict[str, Any]) -> dict[str, Any]:
        if not input["title"]:
            return {"issue": None, "userErrors": [{"field": ["title"], "message": "It is empty."}]}
        self.issues.append(_issue(len(self.issues) + 1, input["title"]) | {"state": input["state"]})
        return {"issue": self.issues[-1], "userErrors": []}

    def closeIssue(self, info: Any, id: str) -> dict[str, Any]:
        return self.issue(info, id) | {"state": "CLOSED"}

    def deleteIssue(self, info: Any, id: str) -> bool:
        self.issues = [one for one in self.issues if one["id"] != id]
        return True


def _issue(number: int, title: str) -> dict[str, Any]:
    return {
        "__typename": "Issue",
        "id": f"i{number}",
        "number": number,
        "title": title,
        "state": "OPEN",
        "labels": {"color": ["red", number]},
        "author": _user("ann"),
        "children": [],
        "createdAt": "2026-01-01T00:00:00Z",
        "comments": lambda info, first, author=None: [f"comment {one}" for one in range(first)],
        "body": lambda info, format: f"as {format}",
    }


def _user(login: str) -> dict[str, Any]:
    return {"__typename": "User", "id": f"u{login}", "login": login, "email": None}


def _resolve_types(schema: Any) -> None:
    for name in ("Node", "Found"):
        schema.type_map[name].resolve_type = lambda value, *_: value["__typename"]
    root = schema.query_type
    assert isinstance(root, GraphQLObjectType)
    root.fields["issues"].resolve = lambda tracker, info, **args: tracker.issues_(info, **args)


@contextmanager
def tracker_running() -> Iterator[Tracker]:
    tracker = Tracker()
    app = Starlette(routes=[Route("/graphql", tracker.respond, methods=["POST"])])
    loop = asyncio.new_event_loop()
    server = Server(app, host="127.0.0.1", port=0, max_body=2**22)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        tracker.url = f"http://127.0.0.1:{server.port}/graphql"
        yield tracker
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
