"""What a server lists becomes tools: names that are paths, texts that hide nothing, schemas that stand alone."""

from hypothesis import given
from hypothesis import strategies as st

from catalog import address
from catalog.kinds.mcp import names, texts
from catalog.kinds.mcp.integration import Mcp, place
from catalog.kinds.mcp.listing import side_effect
from catalog.model import Manifest


def listed(*tools: dict) -> Manifest:
    return Mcp("x").resolve_tools({"url": "https://example.com/mcp", "listing": {"tools": list(tools)}})


@given(st.lists(st.text(min_size=1, max_size=300), unique=True, max_size=20))
def test_every_name_is_a_path_of_its_own(wanted: list[str]) -> None:
    """MCP-15"""
    found = names.assigned(wanted)
    assert len(set(found.values())) == len(wanted)
    assert all(address.is_tool(name) and len(name) <= names.MAX_NAME for name in found.values())
    assert all(found[name] == name for name in wanted if address.is_tool(name) and name not in names.AWKWARD)


@given(
    st.lists(st.text(min_size=1, max_size=40), unique=True, min_size=1, max_size=10), st.text(min_size=1, max_size=40)
)
def test_a_name_that_comes_later_takes_no_path_that_was_there(wanted: list[str], later: str) -> None:
    before = names.assigned(wanted)
    after = names.assigned([later, *(name for name in wanted if name != later)])
    taken = after[later]
    assert all(before[name] != taken for name in wanted if name != later)


@given(st.text(max_size=500))
def test_what_is_cleaned_hides_nothing_and_stays_so(text: str) -> None:
    clean = texts.cleaned(text, 200)
    assert len(clean) <= 200
    assert not texts.hides(clean)
    assert texts.cleaned(clean, 200) == clean


def test_ordinary_text_of_any_script_is_kept() -> None:
    for text in ("Grüße, 世界!", "नमस्ते", "שלום עולם", "a\n\tb", "e\u0301"):
        assert texts.cleaned(text, 100) == text


def test_a_server_that_says_both_is_taken_at_its_worse_word() -> None:
    """POL-07"""
    assert side_effect({"readOnlyHint": True, "destructiveHint": True}) == "delete"
    assert side_effect({"readOnlyHint": "true"}) == "unknown"
    assert side_effect({}) == "unknown"


def test_definitions_of_two_tools_do_not_meet() -> None:
    def tool(name: str, kind: str) -> dict:
        schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": {"type": kind}}}
        return {"name": name, "inputSchema": schema, "outputSchema": schema}

    manifest = listed(tool("one", "string"), tool("two", "integer"))
    kinds = {name: schema["type"] for name, schema in manifest.definitions.items()}
    assert kinds == {"one.T": "string", "one.T.out": "string", "two.T": "integer", "two.T.out": "integer"}
    for spec in manifest.tools:
        assert spec.input_schema is not None
        assert spec.output_schema is not None
        assert spec.input_schema["properties"]["a"] == {"$ref": f"#/$defs/{spec.name}.T"}
        assert spec.output_schema["properties"]["a"] == {"$ref": f"#/$defs/{spec.name}.T.out"}


def test_a_definition_that_is_only_itself_means_anything() -> None:
    manifest = listed(
        {"name": "loop", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}}
    )
    assert list(manifest.definitions.values()) == [{}]


def test_a_program_with_another_argument_is_another_place() -> None:
    """MCP-14: secrets that were given to the one are not for the other."""
    first, second = (place({"command": ["/bin/x", argument]}) for argument in ("a", "b"))
    assert first != second
    assert str(first).startswith("stdio://x-")
    assert place({"command": ["/bin/x", "a"], "cwd": "/tmp"}) != first
