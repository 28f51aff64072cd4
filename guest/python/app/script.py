"""The text that was sent becomes a coroutine function, with `return` and `await` at top level, the last expression its
result.

The script is compiled as the body of one async function whose names are all global, so that functions, classes and
`globals()` see them as in a module, while `return` and `await` are allowed. Lines and columns stay those of the text.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import types
from collections.abc import Callable, Iterator
from typing import Any

FILE = "<script>"
DEFERRED = "__tool_call__"
_MAIN = "__script__"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_ASYNC = (ast.Await, ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BUILTINS = frozenset(dir(builtins))
_LOOKS_INSIDE = frozenset({"globals", "eval", "exec", "locals", "vars", "dir", "__builtins__"})
_NAMESPACE_CALLS = frozenset({"exec", "locals", "vars", "dir"})


def compiled(text: str, namespace: dict[str, Any]) -> tuple[Callable[[], Any], bool]:
    """The function to call for the script's outcome, and whether the script uses `async` or `await`.

    Calling it gives a coroutine. Raises SyntaxError, and what the parser raises for text that is too deep or too long.
    """
    lines = text.splitlines(keepends=True)
    linecache.cache[FILE] = (len(text), None, lines, FILE)
    if len(lines) == 1 and not any(word in text for word in _NEEDS_A_TREE) and (code := _expression(text)):
        return _evaluated(code, namespace), False
    tree = ast.parse(text, FILE, "exec")
    asynchronous = ("asyn" in text or "await" in text) and any(map(_is_asynchronous, _walk(tree)))
    body = tree.body
    _call_lone_function(body)
    if "tools" in text:
        _await_calls(body, asynchronous)
    outside = _Outside()
    outside.look(body)
    if outside.plain_module:
        return _module(tree, namespace), asynchronous
    _return_last(body)
    names = sorted(outside.names - _fast(tree, outside, namespace))
    head: list[ast.stmt] = [_first_line(ast.Global(names))] if names else []
    body = [_unannotated(statement) if isinstance(statement, ast.AnnAssign) else statement for statement in body]
    docstring = _docstring(body)
    function = ast.AsyncFunctionDef(
        name=_MAIN,
        args=ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[]),
        body=[*docstring, *head, *body[len(docstring) :]] or [_first_line(ast.Pass())],
        decorator_list=[],
        returns=None,
        type_params=[],
    )
    futures = [s for s in body if isinstance(s, ast.ImportFrom) and s.module == "__future__"]
    function.body = [s for s in function.body if s not in futures] or [_first_line(ast.Pass())]
    code = compile(ast.Module([*futures, _first_line(function)], []), FILE, "exec", dont_inherit=True)
    inner = next(c for c in code.co_consts if isinstance(c, types.CodeType) and c.co_name == _MAIN)
    inner = inner.replace(co_name="<module>", co_qualname="<module>")
    return types.FunctionType(inner, namespace), asynchronous


_NEEDS_A_TREE = ("tools", "lambda", "asyn", "await", "=")


def _expression(text: str) -> types.CodeType | None:
    """The code of a text that is one expression; None for any other. A third of what the way by the tree costs."""
    try:
        return compile(text, FILE, "eval", dont_inherit=True)
    except SyntaxError:
        return None


def _evaluated(code: types.CodeType, namespace: dict[str, Any]) -> Callable[[], Any]:
    async def run() -> Any:
        return eval(code, namespace)  # the script itself

    return run


def _first_line(node: Any) -> Any:
    """`node` with a place in the text, for what does not come from it."""
    node.lineno = node.end_lineno = 1
    node.col_offset = node.end_col_offset = 0
    return node


def _children(node: ast.AST) -> list[ast.AST]:
    """Like ast.iter_child_nodes, at a fifth of its cost: every start of a script pays for it, node by node."""
    found: list[ast.AST] = []
    for value in vars(node).values():
        if value.__class__ is list:
            found += [part for part in value if isinstance(part, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += _children(node)


def _is_asynchronous(node: ast.AST) -> bool:
    """Whether the script means calls to be awaited: by its syntax, or because asyncio is to await them."""
    match node:
        case ast.comprehension(is_async=is_async):
            return bool(is_async)
        case ast.Attribute(value=ast.Name(id="asyncio")) | ast.ImportFrom(module="asyncio"):
            return True
    return isinstance(node, _ASYNC)


def _module(tree: ast.Module, namespace: dict[str, Any]) -> Callable[[], Any]:
    """The script as a real module body, for one that asks for its own namespace; without a top-level `return`."""
    last = _last_expression(tree.body)
    if last is not None:
        block, index, expression = last
        store = ast.Assign([ast.Name("__result__", ast.Store())], expression.value)
        block[index] = ast.copy_location(store, expression)
    ast.fix_missing_locations(tree)
    code = compile(tree, FILE, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)

    async def run() -> Any:
        outcome = eval(code, namespace)  # the script itself
        if outcome is not None:
            await outcome
        return namespace.pop("__result__", None)

    return run


_TELLING = frozenset(
    {
        *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Name, ast.Import, ast.ImportFrom),
        *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.TypeAlias, ast.Call, ast.Yield),
        *(ast.YieldFrom, ast.Nonlocal, ast.Global, *_COMPREHENSIONS),
    }
)
"""The nodes that `_Outside` has something to say about."""


class _Outside:
    """What the top level of a script binds, and whether it must be a real module body."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.defined: set[str] = set()
        """Those that are functions, classes or modules: found by name from elsewhere, as pickle and dataclasses do."""
        self.plain_module = False

    def look(self, nodes: Any) -> None:
        for node in nodes:
            self._node(node)

    def _node(self, node: ast.AST) -> None:
        if node.__class__ not in _TELLING:
            self.look(_children(node))
            return
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self.names.add(name)
                self.defined.add(name)
                self.look([*node.decorator_list, *getattr(node, "bases", []), *getattr(node, "keywords", [])])
                return
            case ast.Lambda():
                return
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                self.names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                self.plain_module |= any(alias.name == "*" for alias in aliases)
                if not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
                    names = {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
                    self.names |= names
                    self.defined |= names
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self.names.add(name)
            case ast.MatchMapping(rest=str(name)):
                self.names.add(name)
            case ast.TypeAlias(name=ast.Name(id=name)):
                self.names.add(name)
            case ast.Call(func=ast.Name(id=name)) if name in _NAMESPACE_CALLS:
                self.plain_module = True
            case ast.Yield() | ast.YieldFrom():
                raise _misplaced("'yield' outside function", node)
            case ast.Nonlocal():
                raise _misplaced("nonlocal declaration not allowed at module level", node)
            case ast.Global(names=names):
                self.names.update(names)
                names.clear()
                names.append("__name__")
        if isinstance(node, _COMPREHENSIONS):
            # its own targets are not ours; a := inside of it is
            self.names.update(
                inner.target.id
                for inner in _walk(node)
                if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name)
            )
            self.look(inner for inner in _walk(node) if isinstance(inner, (ast.Yield, ast.YieldFrom)))
            return
        self.look(_children(node))


def _fast(tree: ast.Module, outside: _Outside, namespace: dict[str, Any]) -> set[str]:
    """The variables that may be locals of the function, which are several times as fast as globals.

    Only those that the script's own level alone mentions, and nothing else could find: no function, class or module,
    none that is also a builtin (`list = list(x)` reads the builtin first), and none where the namespace is looked into.
    """
    candidates = outside.names - outside.defined - set(namespace) - _BUILTINS
    if not candidates:
        return candidates
    inner: set[str] = set()
    for node in _walk(tree):
        match node:
            case ast.Name(id=name) if name in _LOOKS_INSIDE:
                return set()
            case ast.Global(names=names):
                inner.update(names)
        if isinstance(node, (*_SCOPES, ast.GeneratorExp, ast.TypeAlias)):
            inner.update(part.id for part in _walk(node) if isinstance(part, ast.Name))
    return candidates - inner


def _misplaced(message: str, node: Any) -> SyntaxError:
    return SyntaxError(message, (FILE, node.lineno, node.col_offset + 1, None))


def _unannotated(statement: ast.AnnAssign) -> ast.stmt:
    """A global name may not be annotated in a function."""
    if not isinstance(statement.target, ast.Name):
        return statement
    if statement.value is None:
        return ast.copy_location(ast.Pass(), statement)
    return ast.copy_location(ast.Assign([statement.target], statement.value), statement)


def _docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    match body[:1]:
        case [ast.Expr(value=ast.Constant(value=str()))] if len(body) > 1:
            return body[:1]
    return []


def _last_expression(body: list[ast.stmt]) -> tuple[list[ast.stmt], int, ast.Expr] | None:
    """Where the expression stands that is the script's result: last, or last in a block that is last."""
    while body:
        last = body[-1]
        if isinstance(last, ast.Expr):
            return body, len(body) - 1, last
        if isinstance(last, (ast.With, ast.AsyncWith)) or (isinstance(last, ast.If) and not last.orelse):
            body = last.body
        else:
            return None
    return None


def _return_last(body: list[ast.stmt]) -> None:
    last = _last_expression(body)
    if last is not None:
        block, index, expression = last
        block[index] = ast.copy_location(ast.Return(expression.value), expression)
        return
    match body[-1:]:
        case [ast.If(body=then, orelse=otherwise)]:
            branches = [then, otherwise]
        case [ast.Try(body=then, handlers=handlers, orelse=otherwise)]:
            branches = [otherwise or then, *(handler.body for handler in handlers)]
        case [ast.Match(cases=cases)]:
            branches = [case.body for case in cases]
        case _:
            branches = []
    for branch in branches:
        _return_last(branch)


def _call_lone_function(body: list[ast.stmt]) -> None:
    """A text that only defines one function, or a `main`, or is one lambda, means that it should be called.

    A parameter named `tools` gets the tools, any other one the input.
    """
    if len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Lambda):
        given = _given(body[0].value.args)
        if given is not None:
            call = ast.Call(body[0].value, given, [])
            body[0].value = ast.fix_missing_locations(ast.copy_location(call, body[0].value))
        return
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Assign, ast.AnnAssign)
    if not all(isinstance(s, kinds) or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)) for s in body):
        return
    if not body or not isinstance(body[-1], (ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    functions = [s for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
    chosen = next((f for f in functions if f.name == "main"), functions[0] if len(functions) == 1 else None)
    if chosen is None or chosen.decorator_list:
        return
    given = _given(chosen.args)
    if given is None:
        return
    call = ast.Expr(ast.Call(ast.Name(chosen.name, ast.Load()), given, []))
    body.append(ast.fix_missing_locations(ast.copy_location(call, chosen)))


def _given(parameters: ast.arguments) -> list[ast.expr] | None:
    """What to call a function with: `tools` and the input, as far as it wants them; None when it wants more."""
    positional = [*parameters.posonlyargs, *parameters.args]
    needed = [part.arg for part in positional[: len(positional) - len(parameters.defaults)]]
    others = [name for name in needed if name != "tools"]
    if len(others) > 1 or any(default is None for default in parameters.kw_defaults):
        return None
    return [ast.Name("tools" if name == "tools" else "input", ast.Load()) for name in needed]


def _await_calls(body: list[ast.stmt], asynchronous: bool) -> None:
    """Await what would otherwise be waited for in place, or not at all.

    A call spelled `tools.a.b(…)` is awaited where it stands in a synchronous script's own level, so that no stack is
    alive while it waits; and where it is a statement by itself, in async code too: nobody else could await it.
    """
    if "tools" in {n.id for s in body for n in _walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}:
        return
    rewrite = _Awaiter(everywhere=not asynchronous)
    body[:] = [rewrite.visit(statement) for statement in body]


def _is_tool_call(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    at: ast.expr = node.func
    if isinstance(at, ast.Name):
        return False
    while isinstance(at, (ast.Attribute, ast.Subscript)):
        at = at.value
    return isinstance(at, ast.Name) and at.id == "tools"


class _Awaiter(ast.NodeTransformer):
    """Puts `await` before tool calls, where that is allowed."""

    def __init__(self, *, everywhere: bool) -> None:
        self._everywhere = everywhere
        self._in_async = True

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in list(vars(node).items()):
            if value.__class__ is list:
                value[:] = [self.visit(part) if isinstance(part, ast.AST) else part for part in value]
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.GeneratorExp)):
            return self._scope(node, False)
        if isinstance(node, ast.AsyncFunctionDef):
            return self._scope(node, True)
        if isinstance(node, ast.Await) and _is_tool_call(node.value):
            return self.generic_visit(node.value) and node
        statement = isinstance(node, ast.Expr) and self._in_async and _is_tool_call(node.value)
        if statement or (self._everywhere and self._in_async and isinstance(node, ast.Call) and _is_tool_call(node)):
            call = node.value if isinstance(node, ast.Expr) else node
            assert isinstance(call, ast.Call)
            self.generic_visit(call)
            call.args.insert(0, call.func)
            call.func = ast.copy_location(ast.Name(DEFERRED, ast.Load()), call.func)
            awaited = ast.copy_location(ast.Await(call), call)
            return ast.copy_location(ast.Expr(awaited), node) if isinstance(node, ast.Expr) else awaited
        return self.generic_visit(node)

    def _scope(self, node: ast.AST, is_async: bool) -> ast.AST:
        before, self._in_async = self._in_async, is_async
        self.generic_visit(node)
        self._in_async = before
        return node
