"""Forms that servers ask people to fill in: what may be asked, and what is an answer."""

import pytest

from catalog.kinds.mcp.forms import NotAsked, answered, form_of, message_of


def form(**fields: dict) -> dict:
    return form_of({"requestedSchema": {"type": "object", "properties": fields, "required": [*fields][:1]}})


FIELDS = {
    "text": ({"type": "string", "minLength": 2, "maxLength": 4}, ["ab", "abcd"], ["a", "abcde", 5, True, ["ab"]]),
    "mail": ({"type": "string", "format": "email"}, ["a@b.example"], ["a", "a@b@c", "a b@c"]),
    "link": ({"type": "string", "format": "uri"}, ["https://a.example/x"], ["a.example", "https:", "x y:z"]),
    "day": ({"type": "string", "format": "date"}, ["2026-02-28"], ["2026-02-30", "2026-2-3", "today"]),
    "time": ({"type": "string", "format": "date-time"}, ["2026-02-28T12:00:00Z"], ["2026-02-28", "12:00"]),
    "count": ({"type": "integer", "minimum": 1, "maximum": 3}, [1, 3, 2.0], [0, 4, 1.5, "2", True]),
    "share": ({"type": "number", "minimum": 0}, [0, 0.5], [-1, float("nan"), float("inf"), "1"]),
    "sure": ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    "size": ({"type": "string", "enum": ["s", "m"], "enumNames": ["Small", "Medium"]}, ["s"], ["l", "Small"]),
    "color": ({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]}, ["#f00"], ["Red"]),
    "tags": (
        {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string", "enum": ["a", "b", "c"]}},
        [["a"], ["a", "c"]],
        [[], ["a", "b", "c"], ["d"], ["a", "a"], "a"],
    ),
}


@pytest.mark.parametrize("name", FIELDS)
def test_an_answer_is_taken_where_it_fits_its_field_and_refused_by_name_elsewhere(name: str):
    field, good, bad = FIELDS[name]
    asked = form(**{name: field})
    for value in good:
        assert answered(asked, {name: value}) == {name: value}
    for value in bad:
        with pytest.raises(ValueError, match=rf"^{name} "):
            answered(asked, {name: value})


def test_what_is_left_out_gets_its_default_and_what_is_required_is_missed():
    asked = form(seats={"type": "integer"}, note={"type": "string", "default": "none"}, more={"type": "boolean"})
    assert answered(asked, {"seats": 2}) == {"seats": 2, "note": "none"}
    assert answered(asked, {"seats": 2, "note": None}) == {"seats": 2, "note": "none"}
    with pytest.raises(ValueError, match="seats is missing"):
        answered(asked, None)
    with pytest.raises(ValueError, match="no field 'seat'; it has: seats, note, more"):
        answered(asked, {"seat": 2})
    with pytest.raises(ValueError, match="an object"):
        answered(asked, [1])


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "api_key", "accessToken", "client-secret", "Card Number", "cvv", "token", "pwd"]
)
def test_a_field_that_asks_for_a_secret_is_refused(name: str):
    with pytest.raises(NotAsked, match="secret"):
        form(**{name: {"type": "string"}})
    with pytest.raises(NotAsked, match="secret"):
        form(x={"type": "string", "title": name})


@pytest.mark.parametrize("name", ["tokens", "keyboard", "passenger", "maxTokens", "card"])
def test_a_field_that_only_sounds_like_one_is_asked(name: str):
    assert form(**{name: {"type": "string"}})["properties"] == {name: {"type": "string"}}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "array"},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "object", "properties": {}}}},
        {"type": "object", "properties": {"a": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": [1]}}},
        {"type": "object", "properties": {"a": {"type": "string", "enum": ["x"] * 501}}},
        {"type": "object", "properties": {"a": {"type": "string", "default": 5}}},
        {"type": "object", "properties": {"a\u200b": {"type": "string"}}},
        {"type": "object", "properties": {"a": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(51)}},
        {"type": "object", "properties": {"a": {"type": "string", "description": "x" * 40_000}}},
    ],
)
def test_a_form_that_is_none_is_refused(schema: object):
    with pytest.raises(NotAsked):
        form_of({"requestedSchema": schema})


def test_a_page_is_no_form():
    with pytest.raises(NotAsked, match="page"):
        form_of({"mode": "url", "url": "https://a.example", "message": "go"})


def test_nothing_but_what_a_form_has_is_kept_and_nothing_hidden_is_shown():
    raw = {
        "a": {
            "type": "string",
            "pattern": "(a+)+$",
            "x": {"deep": []},
            "description": "see\u202e this",
            "minLength": -1,
        }
    }
    assert form(**raw)["properties"] == {"a": {"type": "string", "description": "see this"}}
    assert message_of({"message": "How\u200b many?\x1b[2J"}) == "How many?[2J"
    assert len(message_of({"message": "x" * 100_000})) == 4000
