"""`tools`: attribute paths that are called, the call as a future that is also its value, and ToolError."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from typing import Any, NoReturn

from . import state, wire

_FIELDS = ("code", "message", "path", "retryable", "hint", "details", "status", "retry_after_ms")
_HINT = "tools is not a list of tools: use tools.search(query), then call tools.<path>(…)"


class ToolError(Exception):
    """Raised when a tool call fails: code, message, path, retryable, hint, details, status, retry_after_ms say how."""

    def __init__(self, message: Any = "", **fields: Any) -> None:
        super().__init__(message)
        self.code = fields.get("code", "internal")
        self.message = message
        self.path = fields.get("path")
        self.retryable = bool(fields.get("retryable"))
        self.hint = fields.get("hint")
        self.details = fields.get("details")
        self.status = fields.get("status")
        self.retry_after_ms = fields.get("retry_after_ms")

    def __repr__(self) -> str:
        return f"ToolError({self.code}: {self.message})"


def failed(fields: Any) -> ToolError:
    """The ToolError of an answer that was not ok."""
    known = {name: fields[name] for name in _FIELDS if name in fields} if isinstance(fields, dict) else {}
    return ToolError(known.pop("message", "the call failed"), **known)


class ToolCall(asyncio.Future):
    """A call on its way. `await` gives its value; so does using it, which waits right there.

    In a script without `async` and `await` a call gives its value at once, and nobody meets this class.
    """

    def wait(self) -> Any:
        """The value, waited for in place. Raises ToolError."""
        if not self.done():
            state.loop.wait_for(self)
        return asyncio.Future.result(self)

    def result(self) -> Any:
        return self.wait()

    def __await__(self) -> Generator[Any, None, Any]:
        return super().__await__()

    __iter__ = __await__

    def __repr__(self) -> str:
        return repr(self.wait())

    def __str__(self) -> str:
        return str(self.wait())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.wait(), name)

    def __hash__(self) -> int:
        return id(self) >> 4


class _Values:
    """How a ToolCall behaves like its value: each special method asks the value."""

    @staticmethod
    def install() -> None:
        one = [
            "getitem",
            "contains",
            "lt",
            "le",
            "gt",
            "ge",
            "add",
            "sub",
            "mul",
            "truediv",
            "floordiv",
            "mod",
            "pow",
            "and",
            "or",
            "xor",
        ]
        for name in one:
            setattr(ToolCall, f"__{name}__", _forward(f"__{name}__"))
        for name in ["radd", "rsub", "rmul", "rtruediv", "rfloordiv", "rmod", "rpow", "rand", "ror", "rxor"]:
            setattr(ToolCall, f"__{name}__", _reflected(f"__{name[1:]}__"))
        for name in ("len", "bool", "int", "float", "index", "neg", "abs", "reversed", "format", "setitem", "delitem"):
            setattr(ToolCall, f"__{name}__", _function(name))
        ToolCall.__eq__ = lambda self, other: self is other or self.wait() == _value(other)
        ToolCall.__iter__ = lambda self: iter(self.wait())


def _value(thing: Any) -> Any:
    return thing.wait() if isinstance(thing, ToolCall) else thing


def _forward(name: str) -> Any:
    import operator

    function = operator.contains if name == "__contains__" else getattr(operator, name)
    return lambda self, other: function(self.wait(), _value(other))


def _reflected(name: str) -> Any:
    import operator

    function = getattr(operator, name)
    return lambda self, other: function(other, self.wait())


def _function(name: str) -> Any:
    import builtins
    import operator

    function = getattr(builtins, name, None) or getattr(operator, name)
    return lambda self, *rest: function(self.wait(), *rest)


class ToolPath:
    """A tool by its path, as far as it has been spelled out. Nothing is looked up before it is called."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        object.__setattr__(self, "_path", path)

    def __getattr__(self, name: str) -> ToolPath:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        path: str = self._path
        return ToolPath(f"{path}.{name}" if path else name)

    def __getitem__(self, name: str) -> ToolPath:
        if not isinstance(name, str):
            raise TypeError(_HINT)
        return ToolPath(f"{self._path}.{name}" if self._path else name)

    def __call__(self, *args: Any, **named: Any) -> Any:
        if not self._path:
            raise TypeError("tools itself cannot be called: name a tool, such as tools.<path>(…)")
        return call(self._path, _arguments(self._path, args, named))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError("tools cannot be changed")

    def __iter__(self) -> Iterator[Any]:
        raise TypeError(_HINT)

    def __len__(self) -> int:
        raise TypeError(_HINT)

    def __contains__(self, name: object) -> bool:
        raise TypeError(_HINT)

    def __bool__(self) -> bool:
        return True

    def __await__(self) -> Generator[Any, None, Any]:
        raise TypeError(f"tools.{self._path} is a tool, not a call: write tools.{self._path}(…)")

    def __repr__(self) -> str:
        return f"<tools.{self._path}>" if self._path else "<tools>"


class Pages:
    """The items of a list, page after page, for `async for` and for `for`. Each page is a call like any other."""

    def __init__(
        self, path: str, args: dict[str, Any], items: str | None, limit: int | None, pages: int | None
    ) -> None:
        self._path = path
        self._args = args
        self._items = items
        self._limit = limit
        self._pages = pages

    def __await__(self) -> Generator[Any, None, Pages]:
        """Nothing is to be waited for yet: `await` before it, as before any other tool, does no harm."""
        return self
        yield

    def _page(self, args: dict[str, Any]) -> Any:
        asked = {"path": self._path, "args": args}
        return call("$page", asked if self._items is None else {**asked, "items": self._items})

    def __iter__(self) -> Iterator[Any]:
        args: dict[str, Any] | None = self._args
        left, pages = self._limit, self._pages
        while args is not None and pages != 0:
            page = _value(self._page(args))
            for item in page["items"]:
                yield item
                if left is not None and (left := left - 1) == 0:
                    return
            args, pages = page["next"], None if pages is None else pages - 1

    async def __aiter__(self) -> AsyncIterator[Any]:
        args: dict[str, Any] | None = self._args
        left, pages = self._limit, self._pages
        while args is not None and pages != 0:
            page = self._page(args)
            page = await page if isinstance(page, ToolCall) else page
            for item in page["items"]:
                yield item
                if left is not None and (left := left - 1) == 0:
                    return
            args, pages = page["next"], None if pages is None else pages - 1


class Tools(ToolPath):
    """The root: `search`, `describe`, `call` and `paginate` are its own; every other name begins a path."""

    __slots__ = ()

    def search(self, query: str = "", *args: Any, **options: Any) -> Any:
        """Ranked tools for a few words: {items, total, next}. Options: limit, cursor, integration."""
        return call("$search", {"query": query, **_arguments("search", args, options)})

    def describe(self, path: Any) -> Any:
        """Signature and documentation of the tool at `path`."""
        return call("$describe", {"path": path._path if isinstance(path, ToolPath) else path})

    def call(self, path: Any, args: Any = None, *, meta: bool = False, **named: Any) -> Any:
        """Call the tool at `path`; with `meta`, {value, http: {status, headers}}."""
        if isinstance(args, dict) and set(args) == {"meta"} and not named and args["meta"] is True:
            raise TypeError("meta is a keyword argument: tools.call(path, args, meta=True)")
        where = path._path if isinstance(path, ToolPath) else path
        if not isinstance(where, str):
            raise TypeError("the path of a tool is a str")
        return call(where, _arguments(where, () if args is None else (args,), named), meta)

    def paginate(
        self,
        path: Any,
        args: Mapping[str, Any] | None = None,
        *,
        limit: int | None = None,
        pages: int | None = None,
        items: str | None = None,
    ) -> Pages:
        """Every item of a list that comes in pages: at most `limit`, of at most `pages`; `items` is where it stands."""
        where = path._path if isinstance(path, ToolPath) else path
        if not isinstance(where, str):
            raise TypeError("the path of a tool is a str")
        for name, most in (("limit", limit), ("pages", pages)):
            if most is not None and (not isinstance(most, int) or most < 1):
                raise TypeError(f"{name} is a whole number from 1")
        return Pages(where, _arguments(where, () if args is None else (args,), {}), items, limit, pages)


def _arguments(path: str, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    if len(args) > 1 or (args and not isinstance(_value(args[0]), Mapping)):
        what = f"{len(args)} positional arguments" if len(args) > 1 else f"a value of type {type(args[0]).__name__}"
        raise TypeError(f"tools.{path} takes keyword arguments or one dict, not {what}")
    if not args:
        return named
    return {**_value(args[0]), **named}


def call(path: str, args: dict[str, Any], meta: bool = False) -> Any:
    """Send a call off: its value in a synchronous script, else the ToolCall."""
    try:
        number = wire.call(path, args, meta)
    except state.TooLarge as error:
        raise ToolError(str(error), code="too_large", path=path[:200]) from None
    future = ToolCall(loop=state.loop)
    state.loop.waiting[number] = future
    return future if state.asynchronous or state.deferred else future.wait()


def deferred(function: Any, *args: Any, **named: Any) -> Any:
    """Call a tool for an `await` that stands before it, whatever the rest of the script is like."""
    state.deferred = True
    try:
        return function(*args, **named)
    finally:
        state.deferred = False


_Values.install()
