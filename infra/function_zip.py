"""The zip of a function. As a program (`BINARY ZIP`), it packs as small as it can, with libdeflate."""

import contextlib
import hashlib
import os
import shutil
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

# A fixed time, the oldest that the zip format allows: equal programs give equal zips, and equal keys in the bucket.
TIME = (1980, 1, 1, 0, 0, 0)
# The highest level of libdeflate.
SMALLEST = 12
# The sections that only unwinding reads. A panic of a function ends its program without unwinding.
UNWIND_TABLES = (b".eh_frame", b".eh_frame_hdr")


class _Packed:
    """A compressor for `zipfile`, which has none but zlib's. libdeflate packs a whole text at once."""

    def __init__(self):
        self.parts = []

    def compress(self, part):
        self.parts.append(bytes(part))
        return b""

    def flush(self):
        import deflate

        return bytes(deflate.deflate_compress(b"".join(self.parts), SMALLEST))


def write(binary, zipped, level):
    """Writes a zip with `binary` as its only entry, `bootstrap`; readers never see a partial zip."""
    zipped.parent.mkdir(parents=True, exist_ok=True)
    draft = zipped.with_name(f"{zipped.name}.{os.getpid()}")
    entry = zipfile.ZipInfo("bootstrap", TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # Unix: the high 16 bits of external_attr are the file mode
    entry.external_attr = 0o100755 << 16
    with zipfile.ZipFile(draft, "w") as archive:
        archive.writestr(entry, binary.read_bytes(), compresslevel=level)
    with zipfile.ZipFile(draft) as archive:
        if archive.read("bootstrap") != binary.read_bytes():
            draft.unlink()
            sys.exit(f"`{draft}` does not unpack to `{binary}`")
    draft.rename(zipped)


def without_unwind_tables(program):
    """Returns the program (ELF, 64 bits, little-endian) with zeros in place of its unwind tables.

    For a reader, zeros are an empty table, and in a zip they take no space. The compiler writes tables although `panic`
    is `abort`.
    """
    changed = bytearray(program)
    if program[:6] != b"\x7fELF\x02\x01":
        sys.exit("the program of a function is not a 64-bit ELF program, so its unwind tables cannot be found")
    (headers,) = struct.unpack_from("<Q", program, 0x28)
    size, count, names = struct.unpack_from("<HHH", program, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", program, headers + at * size) for at in range(count)]
    texts = sections[names][4]
    for name, _, _, _, offset, length in sections:
        if program[texts + name : program.index(b"\0", texts + name)] in UNWIND_TABLES:
            changed[offset : offset + length] = bytes(length)
    return bytes(changed)


def unpack(zipped, folder):
    """Unpacks a zip below `folder`, unless it is there already; returns the folder's name, the SHA-256 of the zip."""
    packed = zipped.read_bytes()
    name = hashlib.sha256(packed).hexdigest()
    if (folder / name).exists():
        # The time of the folder is that of its last use.
        os.utime(folder / name)
    else:
        draft = folder / f"{name}.{os.getpid()}"
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        with zipfile.ZipFile(zipped) as archive:
            archive.extract("bootstrap", draft)
        (draft / "bootstrap").chmod(0o555)
        # Readers never see a partial program, nor one that is still open for writing. Another process may be faster.
        with contextlib.suppress(OSError):
            draft.rename(folder / name)
        shutil.rmtree(draft, ignore_errors=True)
    return name


if __name__ == "__main__":
    zipfile._get_compressor = lambda *_: _Packed()
    with tempfile.TemporaryDirectory() as place:
        small = Path(place) / "bootstrap"
        small.write_bytes(without_unwind_tables(Path(sys.argv[1]).read_bytes()))
        write(small, Path(sys.argv[2]), level=9)
