"""Forms that a server asks a person to fill in, in the middle of a call: what may be asked, and what is an answer.

The protocol's form mode (elicitation, 2025-11-25 and 2026-07-28) allows one flat object of texts, numbers, booleans
and choices. What is more than that is refused, not guessed at; so is a field that asks for a secret, for which form
mode must not be used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final

from catalog.kinds.mcp.texts import MAX_NOTE, MAX_TITLE, cleaned

MAX_MESSAGE: Final = 4000
MAX_SCHEMA: Final = 32 * 1024
"""Characters of a form's schema as JSON."""
MAX_FIELDS: Final = 50
MAX_CHOICES: Final = 500
MAX_NAME: Final = 128
MAX_TEXT: Final = 10_000
"""Characters of an answer's text where the form does not say."""

_SECRET: Final = re.compile(
    r"pass(word|wd|phrase|code)|\bpwd\b|secret|credential|(api|private|access|secret|ssh)key|"
    r"(access|refresh|auth|bearer|api|session)token|^token$|\b(cvv|cvc|ssn)\b|(credit|debit)card|cardnumber|"
    r"onetimecode|onetimepassword|^otp$|seedphrase|socialsecurity"
)
_FORMATS: Final = ("email", "uri", "date", "date-time")
_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class NotAsked(ValueError):
    """Raised for a form that is not put to anybody; its text says why."""


def message_of(params: Mapping[str, Any]) -> str:
    """The server's words, without what a person cannot see."""
    return cleaned(params.get("message"), MAX_MESSAGE)


def form_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the form in the `params` of a server's request, with nothing in it but what a form has.

    Raises NotAsked.
    """
    if params.get("mode", "form") != "form":
        raise NotAsked("it asks that a page be opened, which is not done for it")
    schema = params.get("requestedSchema")
    if not isinstance(schema, Mapping) or not isinstance(properties := schema.get("properties", {}), Mapping):
        raise NotAsked("its form is no object with properties")
    if len(properties) > MAX_FIELDS or len(json.dumps(schema, default=repr)) > MAX_SCHEMA:
        raise NotAsked(f"its form has more than {MAX_FIELDS} fields, or {MAX_SCHEMA // 1024} KiB")
    if schema.get("type", "object") != "object":
        raise NotAsked("its form is no object")
    fields = {name: _field(name, each) for name, each in properties.items()}
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(name in fields for name in required):
        raise NotAsked("its form requires what it does not have")
    return {"type": "object", "properties": fields, "required": list(dict.fromkeys(required))}


def answered(form: Mapping[str, Any], content: Any) -> dict[str, Any]:
    """The answer with the defaults of what was left out. Raises ValueError, which names the field."""
    given = {} if content is None else content
    if not isinstance(given, Mapping):
        raise ValueError("the answer is an object of the form's fields")
    fields: Mapping[str, Any] = form["properties"]
    if unknown := [name for name in given if name not in fields]:
        raise ValueError(f"the form has no field {unknown[0]!r}; it has: {', '.join(fields) or 'none'}")
    out: dict[str, Any] = {}
    for name, field in fields.items():
        if name in given and given[name] is not None:
            problem = _problem(field, given[name])
            if problem is not None:
                raise ValueError(f"{name} {problem}")
            out[name] = given[name]
        elif "default" in field:
            out[name] = field["default"]
        elif name in form["required"]:
            raise ValueError(f"{name} is missing")
    return out


def _field(name: str, raw: Any) -> dict[str, Any]:
    if not isinstance(raw, Mapping) or not name or len(name) > MAX_NAME:
        raise NotAsked("its form has a field that is none")
    shown = cleaned(name, MAX_NAME)
    if shown != name:
        raise NotAsked("its form has a field with a name that cannot be seen in full")
    if _asks_for_secret(name, raw.get("title")) or raw.get("format") == "password" or raw.get("writeOnly") is True:
        raise NotAsked(f"its field {name} asks for a secret, which is not entered in a form")
    kind = raw.get("type")
    field: dict[str, Any] = {"type": kind}
    for key, most in (("title", MAX_TITLE), ("description", MAX_NOTE)):
        if text := cleaned(raw.get(key), most):
            field[key] = text
    if kind == "string":
        field |= _text(name, raw)
    elif kind in ("number", "integer"):
        field |= {key: raw[key] for key in ("minimum", "maximum") if _is_number(raw.get(key))}
    elif kind == "array":
        field |= _several(name, raw)
    elif kind != "boolean":
        raise NotAsked(f"its field {name} is no text, number, boolean or choice")
    if (default := raw.get("default")) is not None:
        if _problem(field, default) is not None:
            raise NotAsked(f"its field {name} has a default that it does not allow")
        field["default"] = default
    return field


def _asks_for_secret(*words: Any) -> bool:
    for word in words:
        if isinstance(word, str):
            spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+", " ", word).strip().lower()
            if _SECRET.search(spaced) or _SECRET.search(spaced.replace(" ", "")):
                return True
    return False


def _text(name: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in ("minLength", "maxLength"):
        if type(raw.get(key)) is int and raw[key] >= 0:
            found[key] = raw[key]
    if raw.get("format") in _FORMATS:
        found["format"] = raw["format"]
    if (choices := _choices(name, raw, "oneOf")) is not None:
        found |= choices
        names = raw.get("enumNames")
        if "enum" in found and isinstance(names, list) and len(names) == len(found["enum"]):
            found["enumNames"] = [cleaned(each, MAX_TITLE) for each in names]
    return found


def _several(name: str, raw: Mapping[str, Any]) -> dict[str, Any]:
    items = raw.get("items")
    choices = _choices(name, items, "anyOf") if isinstance(items, Mapping) else None
    if choices is None:
        raise NotAsked(f"its field {name} is a list of something else than choices")
    found: dict[str, Any] = {"items": {"type": "string"} | choices if "enum" in choices else choices}
    for key in ("minItems", "maxItems"):
        if type(raw.get(key)) is int and raw[key] >= 0:
            found[key] = raw[key]
    return found


def _choices(name: str, raw: Mapping[str, Any], titled: str) -> dict[str, Any] | None:
    """The values that there are to choose from; None where any text will do."""
    if (values := raw.get("enum")) is not None:
        if not _is_choice(values):
            raise NotAsked(f"its field {name} has choices that are no texts, or too many")
        return {"enum": list(values)}
    if (options := raw.get(titled)) is None:
        return None
    if not isinstance(options, list) or not all(isinstance(one, Mapping) for one in options):
        raise NotAsked(f"its field {name} has choices that are none")
    if not _is_choice([one.get("const") for one in options]):
        raise NotAsked(f"its field {name} has choices that are no texts, or too many")
    told = [{"const": one["const"], "title": cleaned(one.get("title"), MAX_TITLE) or one["const"]} for one in options]
    return {titled: told}


def _is_choice(values: Any) -> bool:
    return (
        isinstance(values, list)
        and 0 < len(values) <= MAX_CHOICES
        and all(isinstance(one, str) and cleaned(one, MAX_TEXT) == one.strip() for one in values)
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _problem(field: Mapping[str, Any], value: Any) -> str | None:
    """What is wrong with the value of a field."""
    kind = field["type"]
    if kind == "boolean":
        return None if isinstance(value, bool) else "is true or false"
    if kind in ("number", "integer"):
        return _number_problem(field, value)
    if kind == "array":
        return _several_problem(field, value)
    if not isinstance(value, str):
        return "is a text"
    known = _values(field)
    if known is not None:
        return None if value in known else f"is one of: {', '.join(known)}"[:1000]
    return _text_problem(field, value)


def _number_problem(field: Mapping[str, Any], value: Any) -> str | None:
    if not _is_number(value) or (field["type"] == "integer" and value != int(value)):
        return "is a whole number" if field["type"] == "integer" else "is a number"
    if "minimum" in field and value < field["minimum"]:
        return f"is at least {field['minimum']}"
    if "maximum" in field and value > field["maximum"]:
        return f"is at most {field['maximum']}"
    return None


def _several_problem(field: Mapping[str, Any], value: Any) -> str | None:
    known = _values(field["items"]) or []
    if not isinstance(value, list) or not all(isinstance(one, str) and one in known for one in value):
        return f"is a list of some of: {', '.join(known)}"[:1000]
    if len(set(value)) != len(value):
        return "names a choice twice"
    if not field.get("minItems", 0) <= len(value) <= field.get("maxItems", len(known)):
        return f"has {field.get('minItems', 0)} to {field.get('maxItems', len(known))} choices"
    return None


def _text_problem(field: Mapping[str, Any], value: str) -> str | None:
    most = min(field.get("maxLength", MAX_TEXT), MAX_TEXT)
    if not field.get("minLength", 0) <= len(value) <= most:
        return f"has {field.get('minLength', 0)} to {most} characters"
    form = field.get("format")
    if form == "email" and not _EMAIL.fullmatch(value):
        return "is an e-mail address"
    if form == "uri" and not _URI.fullmatch(value):
        return "is a URI"
    if form == "date" and not _parses(date.fromisoformat, value, r"\d{4}-\d\d-\d\d"):
        return "is a date such as 2026-01-31"
    if form == "date-time" and not _parses(datetime.fromisoformat, value, r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d.*"):
        return "is a time such as 2026-01-31T12:00:00Z"
    return None


def _parses(parse: Any, value: str, shape: str) -> bool:
    if not re.fullmatch(shape, value, re.ASCII):
        return False
    try:
        parse(value)
    except ValueError:
        return False
    return True


def _values(field: Mapping[str, Any]) -> list[str] | None:
    if "enum" in field:
        return list(field["enum"])
    options = field.get("oneOf") or field.get("anyOf")
    return None if options is None else [one["const"] for one in options]
