"""What `executor serve` may be told: values that no request could ever meet are refused at once."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.wire.errors import ConfigError
from executor.http.serving import ServeSettings


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"host": "nowhere"}, "'nowhere' is not an address"),
        ({"host": ""}, "'' is not an address"),
        ({"port": 65536}, "65536 is not a port"),
        ({"port": -1}, "-1 is not a port"),
        ({"host": "0.0.0.0", "require_key": False}, "not a loopback address"),
        *[
            ({"allowed_hosts": ("a.test", one)}, "not the name of a host")
            for one in ("", "a.test:80", "a/b", "a b", "-a")
        ],
        *[
            ({"allowed_origins": ("https://a.test", one)}, "not an origin")
            for one in ("null", "a.test", "https://a.test/", "https://A.test", "https://u@a.test", "https://a.test/x")
        ],
    ],
)
def test_what_could_never_be_meant_is_refused(given: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word) as caught:
        ServeSettings(**given)
    assert caught.value.hint


def test_names_and_origins_are_taken_in_the_form_that_clients_send() -> None:
    settings = ServeSettings(
        "::1", 0, allowed_hosts=("Tools.example.com", "[::1]"), allowed_origins=("http://a.test:81", "app://x")
    )
    assert settings.edge().hosts >= {"tools.example.com", "[::1]"}
    assert settings.edge().origins == {"http://a.test:81", "app://x"}
