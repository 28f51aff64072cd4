"""Changes that were looked at and make no difference that anybody could see, each with why.

A change is known by the line that it is made in and by what it puts there; once the line is another, it counts again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.mutation.changes import Change

MESSAGE: Final = "how much of a wrong value a message repeats is a matter of taste"
FASTER: Final = "a faster road to the same result: without it, or always on it, the result is the same"


class Known(NamedTuple):
    """`changes` are the texts that change nothing in this `line`; none: any."""

    module: str
    line: str
    changes: tuple[str, ...]
    why: str


EQUIVALENT: Final = (
    Known(
        "bridge/approvals.py",
        'if decision.approver != "anyone":',
        ("==", "(True)"),
        "of the two kinds of approver one is named and the other is not, whichever it is",
    ),
    Known(
        "bridge/approvals.py",
        "if known is None or known[0] is not tool.definitions:",
        ("(True)", "1"),
        FASTER,
    ),
    Known(
        "bridge/http1.py",
        "raise self.gone()",
        ("pass",),
        "h11 itself raises where a connection ends within a body; this is for a reader that does not",
    ),
    Known(
        "bridge/http1.py",
        "elif isinstance(event, h11.EndOfMessage):",
        ("(True)",),
        "h11 itself raises where a connection ends within a body, and gives nothing else",
    ),
    Known(
        "bridge/http1.py",
        "if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:",
        ("(False)",),
        "what is no answer is asked for again and again, and refused with the same words at the bound",
    ),
    Known("bridge/policy.py", "self.version = 0", ("1",), "the version is only compared with an earlier one"),
    Known(
        "bridge/policy.py",
        'rule_id = "pol_" + secrets.token_hex(8)',
        ("9",),
        "an id that nobody has twice is none with a byte more",
    ),
    Known("bridge/policy.py", "self.version += 1", ("2",), "the version is only compared with an earlier one"),
    Known(
        "bridge/policy.py",
        'raise InvalidRequest(f"{effect[:40]!r} is not an effect.", hint="Effects: approve, require_approval, block.")',
        ("41",),
        MESSAGE,
    ),
    Known("bridge/policy.py", "if not view.lenses:", ("(False)",), FASTER),
    Known("bridge/wire/codec.py", "strict_map_key=True,", ("False",), "the hook of maps refuses such keys as well"),
    Known(
        "bridge/wire/codec.py",
        "max_map_len=size // 2 + 1,",
        ("2",),
        "a map that says to hold one entry more than there are bytes for is cut off",
    ),
    Known("bridge/wire/codec.py", "if depth == MAX_DEPTH or not _plain(item, json):", ("(True)",), FASTER),
    Known("bridge/wire/codec.py", "if parsed or data is not None:", ("and",), FASTER),
    Known("bridge/policy.py", "if view.lenses:", ("(True)",), FASTER),
    Known(
        "bridge/wire/codec.py",
        "max_ext_len=0,",
        ("1",),
        "an ext that is short enough to be read is refused by its hook",
    ),
    Known(
        "bridge/wire/codec.py",
        "if not parsed and type(value) in (dict, list, tuple):",
        ("(True)",),
        FASTER,
    ),
    Known(
        "bridge/wire/distrust.py",
        "if type(frame) is not tuple or len(frame) < 3 or type(frame[1]) is not int or frame[1] not in _READERS:",
        ("<=", "4"),
        "no kind of frame has as few fields: the validator of its kind refuses it as well",
    ),
    Known(
        "bridge/wire/frames.py",
        "if not buffer and len(data) > 4 and LENGTH.unpack_from(data)[0] == len(data) - 4 <= self._limit:",
        ("5", "(False)"),
        FASTER,
    ),
    Known("bridge/wire/frames.py", "if at:", ("(True)",), FASTER),
    Known("executor/http/strictjson.py", "if len(out) != len(pairs):", ("(True)",), FASTER),
    Known(
        "executor/http/strictjson.py",
        'raise NotJson("the body holds a number that is out of range") from None',
        ("pass",),
        "the careful decoder refuses such numbers before Python does; this is there for other ones of Python",
    ),
    Known(
        "executor/http/strictjson.py",
        "if len(digits) > 20 or not INT_MIN <= (value := int(digits)) <= INT_MAX:",
        ("21",),
        "every integer of 21 characters is out of range: the length spares its conversion",
    ),
    Known(
        "executor/http/strictjson.py", 'raise NotJson(f"the number {digits[:30]} is out of range")', ("31",), MESSAGE
    ),
    Known(
        "executor/keys.py",
        """raise InvalidRequest(f"{str(level)[:40]!r} is not an access", hint=f"use one of {', '.join(LEVELS)}")""",
        ("41",),
        MESSAGE,
    ),
    Known(
        "executor/keys.py",
        "if row is None or not same or not _SHAPE.fullmatch(presented):",
        ("and",),
        "a row is found by its digest, which is the same then: it is compared so that the time says nothing",
    ),
    Known("runtime/engine/sealed.py", "total = 0", ("1",), "a bound of hundreds of megabytes, less a byte"),
    Known(
        "runtime/engine/sealed.py",
        "if not stat.S_ISREG(found.st_mode):",
        ("(False)",),
        "a folder cannot be read, and a pipe that is not waited for reads as nothing, which bears no MAC",
    ),
    Known(
        "runtime/engine/sealed.py",
        'fresh = path.with_name(f".{path.name}.{secrets.token_hex(8)}")',
        ("9",),
        "a name that nobody guesses is none with a byte more",
    ),
    Known(
        "runtime/engine/sealed.py",
        "if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:",
        ("and",),
        "what is no folder is a link here, whose mode lets everybody in and is refused for that",
    ),
    Known(
        "runtime/engine/sealed.py",
        'raise PermissionError("it is a link") from None',
        ("pass",),
        "the error that says so less clearly is raised in its place",
    ),
)


def why(module: str, source: str, change: Change) -> str | None:
    """Why this change makes no difference; None where it should."""
    line = source.splitlines()[change.line - 1].strip()
    for one in EQUIVALENT:
        if one.module == module and one.line == line and change.text.strip() in one.changes:
            return one.why
    return None
