"""Scripts against a forge of source code: lists in pages, issues, uploads to another host, raw text and bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
import yaml

from executor import Executor
from tests.unit.upstream import Seen, Upstream, response, upstream

pytestmark = pytest.mark.anyio

DOCUMENT = Path(__file__).parent.parent / "data" / "forge.yaml"
TOKEN = "forge-token-of-a-person"


class Forge:
    """The forge, with what it keeps. It knows one repository, `ada/engine`."""

    def __init__(self, base: str) -> None:
        self._base = base
        self.issues: list[dict[str, Any]] = []

    async def __call__(self, seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if seen.header("authorization") != f"Bearer {TOKEN}":
            writer.write(response({"message": "Bad credentials"}, status=401))
            return
        path, _, query = seen.target.partition("?")
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        parts = [unquote(part) for part in path.split("/")[1:]]
        if parts == ["markdown", "raw"]:
            kind = seen.header("content-type") or ""
            writer.write(
                response(f"<p>{kind}: {seen.body.decode()}</p>".encode(), headers={"content-type": "text/html"})
            )
        elif parts[:3] != ["repos", "ada", "engine"]:
            writer.write(response({"message": "Not Found", "documentation_url": "https://docs"}, status=404))
        elif parts[3] == "contents":
            data = f"{parts[4]} at {asked.get('ref', 'main')}".encode() + b"\x00\xff"
            writer.write(response(data, headers={"content-type": "application/octet-stream"}))
        else:
            writer.write(self._issues(seen, parts[4:], asked))

    def _issues(self, seen: Seen, rest: list[str], asked: dict[str, str]) -> bytes:
        if seen.method == "GET" and not rest:
            return self._page(seen.target.partition("?")[0], asked)
        if seen.method == "POST":
            given = json.loads(seen.body)
            if not str(given["title"]).strip():
                errors = [{"field": "title", "code": "missing"}]
                return response({"message": "Validation Failed", "errors": errors}, status=422)
            issue = {"number": len(self.issues) + 1, "state": "open", "body": None, "milestone": None} | given
            self.issues.append(issue)
            return response(issue, status=201)
        issue = self.issues[int(rest[0]) - 1]
        if seen.method == "PATCH":
            issue |= json.loads(seen.body)
        return response(issue)

    def _page(self, path: str, asked: dict[str, str]) -> bytes:
        size, page = int(asked.get("per_page", 30)), int(asked.get("page", 1))
        state = asked.get("state", "open")
        found = [one for one in self.issues if state in (one["state"], "all")]
        shown = found[(page - 1) * size : page * size]
        following = f"{self._base}{path}?per_page={size}&page={page + 1}&state={state}"
        headers = {"link": f'<{following}>; rel="next"'} if page * size < len(found) else {}
        return response(shown, headers=headers)


@asynccontextmanager
async def forge(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Executor, Forge, Upstream]]:
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    async with upstream() as api, upstream() as uploads, Executor.open() as ex:

        async def stored(seen: Seen, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(response({"name": seen.target.partition("name=")[2], "size": len(seen.body)}, status=201))

        api.answers["*"], uploads.answers["*"] = (served := Forge(api.base)), stored
        text = DOCUMENT.read_text().replace("https://api.forge.test", api.base)
        described = yaml.safe_load(text.replace("https://uploads.forge.test", uploads.base))
        report = await ex.add_openapi("forge", described, secret="env:FORGE_TOKEN", allow_private=["127.0.0.1"])
        assert report.diagnostics == []
        assert set(report.origins) == {api.base, uploads.base}
        await ex.toolbox.add_policy("forge", "*", "approve")
        yield ex, served, uploads


async def said(ex: Executor, code: str) -> Any:
    return (
        await ex.run("const forge = tools.forge.org.main;\nconst at = { owner: 'ada', repo: 'engine' };\n" + code)
    ).unwrap()


async def test_a_script_files_finds_and_closes_issues(monkeypatch: pytest.MonkeyPatch) -> None:
    async with forge(monkeypatch) as (ex, served, _):
        result = await said(
            ex,
            """
            for (let n = 1; n <= 7; n++) {
                await forge.issues.create({ ...at, body: { title: `Tooth ${n} & gear`, body: "naïve\\nlines",
                    labels: n % 2 ? ["odd"] : [{ name: "even", color: null }], milestone: null } });
            }
            const numeric = await forge.issues.create({ ...at, title: 8 });
            const closed = await forge.issues.update({ ...at, issue_number: 3, body: { state: "closed" } });
            const open = [];
            for await (const one of tools.paginate("forge.org.main.issues.listForRepo", { ...at, per_page: 3 }))
                open.push(one.number);
            const all = await forge.issues.listForRepo({ ...at, state: "all", per_page: 100 });
            const third = await forge.issues.get({ ...at, issue_number: 3 });
            return { closed: closed.state, numeric: numeric.title, open, all: all.length, third }
            """,
        )
        assert (result["closed"], result["numeric"]) == ("closed", 8)
        assert result["open"] == [1, 2, 4, 5, 6, 7, 8]
        assert result["all"] == 8
        assert result["third"]["labels"] == ["odd"]
        assert served.issues[3]["labels"] == [{"name": "even", "color": None}]
        assert served.issues[0]["milestone"] is None


async def test_a_script_reads_bytes_sends_text_and_uploads_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async with forge(monkeypatch) as (ex, _, uploads):
        result = await said(
            ex,
            """
            const file = await forge.repos.getContent({ ...at, path: "src/main.c", ref: "v1/é" });
            const plain = await forge.markdown.renderRaw({ body: "*hi*" });
            const marked = await forge.markdown.renderRaw({ body: "*hi*", content_type: "text/x-markdown" });
            const asset = await forge.repos.uploadReleaseAsset({ ...at, release_id: 1, name: "a b.bin",
                body: new Uint8Array([0, 255, 10]) });
            const head = new TextDecoder().decode(file.slice(0, -2));
            return { head, tail: [...file.slice(-2)], plain, marked, asset }
            """,
        )
        assert result["head"] == "src/main.c at v1/é"
        assert result["tail"] == [0, 255]
        assert result["plain"] == "<p>text/plain: *hi*</p>"
        assert result["marked"] == "<p>text/x-markdown: *hi*</p>"
        assert result["asset"] == {"name": "a%20b.bin", "size": 3}
        assert uploads.seen[0].body == b"\x00\xff\n"
        assert uploads.seen[0].header("content-type") == "application/octet-stream"


async def test_a_script_is_told_what_the_forge_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    async with forge(monkeypatch) as (ex, _, _uploads):
        result = await said(
            ex,
            """
            const why = async call => { try { await call } catch (e) { return [e.code, e.message] } };
            return [
                await why(forge.issues.create({ ...at, body: { title: " " } })),
                await why(forge.issues.get({ owner: "ada", repo: "gone", issue_number: 1 })),
                await why(forge.issues.get({ ...at, issue_number: "one" })),
                await why(forge.issues.update({ ...at, issue_number: 1, body: { state: "shut" } })),
                await why(forge.issues.listForRepo({ ...at, pages: 1 })),
                await why(forge.repos.getContent({ ...at, path: ".." })),
            ]
            """,
        )
        assert [code for code, _ in result] == ["upstream_error"] * 2 + ["invalid_arguments"] * 4
        assert "Validation Failed" in result[0][1]
        assert "Not Found" in result[1][1]
        assert "issue_number" in result[2][1]
        assert "open" in result[3][1]
        assert "page" in result[4][1]
        assert "another operation" in result[5][1]
