"""A seccomp filter, built and installed without help: an allow-list for a process that only computes.

What the worker never does by itself but an attacker would (start a program, open a socket, trace, map code) ends the
process at once. Everything else that is not on the list fails with EPERM: the C library tries some such calls in normal
operation and copes, for instance glibc opening /proc/sys/vm/overcommit_memory when an arena shrinks.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from typing import Final

from runtime.engine.prefault import PIDFD_SELF

_PR_SET_SECCOMP: Final = 22
_SECCOMP_SET_MODE_FILTER: Final = 1
_FLAG_TSYNC: Final = 1

_ALLOW: Final = 0x7FFF0000
_EPERM: Final = 0x00050000 | 1
_KILL: Final = 0x80000000

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_NUMBER: Final = 0
_ARCH: Final = 4
_ARGUMENT_0: Final = 16  # low half of the first argument on a little-endian machine
_ARGUMENT_2: Final = 32

_LOW_HALF: Final = 0xFFFF_FFFF
_PROT_EXEC: Final = 4
_X32: Final = 0x40000000

_ARCHES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SECCOMP_CALL: Final = {"x86_64": 317, "aarch64": 277}

# name: (x86_64, aarch64); None where the architecture has no such call.
ALLOWED: Final[dict[str, tuple[int, int | None]]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "lseek": (8, 62),
    "fstat": (5, 80),
    "poll": (7, None),
    "ppoll": (271, 73),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "mincore": (27, 232),
    "madvise": (28, 233),
    "nanosleep": (35, 101),
    "getpid": (39, 172),
    "sendto": (44, 206),
    "recvfrom": (45, 207),
    "shutdown": (48, 210),
    "exit": (60, 93),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "exit_group": (231, 94),
    "set_robust_list": (273, 99),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "rseq": (334, 293),
}
ON_ITSELF: Final = {"process_madvise": (440, 440)}
"""Allowed when the process that it names is the caller itself, see `runtime.engine.prefault`."""
WITHOUT_EXEC: Final[dict[str, tuple[int, int | None]]] = {"mmap": (9, 222), "mprotect": (10, 226)}
"""Allowed as long as no page becomes executable."""

KILLED: Final[dict[str, tuple[int, int | None]]] = {
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "sendmsg": (46, 211),
    "recvmsg": (47, 212),
    "bind": (49, 200),
    "listen": (50, 201),
    "socketpair": (53, 199),
    "clone": (56, 220),
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "kill": (62, 129),
    "ptrace": (101, 117),
    "setuid": (105, 146),
    "capset": (126, 91),
    "personality": (135, 92),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "init_module": (175, 105),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "finit_module": (313, 273),
    "memfd_create": (319, 279),
    "bpf": (321, 280),
    "execveat": (322, 281),
    "userfaultfd": (323, 282),
    "pkey_mprotect": (329, 288),
    "pidfd_send_signal": (424, 424),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "clone3": (435, 435),
    "pidfd_getfd": (438, 438),
}


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def program(machine: str) -> bytes:
    """The filter for `machine` (`x86_64` or `aarch64`) as BPF instructions of 8 bytes each."""
    column = 0 if machine == "x86_64" else 1
    code: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, _ARCHES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL)]
    for table, action in ((ALLOWED, _ALLOW), (KILLED, _KILL)):
        for row in table.values():
            if (number := row[column]) is not None:
                code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, action)]
    for itself in ON_ITSELF.values():
        code += [
            (_EQUAL, 0, 4, itself[column]),
            (_LOAD, 0, 0, _ARGUMENT_0),
            (_EQUAL, 0, 1, PIDFD_SELF & _LOW_HALF),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _EPERM),
        ]
    for row in WITHOUT_EXEC.values():
        number = row[column]
        assert number is not None
        code += [
            (_EQUAL, 0, 4, number),
            (_LOAD, 0, 0, _ARGUMENT_2),
            (_ANY_BIT, 0, 1, _PROT_EXEC),
            (_RETURN, 0, 0, _KILL),
            (_RETURN, 0, 0, _ALLOW),
        ]
    code.append((_RETURN, 0, 0, _EPERM))
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in code)


def install() -> bool:
    """Put the filter on every thread of this process; False where the kernel or the machine has none.

    Needs no_new_privs. There is no way back.
    """
    machine = platform.machine()
    if not sys.platform.startswith("linux") or machine not in _ARCHES:
        return False
    code = program(machine)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = _Program(len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(_SECCOMP_CALL[machine], _SECCOMP_SET_MODE_FILTER, _FLAG_TSYNC, ctypes.byref(filter_)) == 0)
