"""The manifest and the tests agree: every case that is held has a test that names it, every name is a case."""

from __future__ import annotations

import pytest

from tests.threats.manifest import GROUPS, ID, named, threats, words


def test_every_case_that_is_held_is_named_by_a_test() -> None:
    held = {one.id for one in threats().values() if one.status == "held"}
    assert held - set(named()) == set()


def test_every_id_that_a_test_names_is_in_the_manifest() -> None:
    unknown = {one: files for one, files in named().items() if one not in threats()}
    assert unknown == {}


def test_no_test_names_a_case_that_does_not_apply() -> None:
    """It would be held, then."""
    assert {one.id for one in threats().values() if one.status == "not_applicable"} & set(named()) == set()


def test_every_case_that_is_not_held_says_why() -> None:
    short = [one.id for one in threats().values() if one.status != "held" and len(one.reason or "") < 8]
    assert short == []


def test_every_entry_is_one_sentence_under_a_known_group() -> None:
    for one in threats().values():
        assert ID.fullmatch(one.id), one.id
        assert one.says[0].isupper(), one.id
        assert one.says.endswith("."), one.id
    assert {one.partition("-")[0] for one in threats()} == set(GROUPS)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('def test_x():\n    """ESC-01, and ESC-02"""', {"ESC-01", "ESC-02"}),
        ('CASES = {"MSG-02 maps": 1}', {"MSG-02"}),
        ("# ESC-01\nx = 1", set()),
        ('"UTF-16"', set()),
        ('f"{1} BUD-01"', {"BUD-01"}),
    ],
)
def test_a_name_counts_where_it_is_part_of_a_test_and_not_in_a_comment(source: str, expected: set[str]) -> None:
    found = {one for text in words(source) for one in ID.findall(text)}
    assert found == expected
