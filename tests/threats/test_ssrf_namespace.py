"""The SSRF group against real sinks: a private network with a listener on every address that is nobody's business.

Where the kernel gives no network namespace, the same calls run against names that a resolver in the process answers and
one sink on loopback; what must hold is the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.threats.namespace import ANSWERS, PUBLIC, SPELLINGS

ROOT = Path(__file__).parents[2]
REFUSED = {"egress_denied", "invalid_arguments"}
UNRESOLVED = {"circle", "nothing"}


def run(mode: str, *before: str) -> dict[str, Any]:
    command = [*before, sys.executable, "-m", "tests.threats.namespace", mode]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def own_network() -> list[str] | None:
    """The command that gives a process a network and mounts of its own; None where there is none."""
    ready = "ip link set lo up && ip addr add 10.0.0.5 dev lo && mount --bind /etc/hosts /etc/resolv.conf"
    for command in (["unshare", "-nm"], ["unshare", "-Urnm"]):
        try:
            if subprocess.run([*command, "sh", "-c", ready], capture_output=True, check=False).returncode == 0:
                return command
        except OSError:
            pass
    return None


@pytest.fixture(scope="module", params=["namespace", "loopback"])
def results(request: pytest.FixtureRequest) -> dict[str, Any]:
    command = own_network() if request.param == "namespace" else None
    return run("namespace", *command) if command else run("loopback")


def test_a_name_leads_nowhere_when_any_of_its_addresses_is_not_public(results: dict[str, Any]) -> None:
    """SSRF-12 SSRF-13 SSRF-14 SSRF-15 SSRF-16 SSRF-19"""
    for name in ANSWERS.keys() - {"public", "flip", "own"}:
        wanted = "upstream_unreachable" if name in UNRESOLVED else "egress_denied"
        assert results["names"][name] == wanted, name


def test_the_machines_own_public_address_is_refused_unless_it_was_named(results: dict[str, Any]) -> None:
    assert results["names"]["public"] == "done"
    # Outside a namespace the address is somebody else's, and no packet may get there.
    assert results["names"]["own"] in ("egress_denied", "upstream_unreachable", "upstream_timeout")
    if results["mode"] == "namespace":
        assert results["names"]["own"] == "egress_denied"


def test_a_name_that_changes_its_address_is_checked_at_each_connection(results: dict[str, Any]) -> None:
    """SSRF-17 SSRF-18"""
    assert results["flip"] == ["done", "egress_denied"]
    assert results["asked"] == 2


@pytest.mark.parametrize("host", SPELLINGS)
def test_no_spelling_of_a_private_host_is_called(host: str, results: dict[str, Any]) -> None:
    """SSRF-02 SSRF-04 SSRF-05 SSRF-06 SSRF-08 SSRF-09 SSRF-10 SSRF-12 SSRF-27 SSRF-28"""
    assert results["spellings"][host] in REFUSED


def test_no_redirect_leads_inside(results: dict[str, Any]) -> None:
    """SSRF-20"""
    assert {target: code for target, code in results["redirects"].items() if code != "egress_denied"} == {}


def test_only_the_sink_that_was_meant_has_got_a_byte(results: dict[str, Any]) -> None:
    """SSRF-34: nor has the proxy of the environment, which is the sink on 10.0.0.5."""
    meant = PUBLIC if results["mode"] == "namespace" else "127.0.0.2"
    assert {address for address, count in results["bytes"].items() if count} == {meant}
