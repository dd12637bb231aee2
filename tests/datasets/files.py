"""What the tests of all readers share: small files, and damage that any reader must report."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nhsvm import Hierarchy
from nhsvm.errors import FileFormatError

NUMBERS = Hierarchy.from_edges([(1, 2), (1, 3), (3, 4), (3, 5)])
NAMES = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])


def put(folder: Path, name: str, content: str | bytes) -> Path:
    """Write text or bytes under a name, gzipped if the name says so."""
    raw = content if isinstance(content, bytes) else content.encode()
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def fails(read, file, line, problem, **options):
    """Reading fails at this place, for this reason."""
    with pytest.raises(FileFormatError) as caught:
        read(file, **options)
    error = caught.value
    assert (error.path, error.line) == (str(file), line)
    assert problem in error.problem
    return error


def check_damage(read, tmp_path, good: str, name: str, monkeypatch, **options):
    """Damage that has nothing to do with the format; ``good`` can be read."""
    whole = put(tmp_path, name, good)
    assert read(whole, **options).n_samples
    packed = put(tmp_path, name + ".gz", good)
    assert read(packed, **options).n_samples == read(whole, **options).n_samples
    unnamed = tmp_path / ("packed_" + name)  # gzip is told by its first bytes
    unnamed.write_bytes(packed.read_bytes())
    assert read(unnamed, **options).n_samples
    for cut in (packed.read_bytes()[:-12], packed.read_bytes()[:15], b"\x1f\x8b"):
        fails(read, put(tmp_path, "cut_" + name, cut), None, "not a whole gzip file", **options)
    raw = bytearray(packed.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    fails(read, put(tmp_path, "flipped_" + name, bytes(raw)), None, "not a whole gzip file", **options)
    fails(read, tmp_path / "absent" / name, None, "cannot be read: No such file", **options)
    fails(read, tmp_path, None, "cannot be read: Is a directory", **options)
    fails(read, put(tmp_path, "empty_" + name, b""), None, "empty", **options)
    with pytest.raises(FileFormatError):
        read(put(tmp_path, "junk_" + name, bytes(range(256)) * 40), **options)

    forbidden = put(tmp_path, "forbidden_" + name, good)

    def refuse(self, *args, **kwargs):  # root may read anything, so permissions cannot be taken away here
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        fails(read, forbidden, None, "cannot be read: Permission denied", **options)
