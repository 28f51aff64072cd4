"""Settings: what is wrong with them is said in the words of the file, and the page has every one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from executor.config import FILE, Config, ConfigError

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()


@pytest.mark.parametrize(
    ("file", "message", "hint"),
    [
        ("max_runing = 3", "unknown setting 'max_runing'", "did you mean max_running?"),
        ("zzz = 3", "unknown setting 'zzz'", None),
        ('max_running = "x"', "setting 'max_running' must be a whole number", None),
        ("max_running = 0", "setting 'max_running' must be at least 1", None),
        ('allow_private = "127.0.0.1"', "setting 'allow_private' must be an array", None),
        ('isolation = "none"', "setting 'isolation' must be 'shared' or 'run'", None),
        ("[ceilings]\nfoo = 1", "'foo' is not a budget", None),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_what_it_may_be(
    tmp_path: Path, file: str, message: str, hint: str | None
) -> None:
    (tmp_path / FILE).write_text(file)
    with pytest.raises(ConfigError) as caught:
        Config.load(tmp_path, environ={})
    assert message in caught.value.message
    assert caught.value.hint == hint


def test_a_secret_setting_that_cannot_be_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('api_key = ["a-key-that-nobody-may-see"]')
    with pytest.raises(ConfigError) as caught:
        Config.load(tmp_path, environ={})
    assert "a-key-that-nobody-may-see" not in str(caught.value.as_dict())


@pytest.mark.parametrize("name", Config.model_fields)
def test_every_setting_is_on_the_page_as_it_is(name: str) -> None:
    field = Config.model_fields[name]
    default = "processors, 1 to 4 " if name == "workers" else _shown(field.get_default(call_default_factory=True))
    assert f"| `{name}` | {default}| {field.description} |" in PAGE


def _shown(default: Any) -> str:
    if default is None or default == () or default == {}:
        return ""
    if isinstance(default, bool):
        return f"`{str(default).lower()}` "
    return f"`{int(default) if isinstance(default, float) and default.is_integer() else default}` "
