"""Runs: start one, look at it, follow it, stop it, read what it left."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bridge.wire.errors import InvalidRequest, NotFound, RangeNotSatisfiable
from executor.http import schemas
from executor.http.answers import json_answer
from executor.http.operation import Answer, Call, Operation
from executor.http.presence import while_present
from executor.http.routes.within import within
from executor.http.sse import EventStream
from runtime.results import StoredResult

if TYPE_CHECKING:
    from executor.executor import Executor

Read = Callable[[int, int], Awaitable[StoredResult]]
"""Reads so many bytes of a stored document from an offset on."""
SLICE_BYTES: Final = 1024 * 1024
_RUN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_IDEMPOTENCY_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")


def run_id_of(call: Call) -> str:
    run_id = call.params["run_id"]
    if not _RUN_ID.fullmatch(run_id):
        raise NotFound("there is no such run")
    return run_id


class Runs:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor

    async def start(self, call: Call) -> Response:
        body: schemas.RunRequest = call.body
        key = call.header(b"idempotency-key")
        if key is not None and not _IDEMPOTENCY_KEY.fullmatch(key):
            raise InvalidRequest("Idempotency-Key must be 1 to 200 visible ASCII characters")
        answer = await while_present(
            call.receive,
            within(self.executor, call).run(
                body.code,
                language=body.language if "language" in body.model_fields_set else None,
                input=call.value(body.input),
                budgets=body.budgets or None,
                toolkit=body.toolkit,
                labels=body.labels or None,
                wait=body.wait,
                isolation=body.isolation,
                principal=call.principal,
                idempotency_key=key,
            ),
        )
        if answer.ended or answer.status == "waiting":
            return json_answer(answer.as_dict())
        return json_answer(answer.as_dict(), 202, {"location": f"/runs/{answer.run_id}"})

    async def index(self, call: Call) -> Response:
        query: schemas.RunsQuery = call.query
        page = await self.executor.list_runs(
            status=query.status,
            label=query.label,
            limit=query.limit,
            cursor=query.cursor,
            principal=None if call.access.allows("read") else call.principal,
        )
        return json_answer(page.as_dict())

    async def show(self, call: Call) -> Response:
        record = await self.executor.get_run(await self._seen(call))
        return json_answer(record.as_dict())

    async def cancel(self, call: Call) -> Response:
        record = await self.executor.cancel_run(await self._seen(call))
        return json_answer(record.as_dict())

    async def resume(self, call: Call) -> Response:
        body: schemas.ResumeRequest = call.body
        record = await while_present(
            call.receive,
            self.executor.resume(
                await self._seen(call),
                body.interaction,
                body.action,
                body.content,
                wait=body.wait,
                principal=call.principal,
            ),
        )
        return json_answer(record.as_dict())

    async def replay(self, call: Call) -> Response:
        report = await while_present(call.receive, self.executor.replay_run(await self._seen(call)))
        return json_answer(report.as_dict())

    async def events(self, call: Call) -> EventStream:
        run_id = await self._seen(call)
        query: schemas.EventsQuery = call.query
        after = query.after
        last_id = call.header(b"last-event-id")
        if last_id is not None:
            if not (last_id.isascii() and last_id.isdigit() and len(last_id) < 16):
                raise InvalidRequest("Last-Event-ID must be the id of an event of this run, a whole number")
            after = int(last_id)
        await self.executor.get_run(run_id)
        return EventStream(self.executor.events(run_id, after=after or 0))

    async def result(self, call: Call) -> ResultStream:
        run_id = await self._seen(call)
        query: schemas.SliceQuery = call.query

        async def read(offset: int, length: int) -> StoredResult:
            part: StoredResult = await self.executor.run_result(run_id, offset=offset, length=length)
            return part

        return await ResultStream.open(read, query.offset, query.length)

    async def handle(self, call: Call) -> ResultStream:
        id, principal = call.params["id"], call.principal
        query: schemas.SliceQuery = call.query

        async def read(offset: int, length: int) -> StoredResult:
            return await self.executor.read_result(id, offset=offset, length=length, principal=principal)

        return await ResultStream.open(read, query.offset, query.length)

    async def _seen(self, call: Call) -> str:
        """The id of the run that is asked for. Raises NotFound, for one that this key may not see too."""
        run_id = run_id_of(call)
        if not call.access.allows("read"):
            record = await self.executor.get_run(run_id)
            if record.principal != call.principal:
                raise NotFound("there is no such run", hint="`GET /runs` lists the runs that are kept")
        return run_id

    def operations(self) -> list[Operation]:
        run = Answer("The run as recorded.", schemas.RunFacts)
        return [
            Operation(
                "startRun",
                "POST",
                "/run",
                "Run a script",
                self.start,
                {
                    200: Answer(
                        "The run has ended (a script that failed is an answer too), or waits for a person.",
                        schemas.RunAnswer,
                    ),
                    202: Answer("The run is recorded and goes on (`wait: false`).", schemas.RunAnswer),
                },
                (409, 503, 507),
                body=schemas.RunRequest,
                needs=("run",),
                headers={
                    "Idempotency-Key": {
                        "description": "The same key with the same request gives the run that exists already.",
                        "schema": {"type": "string", "pattern": "^[!-~]{1,200}$"},
                    }
                },
                description="A client that disconnects while it waits cancels its run.",
            ),
            Operation(
                "listRuns",
                "GET",
                "/runs",
                "List runs, newest first",
                self.index,
                {200: Answer("A page of runs.", schemas.RunList)},
                query=schemas.RunsQuery,
                needs=(),
            ),
            Operation("getRun", "GET", "/runs/{run_id}", "Look at a run", self.show, {200: run}, (404,), needs=()),
            Operation(
                "followRun",
                "GET",
                "/runs/{run_id}/events",
                "Follow a run",
                self.events,
                {
                    200: Answer(
                        "Events `status`, `log`, `emit`, `call` and, last, `result`.", media_type="text/event-stream"
                    )
                },
                (404,),
                query=schemas.EventsQuery,
                needs=(),
                headers={
                    "Last-Event-ID": {
                        "description": "Resume after this event.",
                        "schema": {"type": "string", "pattern": "^[0-9]{1,15}$"},
                    }
                },
            ),
            Operation(
                "cancelRun",
                "POST",
                "/runs/{run_id}/cancel",
                "Cancel a run",
                self.cancel,
                {200: run},
                (404, 409),
                needs=("run", "admin"),
                description="Answers when the run has ended. A run that had ended stays as it is.",
            ),
            Operation(
                "resumeRun",
                "POST",
                "/runs/{run_id}/resume",
                "Answer a call that waits for a person",
                self.resume,
                {200: run},
                (404, 409),
                body=schemas.ResumeRequest,
                description=(
                    "Answers when the run has ended or waits again. The same answer again gives the same outcome; "
                    "another one is a conflict: `already_decided`, `approval_expired`, `approval_void`. Where it takes "
                    "another's approval, that of the key whose run it is is refused: `own_approval`."
                ),
            ),
            Operation(
                "replayRun",
                "POST",
                "/runs/{run_id}/replay",
                "Replay a run from its journal",
                self.replay,
                {200: Answer("What the replay did, compared with the run.", schemas.ReplayAnswer)},
                (404, 409, 503),
                needs=("run", "admin"),
                description="Does a run that has ended again, without a call outside, and names the first difference.",
            ),
            Operation(
                "readHandle",
                "GET",
                "/results/{id}",
                "Read what a handle stands for, or a part of it",
                self.handle,
                {
                    200: Answer("The whole JSON document."),
                    206: Answer(
                        "The bytes asked for; `Content-Range` says which.", media_type="application/octet-stream"
                    ),
                },
                (404, 416),
                query=schemas.SliceQuery,
                needs=(),
                description="Only the key that started the run can read it.",
            ),
            Operation(
                "readResult",
                "GET",
                "/runs/{run_id}/result",
                "Read a run's whole result, or a part of it",
                self.result,
                {
                    200: Answer("The whole JSON document."),
                    206: Answer(
                        "The bytes asked for; `Content-Range` says which.", media_type="application/octet-stream"
                    ),
                },
                (404, 409, 416),
                query=schemas.SliceQuery,
                needs=(),
            ),
        ]


class ResultStream:
    """An ASGI answer that sends bytes `offset` to `end` of a result's JSON document, a slice at a time."""

    def __init__(self, read: Read, first: bytes, offset: int, end: int, total: int) -> None:
        self._read = read
        self._first = first
        self._offset = offset
        self._end = end
        self._total = total

    @classmethod
    async def open(cls, read: Read, offset: int, length: int | None) -> ResultStream:
        """Raises NotFound, Conflict (no result) and RangeNotSatisfiable (beyond the end)."""
        first = await read(offset, min(length or SLICE_BYTES, SLICE_BYTES))
        if offset >= first.total:
            raise RangeNotSatisfiable(
                f"the result has {first.total} bytes", total=first.total, hint="offset counts from 0"
            )
        end = first.total if length is None else min(first.total, offset + length)
        return cls(read, first.data, offset, end, first.total)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        whole = self._offset == 0 and self._end == self._total
        headers = [
            (b"content-type", b"application/json" if whole else b"application/octet-stream"),
            (b"content-length", str(self._end - self._offset).encode()),
        ]
        if not whole:
            headers.append((b"content-range", f"bytes {self._offset}-{self._end - 1}/{self._total}".encode()))
        await send({"type": "http.response.start", "status": 200 if whole else 206, "headers": headers})
        data, at = self._first, self._offset
        while scope["method"] != "HEAD":
            at += len(data)
            await send({"type": "http.response.body", "body": data, "more_body": at < self._end})
            if at >= self._end:
                return
            part = await self._read(at, min(SLICE_BYTES, self._end - at))
            data = part.data
        await send({"type": "http.response.body", "body": b""})
