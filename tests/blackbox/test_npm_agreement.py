"""Trees as npm itself makes them: the same packages, at the same places, from the same registry on loopback."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from catalog.kinds.npm.manifest import NODE
from guest import images
from guest.npm import node
from tests.unit.npm_registry import Shelf, installer, registry

pytestmark = pytest.mark.anyio

Packages = dict[str, dict[str, Any]]
D, P, O = "dependencies", "peerDependencies", "optionalDependencies"  # noqa: E741


def optional(*names: str) -> dict[str, Any]:
    return {"peerDependenciesMeta": {name: {"optional": True} for name in names}}


TREES: dict[str, Packages] = {
    "alone": {"root@1.0.0": {}},
    "chain": {"root@1.0.0": {D: {"a": "^1"}}, "a@1.2.0": {D: {"b": "~1.1.0"}}, "b@1.1.5": {}, "b@1.2.0": {}},
    "the newest in range, the tag before it": {
        "root@1.0.0": {D: {"a": ">=1"}},
        "a@3.0.0": {"tag": "next"},
        "a@2.0.0": {},
        "a@1.0.0": {"tag": "old"},
    },
    "prereleases and deprecation": {
        "root@1.0.0": {D: {"a": "^1", "b": "^2.0.0-beta.1"}},
        "a@1.5.0": {"deprecated": "no", "tag": "x"},
        "a@1.4.0": {"tag": "x"},
        "a@2.0.0": {},
        "b@2.0.0-beta.2": {"tag": "x"},
        "b@1.0.0": {},
    },
    "engines": {
        "root@1.0.0": {D: {"a": "^1"}},
        "a@1.1.0": {"engines": {"node": ">=99"}, "tag": "x"},
        "a@1.0.0": {"tag": "x"},
        "a@2.0.0": {},
    },
    "two versions, the first one higher": {
        "root@1.0.0": {D: {"a": "1", "b": "1"}},
        "a@1.0.0": {D: {"c": "1"}},
        "b@1.0.0": {D: {"c": "2"}},
        "c@1.0.0": {"tag": "x"},
        "c@2.0.0": {},
    },
    "a version that is further up serves": {
        "root@1.0.0": {D: {"c": "1.0.0", "a": "1"}},
        "a@1.0.0": {D: {"c": "1"}},
        "c@1.0.0": {"tag": "x"},
        "c@1.9.0": {},
    },
    "a dependency of its own displaces another's": {
        "root@1.0.0": {D: {"a": "1", "z": "1"}},
        "a@1.0.0": {D: {"m": "1"}},
        "m@1.0.0": {D: {"z": "2"}},
        "z@1.0.0": {"tag": "x"},
        "z@2.0.0": {},
    },
    "a circle": {"root@1.0.0": {D: {"a": "1"}}, "a@1.0.0": {D: {"b": "1"}}, "b@1.0.0": {D: {"a": "1", "root": "1"}}},
    "aliases": {
        "root@1.0.0": {D: {"other": "npm:c@1", "c": "2", "@s/c": "npm:c@^2.0.0"}},
        "c@1.0.0": {"tag": "x"},
        "c@2.0.0": {},
    },
    "peers beside who needs them": {
        "root@1.0.0": {D: {"a": "1"}},
        "a@1.0.0": {P: {"p": "^1"}},
        "p@1.3.0": {P: {"q": "*"}},
        "p@2.0.0": {},
        "q@5.0.0": {},
    },
    "a peer as its asker wants it": {
        "root@1.0.0": {D: {"a": "1", "p": "1.1.0"}},
        "a@1.0.0": {P: {"p": "^1"}},
        "p@1.1.0": {"tag": "x"},
        "p@1.3.0": {},
    },
    "a peer narrower than the dependency": {
        "root@1.0.0": {D: {"a": "1", "p": ">=1"}},
        "a@1.0.0": {P: {"p": "1"}},
        "p@1.1.0": {"tag": "x"},
        "p@2.3.0": {},
    },
    "optional peers": {
        "root@1.0.0": {D: {"a": "1", "b": "1"}},
        "a@1.0.0": {P: {"p": "^1", "q": "1"}} | optional("p", "q"),
        "b@1.0.0": {D: {"q": "1"}},
        "p@1.0.0": {},
        "q@1.0.0": {},
    },
    "an optional peer of another version": {
        "root@1.0.0": {D: {"a": "1", "p": "^2"}},
        "a@1.0.0": {P: {"p": "^1"}} | optional("p"),
        "p@1.0.0": {"tag": "x"},
        "p@2.0.0": {},
    },
    "peers of what is nested": {
        "root@1.0.0": {D: {"a": "1", "k": "2"}},
        "a@1.0.0": {D: {"k": "1", "p": "1"}},
        "k@1.0.0": {P: {"p": "1"}, "tag": "x"},
        "k@2.0.0": {P: {"p": "1 || 2"}},
        "p@1.0.0": {"tag": "x"},
        "p@2.0.0": {},
    },
    "optional dependencies that cannot be had": {
        "root@1.0.0": {O: {"gone": "1", "a": "9", "b": "1"}, D: {"c": "1"}},
        "a@1.0.0": {},
        "b@1.0.0": {D: {"missing": "1"}},
        "c@1.0.0": {O: {"b": "1"}},
    },
    "a name in two lists": {
        "root@1.0.0": {D: {"a": "1", "p": "1"}, O: {"a": "2"}, P: {"p": "2"}},
        "a@1.0.0": {"tag": "x"},
        "a@2.0.0": {},
        "p@1.0.0": {"tag": "x"},
        "p@2.0.0": {},
    },
    "names in npm's order": {
        "root@1.0.0": {D: {"b-a": "1", "b_a": "1", "B.a": "1", "@z/b": "1", "1b": "1", "b": "1"}},
        "b-a@1.0.0": {D: {"c": "1"}},
        "b_a@1.0.0": {D: {"c": "2"}},
        "B.a@1.0.0": {D: {"c": "3"}},
        "@z/b@1.0.0": {D: {"c": "4"}},
        "1b@1.0.0": {D: {"c": "5"}},
        "b@1.0.0": {D: {"c": "6"}},
        **{f"c@{n}.0.0": {} for n in range(1, 7)},
    },
    "odd ranges": {
        "root@1.0.0": {D: {"a": ">= 1.1 <2", "b": "1.x || >=2.5.0 || 5.0.0 - 7.2.3", "c": "", "d": "~1", "e": "next"}},
        "a@1.1.0": {},
        "b@7.2.0": {},
        "c@0.0.1": {},
        "d@1.9.9": {},
        "e@0.1.0-x.1": {"tag": "next"},
    },
}


ASK = """
const [, , path, projects, nodeVersion] = process.argv;
const Arborist = require(path);
const { mkdirSync, writeFileSync } = require("fs");
(async () => {
  const trees = [];
  for (const project of JSON.parse(projects)) {
    mkdirSync(project.path);
    writeFileSync(project.path + "/package.json", '{"name": "a-project", "version": "1.0.0"}');
    const options = { ...project, nodeVersion, cache: project.path + "/cache", audit: false, fund: false, save: true };
    const made = await new Arborist(options).buildIdealTree({ add: ["root@latest"], save: true });
    const there = [...made.inventory.values()].filter((one) => one.location && !one.inert);
    trees.push(Object.fromEntries(there.map((one) => [one.location, one.version])));
  }
  console.log(JSON.stringify(trees));
})().catch((error) => { console.error(error); process.exit(1); });
"""


def published(shelf: Shelf, packages: Packages) -> None:
    for label, facts in packages.items():
        name, _, version = label.rpartition("@")
        more = dict(facts)
        tag = more.pop("tag", "latest")
        shelf.publish(name, version, tags=(tag,), **more)


async def npm_trees(projects: list[dict[str, str]], folder: Path) -> list[dict[str, str]]:
    """What npm's own lockfile would have for the package `root` of each registry: versions by place."""
    own = await asyncio.to_thread(node, images.cache_dir())
    (folder / "ask.cjs").write_text(ASK)
    process = await asyncio.create_subprocess_exec(
        *map(str, own),
        str(folder / "ask.cjs"),
        str(arborist(Path(own[0]))),
        json.dumps(projects),
        NODE,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, told = await asyncio.wait_for(process.communicate(), 120)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    assert process.returncode == 0, told.decode()
    found: list[dict[str, str]] = json.loads(said)
    return found


def arborist(program: Path) -> Path:
    """The part of npm that makes trees."""
    beside = program.resolve().parent.parent / "lib" / "node_modules"
    places = [beside, Path("/usr/lib/node_modules"), Path("/usr/local/lib/node_modules")]
    known = (one / "npm" / "node_modules" / "@npmcli" / "arborist" for one in places)
    return next(path for path in known if path.is_dir())


async def test_trees_are_those_of_npms_own_lockfile(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ours, projects = [], []
        for index, packages in enumerate(TREES.values()):
            shelf = await stack.enter_async_context(registry())
            published(shelf, packages)
            npm = await stack.enter_async_context(installer(shelf, tmp_path / f"kept{index}"))
            lock = await npm.lock("root")
            ours.append({one.at: one.version for one in lock.packages})
            projects.append({"registry": shelf.url, "path": str(tmp_path / f"project{index}")})
        theirs = await npm_trees(projects, tmp_path)
    different = {name: (a, b) for name, a, b in zip(TREES, ours, theirs, strict=True) if a != b}
    assert different == {}
