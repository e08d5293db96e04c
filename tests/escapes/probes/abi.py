"""Ways past a filter of system calls: the same calls by the numbers of another architecture."""

import ctypes
import mmap
import platform

from probe import Lacking, in_child, probe
from syscalls import call_number, text

X32 = 0x40000000
ADD_KEY, ADD_KEY_OF_I386 = 248, 286
ANSWERS = ("EPERM", "ENOSYS", "SIGSYS")


def only_on_x86():
    if platform.machine() != "x86_64":
        raise Lacking("only x86-64 has other numbers")


@probe("seccomp filter", *ANSWERS)
def numbers_of_x32(facts):
    """puts a key into a keyring by the number that the call has in the x32 ABI"""
    only_on_x86()
    return in_child(add_key_by_x32)


def add_key_by_x32():
    call_number(X32 | ADD_KEY, text("user"), text("freehold-escape"), text("x"), 1, -2)
    return "a key, by x32"


@probe("seccomp filter", *ANSWERS)
def numbers_of_i386(facts):
    """puts a key into a keyring by the 32-bit entry of the kernel (int 0x80)"""
    only_on_x86()
    return in_child(add_key_by_i386)


def add_key_by_i386():
    # The 32-bit entry takes addresses below 4 GiB only: MAP_32BIT.
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    memory[256:264], memory[272:288], memory[304:306] = b"user\0\0\0\0", b"freehold-escape\0", b"x\0"
    code = b"\x53\x56\x57"  # push rbx, rsi, rdi
    for register, value in ((0xB8, ADD_KEY_OF_I386), (0xBB, base + 256), (0xB9, base + 272), (0xBA, base + 304)):
        code += bytes([register]) + value.to_bytes(4, "little")
    code += b"\xbe\x01\x00\x00\x00" + b"\xbf\xfe\xff\xff\xff"  # mov esi, 1; mov edi, -2
    code += b"\xcd\x80\x5f\x5e\x5b\xc3"  # int 0x80; pop rdi, rsi, rbx; ret
    memory[: len(code)] = code
    result = ctypes.CFUNCTYPE(ctypes.c_int)(base)()
    if result < 0:
        raise OSError(-result, "")
    return f"key {result}, by int 0x80"
