# SPDX-License-Identifier: Apache-2.0
"""Linux' seccomp: which calls of the kernel this process and all that it becomes may make.

What reads foreign files needs no socket, no other process and no new process of its own, no mount, no
change of rights, times or attributes, no say in when other processes run, no news of who opens which files,
no memory that no limit counts (files without a name), and no memory, semaphores or queues that others can
open; those calls are refused with an error (EPERM), all others stay. Who may read what it makes stays as it
is: that is answered as if it were changed. It knows x86-64 and 64-bit ARM.

CUDA does not start (error 304) without a local socket of packets that it listens at (`@cuda-uvmfd-…`).
Where a GPU's driver is, there is that kind of socket, which leads nowhere: to connect and to accept are
refused there, too.

A model server may listen: at a socket of TCP by IPv4, and of nothing that Landlock would not know as TCP. It
accepts, and calls nobody: `connect` is refused, and so is what connects with the first word that is sent.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator, Sequence

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000
"""On x86-64 numbers from here on are those of another table."""
_PR_SET_SECCOMP, _FILTER = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Where they lie in what a filter sees (struct seccomp_data)."""

REFUSED: dict[str, tuple[int, int]] = {
    # name: its number on x86-64 and on 64-bit ARM; -1: it is not there
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept4": (288, 242),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "fork": (57, -1),
    "vfork": (58, -1),
    "execveat": (322, 281),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_send_signal": (424, 424),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "truncate": (76, 45),
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "file_setattr": (469, 469),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "inotify_init": (253, -1),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "syslog": (103, 116),
}
_OF_ITSELF: dict[str, tuple[int, int, int | None]] = {
    # name: its numbers, and which word before the process id says that one process is meant, no group or user
    "sched_setaffinity": (203, 122, None),
    "sched_setscheduler": (144, 119, None),
    "sched_setparam": (142, 118, None),
    "sched_setattr": (314, 274, None),
    "migrate_pages": (256, 238, None),
    "move_pages": (279, 239, None),
    "prlimit64": (302, 261, None),
    "setpriority": (141, 140, 0),
    "ioprio_set": (251, 30, 1),
}
"""What may be done to ourselves: to 0, which is the thread that calls, and to our process id.

A filter cannot know the ids of our other threads: what is for those is not done either.
"""
_ANSWERED = ("sched_setaffinity", "sched_setscheduler")
"""For others than our parent these are not done, and answered as if they were.

Where a new thread shall have a processor of its own (OMP_PROC_BIND), glibc asks for it by the thread's id,
and gives the thread up when that is refused.
"""
_CUDA = ("socket", "bind", "listen", "memfd_create")
"""What CUDA needs of them, or may; `socket` for one kind only."""
_LISTENING = ("socket", "bind", "listen", "accept", "accept4")
_THREAD, _STREAM, _KIND = 0x10000, 1, 0xF
_UNIX, _PACKETS = 1, 5
_IPV4, _TCP, _TCP_ULP = 2, 6, 31
"""The last makes another protocol of a socket."""
_FASTOPEN = 0x20000000
_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP, _PDEATHSIG = 0x5412, 0x541C, 0x8901, 0x8902, 1
_SETOWN, _SETOWN_EX = 8, 15
_SETFLAGS, _SETFLAGS32, _SETXATTR = 0x40086602, 0x40046602, 0x401C5820
_WHOLE = 0xFFFFFFFF
_OF_CUDA = ((0, (_UNIX,), _WHOLE), (1, (_PACKETS,), _KIND))
_OF_A_SERVER = ((0, (_IPV4,), _WHOLE), (1, (_STREAM,), _KIND), (2, (0, _TCP), _WHOLE))
"""Which sockets they have: their family, their kind, their protocol."""


def known() -> bool:
    """Whether this kernel and this processor have it."""
    if platform.machine() not in _MACHINES:
        return False
    # Without a filter to read the answer is EFAULT, without seccomp EINVAL.
    return _prctl(_PR_SET_SECCOMP, _FILTER, None) == errno.EFAULT


def restrict(own: int, *, cuda: bool, listens: bool = False) -> None:
    """From here on the calls above are refused. `own` is our process id. Raises OSError."""
    code = b"".join(_program(platform.machine(), own, cuda, listens))
    buffer = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    if number := _prctl(_PR_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(program)):
        raise OSError(number, os.strerror(number))


def _prctl(*arguments: object) -> int:
    """The error's number, or 0."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    return ctypes.get_errno() if prctl(*arguments) else 0


def _program(machine: str, own: int, cuda: bool, listens: bool) -> Iterator[bytes]:
    column = list(_MACHINES).index(machine)
    allowed = (*(_CUDA if cuda else ()), *(_LISTENING if listens else ()))

    def number(x86: int, arm: int) -> int:
        return (x86, arm)[column]

    refuse = [_step(_RETURN, _REFUSE | errno.EPERM)]
    yield from [_step(_LOAD, _ARCHITECTURE), _step(_EQUAL, _MACHINES[machine], 1, 0), *refuse]
    yield _step(_LOAD, _NUMBER)
    yield from [_step(_AT_LEAST, _X32, 0, 1), *refuse]
    for name, numbers in REFUSED.items():
        if name in allowed:
            continue
        if (found := number(*numbers)) >= 0:
            yield from [_step(_EQUAL, found, 0, 1), *refuse]
    # glibc asks for `clone3` first, whose flags a filter cannot see, and then for `clone`.
    yield from [_step(_EQUAL, 435, 0, 1), _step(_RETURN, _REFUSE | errno.ENOSYS)]
    yield from _only(number(56, 220), (0, [_THREAD], _THREAD))
    # umask: what it makes is for its own user, whatever it says. Libraries set it only to see what it was.
    yield from [_step(_EQUAL, number(95, 166), 0, 1), _step(_RETURN, _REFUSE)]
    if kinds := [*([_OF_CUDA] if cuda else []), *([_OF_A_SERVER] if listens else [])]:
        yield from _one_of(number(*REFUSED["socket"]), kinds)
    if listens:
        yield from _never(number(54, 208), 2, [_TCP_ULP])  # setsockopt
        for x86, arm, flags in ((44, 206, 3), (46, 211, 2), (307, 269, 3)):  # sendto, sendmsg, sendmmsg
            yield from _only(number(x86, arm), (flags, [0], _FASTOPEN))
    # socketpair: the only kind that stays connected
    yield from _only(number(53, 199), (1, [_STREAM], _KIND))
    for name, (x86, arm, one) in _OF_ITSELF.items():
        named = [] if one is None else [(0, [one], _WHOLE)]
        error = 0 if name in _ANSWERED else errno.EPERM
        yield from _only(
            number(x86, arm), *named, (len(named), [0, own], _WHOLE), error=error, known=[1, os.getppid()]
        )
    yield from _only(number(62, 129), (0, [own], _WHOLE))  # kill
    yield from _only(number(234, 131), (0, [own], _WHOLE))  # tgkill
    yield from _never(number(157, 167), 0, [_PDEATHSIG])  # prctl
    # ioctl: typing for others, attributes of files. And there and in fcntl: signals to others when something
    # can be read
    attributes = (_SETFLAGS, _SETFLAGS32, _SETXATTR)
    yield from _never(number(16, 29), 1, [_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP, *attributes])
    yield from _never(number(72, 25), 1, [_SETOWN, _SETOWN_EX])
    yield _step(_RETURN, _ALLOW)


def _only(
    call: int, *arguments: tuple[int, Sequence[int], int], error: int = errno.EPERM, known: Sequence[int] = ()
) -> Iterator[bytes]:
    """A call that is allowed with these values only. Of each argument: its place, its values, their bits.

    Others end in `error`; those that are `known` to be no thread of ours in EPERM.
    """
    body: list[bytes] = []
    for argument, values, mask in arguments:
        body += [_step(_LOAD, _ARGUMENTS + 8 * argument), _step(_AND, mask)]
        ends = [_step(_EQUAL, one, 0, 1) + _step(_RETURN, _REFUSE | errno.EPERM) for one in known]
        last = len(values) + 2 * len(ends)
        body += [_step(_EQUAL, value, last - place, 0) for place, value in enumerate(values)]
        body += [*ends, _step(_RETURN, _REFUSE | error)]
    body.append(_step(_RETURN, _ALLOW))
    yield _step(_EQUAL, call, 0, sum(len(part) // 8 for part in body))
    yield from body


def _one_of(call: int, kinds: Sequence[Sequence[tuple[int, Sequence[int], int]]]) -> Iterator[bytes]:
    """A call that is allowed where all arguments are as one of the kinds has them, each as in `_only`."""
    body: list[bytes] = []
    for kind in kinds:
        rest = [_step(_RETURN, _ALLOW)]
        for argument, values, mask in reversed(kind):
            last = len(values) - 1
            tests = [
                _step(_EQUAL, value, last - place, 0 if place < last else len(rest))
                for place, value in enumerate(values)
            ]
            rest = [_step(_LOAD, _ARGUMENTS + 8 * argument), _step(_AND, mask), *tests, *rest]
        body += rest
    body.append(_step(_RETURN, _REFUSE | errno.EPERM))
    yield _step(_EQUAL, call, 0, len(body))
    yield from body


def _never(call: int, argument: int, values: Sequence[int]) -> Iterator[bytes]:
    """A call that is refused with these values of an argument."""
    tests = [_step(_EQUAL, value, len(values) - place, 0) for place, value in enumerate(values)]
    body = [_step(_LOAD, _ARGUMENTS + 8 * argument), *tests]
    body += [_step(_RETURN, _ALLOW), _step(_RETURN, _REFUSE | errno.EPERM)]
    yield _step(_EQUAL, call, 0, len(body))
    yield from body


def _step(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)
