"""Node's resolution over a map of files, and what of a tree an isolate is given."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from catalog.kinds.npm import sources
from catalog.kinds.npm.bundle import TooLarge, bundled
from catalog.kinds.npm.resolution import Resolver, Unresolved
from tests.unit.npm_trees import cjs, esm, package, tree


def resolver(*parts: dict[str, bytes]) -> Resolver:
    return Resolver(tree(*parts).files)


def test_conditions_choose_the_import_or_the_require_side() -> None:
    exports = {".": {"import": "./m.mjs", "require": "./c.cjs"}, "./sub/*": {"default": "./lib/*.js"}}
    found = resolver(package("tool", {"m.mjs": "", "c.cjs": "", "lib/a/b.js": ""}, exports=exports))
    assert found.resolve("x.mjs", "tool", "import") == "node_modules/tool/m.mjs"
    assert found.resolve("x.mjs", "tool", "require") == "node_modules/tool/c.cjs"
    assert found.resolve("x.mjs", "tool/sub/a/b", "import") == "node_modules/tool/lib/a/b.js"


def test_what_a_package_does_not_export_is_not_found() -> None:
    exports = {".": "./index.js", "./private/*": None, "./*": "./*.js"}
    found = resolver(package("tool", {"index.js": "", "private/a.js": "", "b.js": ""}, exports=exports))
    assert found.resolve("x.mjs", "tool/b", "import") == "node_modules/tool/b.js"
    with pytest.raises(Unresolved):
        found.resolve("x.mjs", "tool/private/a", "import")


def test_edge_conditions_come_before_node_and_never_the_browser() -> None:
    exports = {"browser": "./b.js", "node": "./n.js", "workerd": "./w.js", "default": "./d.js"}
    files = {"b.js": "", "n.js": "", "w.js": "", "d.js": ""}
    assert resolver(package("tool", files, exports=exports)).resolve("x", "tool", "import").endswith("w.js")
    rest = {"node": {"import": "./n.js"}, "default": {"import": "./browser.js"}}
    named = files | {"browser.js": ""}
    assert resolver(package("tool", named, exports=rest)).resolve("x", "tool", "import").endswith("n.js")
    only = {"browser": "./b.js", "node": "./n.js"}
    assert resolver(package("tool", files, exports=only)).resolve("x", "tool", "import").endswith("n.js")


@pytest.mark.parametrize(
    "manifest",
    [
        {"main": "../../../etc/passwd"},
        {"exports": "./../secret.js"},
        {"exports": {".": "./node_modules/x/index.js"}},
        {"exports": {".": "/etc/passwd"}},
        {"exports": {".": [["./../x.js"]]}},
    ],
)
def test_an_entry_is_resolved_inside_its_package_only(manifest: dict[str, object]) -> None:
    """PKG-10."""
    found = resolver(package("tool", {}, **manifest), {"secret.js": b"", "etc/passwd": b""})
    with pytest.raises(Unresolved):
        found.resolve("x.mjs", "tool", "import")


LARGE = b'{"main": "x.js"}' + b" " * (1 << 20)


@pytest.mark.parametrize(
    "broken", [b"{", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"__proto__": {"main": "x.js"}}', LARGE], ids=range(6)
)
def test_a_manifest_that_is_none_counts_for_nothing(broken: bytes) -> None:
    """PKG-10."""
    files = {f"node_modules/tool/{name}": b"" for name in ("index.js", "x.js")}
    files["node_modules/tool/package.json"] = broken
    assert Resolver(files).resolve("x", "tool", "require") == "node_modules/tool/index.js"


def test_the_nearest_copy_of_a_package_is_taken() -> None:
    nested = package("dep", {"index.js": "2"}, at="node_modules/tool/node_modules/dep")
    found = resolver(package("tool", {"index.js": ""}), package("dep", {"index.js": "1"}), nested)
    assert (
        found.resolve("node_modules/tool/index.js", "dep", "require") == "node_modules/tool/node_modules/dep/index.js"
    )
    assert found.resolve("node_modules/other/index.js", "dep", "require") == "node_modules/dep/index.js"


def test_a_package_imports_its_own_names() -> None:
    imports = {"#a": {"import": "./a.mjs", "default": "./a.cjs"}, "#dep": "dep", "#b/*": "./b/*.js", "#fs": "fs"}
    own = package("tool", {"a.mjs": "", "a.cjs": "", "b/x.js": "", "index.js": ""}, imports=imports)
    found = resolver(own, package("dep", {"index.js": ""}))
    base = "node_modules/tool/index.js"
    assert found.resolve(base, "#a", "import") == "node_modules/tool/a.mjs"
    assert found.resolve(base, "#a", "require") == "node_modules/tool/a.cjs"
    assert found.resolve(base, "#b/x", "import") == "node_modules/tool/b/x.js"
    assert found.resolve(base, "#dep", "import") == "node_modules/dep/index.js"
    assert found.resolve(base, "#fs", "import") == "fs"


def test_imports_that_lead_to_imports_lead_nowhere() -> None:
    """PKG-10: a circle has no end, and lists of such take twice as long with each step."""
    doubling = {f"#{n}": [f"#{n + 1}"] * 2 for n in range(60)}
    own = package("tool", {"index.js": ""}, imports={"#a": "#a", "#b": "#c", "#c": "#b", "#x/*": "#x/*/y"} | doubling)
    found = resolver(own)
    for name in ("#a", "#b", "#x/z", "#0"):
        with pytest.raises(Unresolved):
            found.resolve("node_modules/tool/index.js", name, "import")


def test_the_longest_pattern_counts_and_of_very_many_some_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """PKG-18"""
    exports = {"./*": "./all/*", "./b/*": "./b/*", "./c/*.js": "./c/*.js", "./d/": "./d/", "./b/x": "./one.js"}
    files = dict.fromkeys(("all/a", "b/y", "c/z.js", "d/e", "one.js"), "")
    found = resolver(package("tool", files, exports=exports))
    for asked, file in (("a", "all/a"), ("b/y", "b/y"), ("b/x", "one.js"), ("c/z.js", "c/z.js"), ("d/e", "d/e")):
        assert found.resolve("x", f"tool/{asked}", "import") == f"node_modules/tool/{file}"
    monkeypatch.setattr("catalog.kinds.npm.resolution.MAX_PATTERNS", 3)
    with pytest.raises(Unresolved):
        resolver(package("tool", files, exports=exports)).resolve("x", "tool/a", "import")


def test_a_folder_is_its_main_or_its_index() -> None:
    own = package("tool", {"index.js": "", "lib/index.js": "", "lib.js": "", "data/index.json": "{}"}, main="lib/")
    found = resolver(own)
    assert found.resolve("x", "tool", "require") == "node_modules/tool/lib.js"
    assert found.resolve("node_modules/tool/index.js", "./lib/", "require") == "node_modules/tool/lib/index.js"
    assert found.resolve("node_modules/tool/index.js", "./data", "require") == "node_modules/tool/data/index.json"
    assert found.resolve("node_modules/tool/lib/index.js", "..", "require") == "node_modules/tool/lib.js"


def test_a_bundle_holds_what_can_be_reached_and_nothing_else() -> None:
    made = bundled(
        esm(
            'import { a } from "./a.js"; export * from"dep"; () => import("./later.js"); import fs from "fs";',
            package("dep", {"index.js": 'exports.x = require("./part")', "part.js": "", "unused.js": ""}),
            **{"a.js": "export const a = 1", "later.js": "", "unused.js": "", "README.md": ""},
        )
    )
    assert made.entry == "/node_modules/tool/index.js"
    assert sorted(id.removeprefix("/node_modules/") for id in made.modules) == [
        "dep/index.js",
        "dep/part.js",
        "tool/a.js",
        "tool/index.js",
        "tool/later.js",
    ]
    entry = made.modules[made.entry]
    assert entry["statics"] == ["/node_modules/tool/a.js", "/node_modules/dep/index.js"]
    assert "fs" not in entry["imports"]


def test_files_that_are_picked_by_name_come_along() -> None:
    made = bundled(
        cjs(
            "module.exports = (name) => require('./locale/' + name)",
            **{"locale/en.js": "", "locale/de.js": "", "x.js": ""},
        )
    )
    assert {id.rpartition("/")[2] for id in made.modules} == {"index.js", "en.js", "de.js"}


def test_a_specifier_may_hold_any_letter_but_is_no_template() -> None:
    wanted = sources.asked(
        "require('./cast$expr'); require(`./x$`); require(`./${name}`); import('$lib'); ({...require('./y')})", "cjs"
    )
    assert (wanted.requires, wanted.dynamics) == (("./cast$expr", "./x$", "./y"), ("$lib",))


def test_the_format_is_the_names_then_the_packages_then_the_texts() -> None:
    assert sources.format_of("a.mjs", "", {"type": "commonjs"}) == "esm"
    assert sources.format_of("a.cjs", "", {"type": "module"}) == "cjs"
    assert sources.format_of("a.js", "", {"type": "module"}) == "esm"
    assert sources.format_of("a.js", "", {}) == "cjs"
    assert sources.format_of("a.js", "var a=1;export{a as b}", {}) == "esm"
    assert sources.format_of("a.js", 'import x from "x"\nmodule.exports = x', {}) == "cjs"
    assert sources.format_of("a.js", "export const a = 1", {"type": "commonjs"}) == "cjs"
    assert sources.format_of("a.node", "", {}) == "native"


def test_hostile_text_is_scanned_in_time_that_grows_with_its_length() -> None:
    """PKG-18: counted in processor time, against a text of a quarter of the length."""
    shapes = [
        "import " * 40_000,
        "export{" * 40_000,
        "import{a,b} from " * 20_000,
        "require(" * 40_000,
        "import (/*" * 30_000,
    ]
    for shape in shapes:
        spent = []
        for text in (shape[: len(shape) // 4], shape):
            began = time.process_time()
            sources.asked(text, "esm")
            sources.format_of("a.js", text, {})
            spent.append(time.process_time() - began)
        assert spent[1] < 16 * spent[0] + 1, shape[:20]


def test_keywords_and_spaces_are_read_about_as_fast_as_other_text() -> None:
    """PKG-18: an expression that tries every way to read them takes a hundred times as long."""
    spent = []
    for text in ("value = 1; \n" * 20_000, ("import " + " " * 19) * 9_000, "\n" * 240_000):
        began = time.process_time()
        sources.asked(text, "esm")
        sources.format_of("a.js", text, {})
        spent.append(time.process_time() - began)
    assert max(spent[1:]) < 40 * spent[0], spent


def test_no_search_goes_through_much_text_at_once() -> None:
    """PKG-18: while one does, no other thread runs, and the host answers nobody."""
    spans = []

    class Pattern:
        def finditer(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
            spans.append((start, min(end, len(text))))
            return re.compile("import").finditer(text, start, end)

    text = "import" * 100_000
    found = [match.start() for match in sources._found(Pattern(), text)]  # type: ignore[arg-type]
    assert found == list(range(0, len(text), 6))
    assert max(end - start for start, end in spans) < 100_000


def test_a_word_before_another_statement_hides_no_import() -> None:
    text = "// what to import\nimport 'a'\nimport b, { c } from 'd'\nexport * from 'e'\nimport f\n, g 'h'\nxfrom 'i'"
    assert sources.asked(text, "esm").statics == ("a", "d", "e")
    assert sources.format_of("a.js", "x import\nimport 'a'", {}) == "esm"
    assert sources.format_of("a.js", "x import 'a'" + " " * 300 + "import 'b'", {}) == "cjs"


def test_a_bundle_that_takes_too_long_to_make_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PKG-18."""
    monkeypatch.setattr("catalog.kinds.npm.bundle.MAX_CPU_S", 0.0)
    for source in ("import './a.js'", "require('./b/' + x)"):
        with pytest.raises(TooLarge, match="takes more than 0 s"):
            bundled(esm(source))


def test_more_code_than_an_isolate_can_be_given_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """PKG-18."""
    monkeypatch.setattr("catalog.kinds.npm.bundle.MAX_BYTES", 1000)
    with pytest.raises(TooLarge):
        bundled(esm("//" + "x" * 2000))
