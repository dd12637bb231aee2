"""Damaged, foreign and malicious files: a FileFormatError that names the file, or a correct load; nothing else."""

import json
import pickle
import random
import zipfile
import zlib
from contextlib import suppress

import numpy as np
import pytest
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from nhsvm.errors import FileFormatError
from nhsvm.model import read_model, write_model

HEADER = {"labels": ["a", "é"], "n": 3}
ARRAYS = {"x": np.arange(3.0), "flags": np.array([True, False]), "f": np.arange(4, dtype=np.int32).reshape(2, 2).T}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


@pytest.fixture
def raw(path):
    write_model(path, HEADER, ARRAYS)
    return path.read_bytes()


def outcome(path, content):
    """True for a correct load, False for a FileFormatError that names the file."""
    path.unlink(missing_ok=True)  # ext4 waits for the disk when a file is overwritten
    path.write_bytes(content)
    message = None
    try:
        header, arrays = read_model(path)
    except FileFormatError as error:
        message = str(error)
    if message is not None:
        assert message.startswith(f"{path}: ")
        assert len(message) < 600
        return False
    assert header == HEADER
    assert arrays.keys() == ARRAYS.keys()
    assert all(np.array_equal(arrays[n], ARRAYS[n]) and arrays[n].dtype == ARRAYS[n].dtype for n in ARRAYS)
    return True


def test_truncated_at_every_length(path, raw):
    assert not any(outcome(path, raw[:n]) for n in range(len(raw)))
    assert outcome(path, raw)


def test_longer(path, raw):
    assert not outcome(path, raw + b"\0")
    with pytest.raises(FileFormatError, match="too long"):
        read_model(path)


def test_every_flipped_bit(path, raw):
    loads = []
    for position in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[position] ^= 1 << bit
            if outcome(path, changed):
                loads.append((position, bit))
    # only the blanks that pad the header may become other white space
    assert all(raw[position : position + 1] == b" " for position, _ in loads)


def test_every_byte_replaced(path, raw):
    rng = random.Random(0)
    for position in range(len(raw)):
        for byte in (ord('"'), ord("9"), rng.randrange(256)):
            changed = bytearray(raw)
            changed[position] = byte
            outcome(path, changed)


def test_random_damage(path, raw):
    rng = random.Random(1)
    for _ in range(600):
        changed = bytearray(raw)
        for _ in range(rng.randrange(1, 6)):
            a, b = rng.randrange(len(raw)), rng.randrange(1, 20)
            kind = rng.randrange(4)
            if kind == 0:
                del changed[a : a + b]
            elif kind == 1:
                changed[a:a] = rng.randbytes(b)
            elif kind == 2:
                changed[a : a + b] = rng.randbytes(b)
            else:
                changed[a : a + b] = changed[b : b + b]
        outcome(path, changed)


# -- foreign files -----------------------------------------------------------------------------------------------------


class Bomb:
    """Unpickling it makes a file."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_not_run(path, protocol):
    target = path.with_name("boom")
    path.write_bytes(pickle.dumps(Bomb(target), protocol=protocol))
    with pytest.raises(FileFormatError, match="not an nhsvm model") as caught:
        read_model(path)
    assert protocol < 2 or "pickle" in str(caught.value)
    assert not target.exists()


def test_foreign_files(path):
    def refused(match):
        with pytest.raises(FileFormatError, match=match):
            read_model(path)

    for content in (b"", b"x", b"\0" * 8, b"\0" * 100, b"\xff" * 100, b'{"a": 1}' * 9, bytes(range(256))):
        path.write_bytes(content)
        refused("not an nhsvm model|not valid JSON")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    refused("zip archive")
    np.savez(path.with_suffix(".npz"), a=np.ones(2))
    path.write_bytes(path.with_suffix(".npz").read_bytes())
    refused("zip archive")
    save_file({"a": np.ones(3)}, path)
    refused("another safetensors file")
    save_file({"a": np.ones(3)}, path, metadata={"format": "pt"})
    refused("another safetensors file")
    save_file({"a": np.ones(3)}, path, metadata={"nhsvm_format": "1"})
    refused("'nhsvm' is missing")


# -- hostile headers: every claim is changed with the checksum made to fit ---------------------------------------------


def build(path, *, document=None, text=None, tensors=None, metadata=None, outer=None, data=b"", length=None):
    """A file from parts, each of which can be wrong."""
    if text is None:
        text = json.dumps({"header": {}, "arrays": []} if document is None else document)
    if metadata is None:
        crc = f"{zlib.crc32(text.encode('utf-8', 'surrogatepass')):08x}"
        metadata = {"nhsvm_format": "1", "nhsvm_crc32": crc, "nhsvm": text}
    if outer is None:
        outer = json.dumps({"__metadata__": metadata, **(tensors or {})}).encode()
    path.write_bytes((len(outer) if length is None else length).to_bytes(8, "little") + outer + data)
    return path


def refused(path, match=None):
    with pytest.raises(FileFormatError, match=match) as caught:
        read_model(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < 600
    return str(caught.value)


def test_the_builder_builds_valid_files(path):
    assert read_model(build(path)) == ({}, {})
    entry = ["x", "F64", [2], "C", zlib.crc32(bytes(16))]
    tensors = {"x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
    build(path, document={"header": {}, "arrays": [entry]}, tensors=tensors, data=bytes(16))
    assert read_model(path)[1]["x"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("length", [2**64 - 1, 2**63, 10**12, 100_000_001, 10_000])
def test_a_header_that_claims_to_be_huge(path, length):
    refused(build(path, length=length), f"header of {length} bytes")


def test_a_sparse_file_with_a_huge_header(path):
    """The bytes are there, but nobody reads them."""
    with open(path, "wb") as file:
        file.write((2**31).to_bytes(8, "little"))
        file.truncate(2**32)
    refused(path, "not an nhsvm model")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a":' * 200_000,
        "[" * 200_000 + "]" * 200_000,
        "NaN",
        '{"header": {"x": NaN}, "arrays": []}',
        '{"header": {"x": -Infinity}, "arrays": []}',
        '{"header": {"x": ' + "9" * 5000 + '}, "arrays": []}',
        "null",
        "[]",
        "",
        "{}",
        '{"header": {}}',
        '{"arrays": []}',
        '{"header": [], "arrays": []}',
        '{"header": {}, "arrays": {}}',
        '{"header": {}, "arrays": [1]}',
        "\ufeff{}",
        "{} {}",
    ],
)
def test_bad_json(path, text):
    refused(build(path, text=text))
    refused(build(path, outer=text.encode()))


def test_bad_text(path):
    refused(build(path, outer=b'{"\xff": 1}'), "not valid JSON")
    refused(build(path, outer='{"a": 1}'.encode("utf-16")), "not valid JSON")
    refused(build(path, outer=b'{"__metadata__": {"nhsvm_format": "1", "nhsvm": "\\ud800", "nhsvm_crc32": "0"}}'))


@pytest.mark.parametrize("version", ["4", "5", "999999999"])
def test_newer_formats(path, version):
    build(path, metadata={"nhsvm_format": version})
    refused(path, rf"written by a newer version of nhsvm \(format {version}\); this one reads up to 3")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", "1 ", "x", "²", "٣", "9" * 5000, 1, None, [], {}])
def test_bad_formats(path, version):
    refused(build(path, metadata={"nhsvm_format": version}))


@pytest.mark.parametrize("metadata", [None, 1, "x", [], {}, {"nhsvm_format": "1", "nhsvm": 3, "nhsvm_crc32": "0"}])
def test_bad_metadata(path, metadata):
    refused(build(path, outer=json.dumps({"__metadata__": metadata}).encode()))


GOOD = ["x", "F64", [2], "C", zlib.crc32(bytes(16))]


@pytest.mark.parametrize(
    ("position", "value"),
    [
        (0, 3),
        (0, None),
        (1, "F128"),
        (1, "f64"),
        (1, "I64 "),
        (1, 8),
        (2, "2"),
        (2, [-2]),
        (2, [-1, -2]),
        (2, [2.0]),
        (2, [True, True]),
        (2, ["2"]),
        (2, [2**64]),
        (2, [2**61]),
        (2, [2**32, 2**32]),
        (2, [0, 2**62]),
        (2, [1] * 40),
        (2, [[2]]),
        (2, None),
        (3, "A"),
        (3, None),
        (4, None),
        (4, "0"),
        (4, -1),
        (4, 1.5),
    ],
)
def test_bad_entries(path, position, value):
    entry = list(GOOD)
    entry[position] = value
    for shape in ([2], value if isinstance(value, list) else [2]):
        tensors = {"x": {"dtype": "F64", "shape": shape, "data_offsets": [0, 16]}}
        build(path, document={"header": {}, "arrays": [entry]}, tensors=tensors, data=bytes(16))
        refused(path)


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": "F64", "shape": [2], "data_offsets": [0, 24]},
        {"dtype": "F64", "shape": [2], "data_offsets": [8, 24]},
        {"dtype": "F64", "shape": [2], "data_offsets": [16, 0]},
        {"dtype": "F64", "shape": [2], "data_offsets": [-16, 0]},
        {"dtype": "F64", "shape": [2], "data_offsets": [2**63, 2**63 + 16]},
        {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]},
        {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]},
        {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        {"dtype": "F64", "shape": [2]},
        {"dtype": "F64", "shape": [2], "data_offsets": [0, 16], "more": 1},
        [],
        None,
    ],
)
def test_tensors_that_are_not_as_listed(path, tensor):
    build(path, document={"header": {}, "arrays": [GOOD]}, tensors={"x": tensor}, data=bytes(16))
    refused(path, "not those that its own list names")


def test_missing_further_repeated_and_overlapping_arrays(path):
    tensor = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
    other = ["y", *GOOD[1:]]
    for entries, tensors in [
        ([GOOD], {}),
        ([], {"x": tensor}),
        ([GOOD, GOOD], {"x": tensor}),
        ([GOOD, GOOD], {"x": {**tensor, "data_offsets": [16, 32]}}),
        ([GOOD, other], {"x": tensor, "y": tensor}),
        ([GOOD, other], {"y": tensor, "x": {**tensor, "data_offsets": [16, 32]}}),
    ]:
        build(path, document={"header": {}, "arrays": entries}, tensors=tensors, data=bytes(32))
        refused(path, "not those that its own list names")


def test_sizes(path):
    tensors = {"x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}}
    document = {"header": {}, "arrays": [GOOD]}
    refused(build(path, document=document, tensors=tensors, data=bytes(15)), "cut short: 1 bytes are missing")
    refused(build(path, document=document, tensors=tensors, data=bytes(17)), "too long")


def test_bools_that_are_neither(path):
    data = b"\0\1\2"
    entry = ["x", "BOOL", [3], "C", zlib.crc32(data)]
    tensors = {"x": {"dtype": "BOOL", "shape": [3], "data_offsets": [0, 3]}}
    build(path, document={"header": {}, "arrays": [entry]}, tensors=tensors, data=data)
    refused(path, "other values than 0 and 1")


def test_what_the_safetensors_library_would_accept_is_not_less(path, raw):
    """Whatever loads here, the safetensors library loads too: no file is valid for one and a riddle to the other."""
    rng = random.Random(2)
    for _ in range(300):
        changed = bytearray(raw)
        changed[rng.randrange(len(raw))] = rng.randrange(256)
        if outcome(path, changed):
            assert load_file(path).keys() == ARRAYS.keys()
        else:
            with suppress(SafetensorError, OSError, KeyError):
                load_file(path)  # its checks see less: no checksum
