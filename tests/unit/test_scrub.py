"""Masking: every form of a secret, and nothing else."""

from __future__ import annotations

import base64
from urllib.parse import quote

from hypothesis import assume, example, given
from hypothesis import strategies as st

from bridge.scrub import MASK, MIN_LENGTH, Scrubber, forms

SECRETS = st.text(alphabet=st.characters(codec="utf-8"), min_size=MIN_LENGTH, max_size=24)
AROUND = st.text(alphabet=st.characters(codec="utf-8"), max_size=12)


@given(SECRETS, AROUND, AROUND)
def test_a_secret_in_the_middle_of_any_text_is_masked(secret: str, before: str, after: str) -> None:
    masked = Scrubber([secret]).text(before + secret + after)
    assert MASK in masked
    assert secret not in masked


@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5))
@example("aaaaaaaa", b"", b"")
def test_a_secret_inside_base64_is_masked_at_every_alignment(secret: str, before: bytes, after: bytes) -> None:
    inner = base64.b64encode(before + secret.encode() + after).decode()
    masked = Scrubber([secret]).text(inner)
    assert MASK in masked
    assert len(masked) < len(inner)


@given(SECRETS)
def test_a_secret_with_every_byte_percent_encoded_is_masked(secret: str) -> None:
    for form in ("%{:02x}", "%{:02X}"):
        text = "".join(form.format(byte) for byte in secret.encode())
        assert Scrubber([secret]).text(f"a={text}&b") == f"a={MASK}&b"


@given(SECRETS)
def test_a_secret_backwards_or_as_character_references_is_masked(secret: str) -> None:
    for text in (
        secret[::-1],
        "".join(f"&#{ord(one)};" for one in secret),
        "".join(f"&#x{ord(one):x};" for one in secret),
        "".join(f"&#x{ord(one):X};" for one in secret),
    ):
        assert Scrubber([secret]).text(f"<{text}>") == f"<{MASK}>"


@given(st.lists(SECRETS, min_size=1, max_size=3, unique=True), AROUND)
def test_the_two_ways_of_searching_agree(secrets: list[str], around: str) -> None:
    few, many = Scrubber(secrets), Scrubber([*secrets, *(f"other-secret-{one:03d}" for one in range(40))])
    assert len(many._needles) > 80 >= len(few._needles)
    text = around.join(quote(secret, safe="") + secret for secret in secrets)
    assume(not any(f"{one:03d}" in text for one in range(40)))
    assert few.text(text) == many.text(text)


@given(st.text(max_size=200))
def test_a_text_without_the_secret_comes_back_as_the_same_object(text: str) -> None:
    scrubber = Scrubber(["a-secret-of-some-length"])
    assume("a-secret" not in text)
    assert scrubber.text(text) is text


def test_overlapping_and_adjoining_secrets_leave_nothing_of_either() -> None:
    scrubber = Scrubber(["abcdefghij", "fghijklmno", "abcdefghijklmno-long"])
    assert scrubber.text("<abcdefghijklmno>") == f"<{MASK}>"
    assert scrubber.text("abcdefghijabcdefghij") in (MASK, MASK + MASK)
    assert scrubber.text("abcdefghijklmno-long") == MASK


def test_values_are_masked_in_keys_strings_and_bytes_alike() -> None:
    scrubber = Scrubber(["correct horse"])
    value = {"correct horse": ["correct horse", b"\xffcorrect horse", 3, None, True, 1.5]}
    assert scrubber.value(value) == {MASK: [MASK, b"\xff" + MASK.encode(), 3, None, True, 1.5]}


def test_forms_shorter_than_the_minimum_are_not_looked_for() -> None:
    assert min(map(len, forms("12345678"))) >= MIN_LENGTH
    assert not Scrubber(["1234567"])
    assert not Scrubber([])
