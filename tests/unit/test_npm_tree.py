"""The lock of an install and the tree that it stands for."""

from __future__ import annotations

import pytest

from catalog.kinds.npm.tree import Lock, Locked, PackageTree

A = Locked("node_modules/a", "a", "1.0.0", "sha512-AAAA")
B = Locked("node_modules/a/node_modules/@s/b", "@s/b", "2.0.0", "sha512-BBBB")


def test_a_lock_is_the_same_whatever_the_order_of_its_packages_and_comes_back_from_its_text() -> None:
    lock = Lock("a", "1.0.0", (B, A))
    assert lock == Lock("a", "1.0.0", (A, B))
    assert Lock.from_json(lock.to_json()) == lock
    assert lock.digest == Lock("a", "1.0.0", (A, B)).digest
    assert lock.digest != Lock("a", "1.0.0", (A,)).digest


@pytest.mark.parametrize(
    "text", [b"{}", b"[]", b"null", b'{"format":2}', b"nonsense", Lock("a", "1", ()).to_json() + b" "]
)
def test_a_lock_that_is_not_one_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever json says is as good
        Lock.from_json(text)


def test_a_tree_of_given_files_names_their_packages_and_changes_its_digest_with_a_byte() -> None:
    files = {
        "node_modules/a/package.json": b'{"name": "a", "version": "1.2.3"}',
        "node_modules/a/index.js": b"1",
        "node_modules/a/node_modules/@s/b/package.json": b'{"name": "@s/b", "version": "2.0.0"}',
        "node_modules/a/node_modules/@s/b/index.js": b"2",
    }
    tree = PackageTree.of("a", "1.2.3", files)
    assert [(one.at, one.version) for one in tree.lock.packages] == [
        ("node_modules/a", "1.2.3"),
        ("node_modules/a/node_modules/@s/b", "2.0.0"),
    ]
    assert dict(tree.under("node_modules/a")).keys() == {"package.json", "index.js"}
    changed = PackageTree.of("a", "1.2.3", files | {"node_modules/a/index.js": b"3"})
    assert tree.digest != changed.digest
    assert tree.root == "node_modules/a"
