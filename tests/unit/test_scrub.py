"""Masking: every form of a secret, and nothing else."""

from __future__ import annotations

import base64
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bridge import forms
from bridge.forms import MIN_LENGTH
from bridge.percent import WINDOW, Escaped
from bridge.scrub import FEW, MASK, Scrubber

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


def _escaped(secret: str, choices: st.DataObject) -> str:
    """The secret in percent-encoding, where it need not be as well, in digits of both cases; the sign itself is."""
    made = bytearray()
    for byte in secret.encode():
        as_it_is = byte != ord("%") and byte < 0x80 and choices.draw(st.booleans())
        form = choices.draw(st.sampled_from(["%{:02x}", "%{:02X}"]))
        made += bytes([byte]) if as_it_is else form.format(byte).encode()
    return made.decode()


@given(SECRETS, st.data())
def test_a_secret_of_which_any_characters_are_percent_encoded_is_masked(secret: str, choices: st.DataObject) -> None:
    text = _escaped(secret, choices)
    for before, after in (("a=", "&b"), ("100%-", "%"), ("%%-", "%2"), ("%0-", "=\n"), ("=\r", "%zz"), ("", "%41")):
        # One that repeats itself may be found to begin in what is before it.
        if not any(before.endswith(secret[:size]) for size in range(1, len(before) + 1)):
            assert Scrubber([secret]).text(before + text + after) == before + MASK + after


@pytest.mark.parametrize(
    "secret", ["key=41=3Dabc", "one\r\ntwo=\nthree=\r", "a=b==c=%=d", "a\x0bb\x0ec\x0fd\x00e", "______=20"]
)
@pytest.mark.parametrize("before", ["", "%", "%%", "%%%", "=", "==", "%\n", "%\r"])
def test_no_sign_in_a_secret_or_before_it_hides_one_that_is_partly_escaped(secret: str, before: str) -> None:
    text = f"%{ord(secret[0]):02x}" + secret[1:].replace("%", "%25")
    assert Scrubber([secret]).finds(f"{before}{text}".encode())
    assert Scrubber([secret]).text(f"{before}{text}~") == f"{before}{MASK}~"


@given(SECRETS)
def test_a_secret_in_a_url_within_a_url_is_masked(secret: str) -> None:
    assume(secret[0] != "=")
    inner = "https://a.test/?key=" + quote(secret, safe="")
    text = "next=" + quote(inner, safe="") + "&more=%20"
    assert Scrubber([secret]).text(text) == f"next={quote('https://a.test/?key=', safe='')}{MASK}&more=%20"
    spaced = quote_plus("a b" + secret)
    assert quote_plus(secret) not in Scrubber(["a b" + secret]).text(spaced)


@pytest.mark.parametrize("before", [0, 1, 2, 3, 20, 59, 60, 61])
def test_an_escaped_secret_is_masked_wherever_it_lies_in_a_large_text(before: int) -> None:
    secret = "cnry-0123456789-secret"
    text = "%20-" * 30_000
    at = WINDOW - before
    text = text[: at // 4 * 4] + "-" * (at % 4) + text[at // 4 * 4 :]
    escaped = "".join(f"%{ord(one):02x}" if place % 3 else one for place, one in enumerate(secret))
    masked = Scrubber([secret]).text(text[:at] + escaped + text[at:])
    assert masked == text[:at] + MASK + text[at:]


def test_a_large_text_of_escapes_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    may_be_in = Escaped._may_be_in

    def counting(self: Escaped, piece: bytes) -> bool:
        looked.append(len(piece))
        return may_be_in(self, piece)

    monkeypatch.setattr(Escaped, "_may_be_in", counting)
    text = "%41" * 500_000
    assert Scrubber(["cnry-0123456789-secret"]).text(text) is text
    assert len(looked) == -(-len(text) // WINDOW)
    assert sum(looked) < 1.1 * len(text)


@given(st.text(max_size=100), st.data())
def test_a_text_that_only_looks_like_the_secret_is_left_as_it_is(text: str, choices: st.DataObject) -> None:
    secret = "a-secret-of-some-length"
    assume("secret" not in text)
    for encoded in (
        _escaped(text, choices),
        quote(quote(text)),
        base64.b32encode(text.encode()).decode(),
        "%2D" + text,
    ):
        assert Scrubber([secret]).text(encoded) is encoded
    for close in (
        "a%2Dsecret-of-some-lengt",
        "a%2Dsecret-of-some-lengt%69",
        "a%2zsecret-of-some-length",
        "a=2Dsecret-of-some-length",
    ):
        assert Scrubber([secret]).text(close) is close


@given(SECRETS, st.binary(max_size=6), st.binary(max_size=6))
def test_a_secret_inside_base32_is_masked_at_every_alignment(secret: str, before: bytes, after: bytes) -> None:
    inner = base64.b32encode(before + secret.encode() + after).decode()
    for text in (inner, inner.lower()):
        scrubber = Scrubber([secret])
        assert scrubber.finds(text.encode())
        masked = scrubber.text(text)
        assert MASK in masked
        kept = masked.replace(MASK, "").rstrip("=")
        assert len(kept) <= -(-8 * (len(before) + len(after)) // 5) + 2


@given(SECRETS, st.data())
def test_a_secret_in_hex_of_either_case_is_masked(secret: str, choices: st.DataObject) -> None:
    raw = secret.encode()
    units = secret.encode("utf-16-be")
    for text in (
        raw.hex(),
        "".join(f"\\x{byte:02x}" for byte in raw),
        "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)),
    ):
        mixed = "".join(one.upper() if one in "abcdef" and choices.draw(st.booleans()) else one for one in text)
        assert Scrubber([secret]).text(f"<{mixed}>") == f"<{MASK}>"


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
    for kind in ("_exact", "_folded"):
        assert len(getattr(many, kind)) > FEW >= len(getattr(few, kind))
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
    assert min(map(len, forms.exact("12345678") | forms.folded("12345678"))) >= MIN_LENGTH
    assert not Scrubber(["1234567"])
    assert not Scrubber([])
