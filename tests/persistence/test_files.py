"""Writing and reading of model files: round trips, atomicity, permissions, memory maps."""

import errno
import os
import stat
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import safe_open
from safetensors.numpy import load_file

from nhsvm.errors import FileFormatError, NHSVMError, OptionError
from nhsvm.model import read_model, write_model

DTYPES = ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]
HEADER = {"a": [1, 2.5, None, True, "ü\n\"'\\", {"b": {}}], "": []}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.nhsvm"


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    header=st.dictionaries(st.text(), json_values, max_size=4),
    arrays=st.dictionaries(
        st.text("abc/", min_size=1, max_size=4),
        st.sampled_from(DTYPES).flatmap(lambda t: hnp.arrays(t, hnp.array_shapes(min_dims=0, min_side=0, max_side=4))),
        max_size=4,
    ),
    transpose=st.booleans(),
)
def test_round_trip(tmp_path_factory, header, arrays, transpose):
    path = tmp_path_factory.mktemp("m") / "m"
    arrays = {name: a.T if transpose else a for name, a in arrays.items()}
    write_model(path, header, arrays)
    found, back = read_model(path, verify=True)
    assert found == header
    assert back.keys() == arrays.keys()
    assert all(same(back[name], arrays[name]) for name in arrays)
    other = load_file(path)  # the safetensors library reads the same
    assert all(other[name].ravel("K").tobytes() == back[name].ravel("K").tobytes() for name in arrays)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(path, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    write_model(path, {}, {"x": array})
    assert same(read_model(path)[1]["x"], array)


def test_lone_surrogates_survive(path):
    header = {"labels": ["caf\udce9", "é", "😀"]}
    write_model(path, header, {})
    assert read_model(path) == (header, {})
    assert safe_open(path, "np").metadata()["nhsvm_format"] == "1"


def test_orders(path):
    base = np.arange(24.0).reshape(2, 3, 4)
    arrays = {
        "c": base,
        "f": np.asfortranarray(base),
        "t": base.T,
        "strided": base[:, ::2, 1:],
        "permuted": base.transpose(1, 0, 2),
        "reversed": base[::-1],
        "broadcast": np.broadcast_to(np.float32(7), (3, 2)),
        "big_endian": base.astype(">f8"),
        "big_endian_f": np.asfortranarray(base.astype(">i4")),
        "scalar": np.array(3.5),
        "empty": np.empty((0, 3)),
        "empty_f": np.empty((3, 0), order="F"),
    }
    write_model(path, {}, arrays)
    back = read_model(path, verify=True)[1]
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array)
        assert back[name].dtype == array.dtype.newbyteorder("=")
    assert back["f"].flags.f_contiguous
    assert back["t"].flags.f_contiguous
    assert load_file(path)["f"].shape == (4, 3, 2)


def test_arrays_are_mapped_read_only_and_aligned(path):
    write_model(path, {"k": "x" * 3}, {"b": np.ones(3, bool), "x": np.arange(5.0), "h": np.ones(7, np.float16)})
    arrays = read_model(path)[1]
    for array in arrays.values():
        assert array.flags.aligned
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


def test_large_arrays_are_not_read(path):
    """Data beyond the first megabyte may be wrong without notice, unless asked."""
    write_model(path, {}, {"x": np.zeros(300_000), "f": np.zeros((600, 500), order="F")})
    raw = bytearray(path.read_bytes())
    raw[-100] ^= 1
    path.write_bytes(raw)
    read_model(path)
    with pytest.raises(FileFormatError, match=r"array 'x' is damaged.*checksum"):
        read_model(path, verify=True)


def test_a_mapped_file_can_be_replaced(path):
    write_model(path, {}, {"x": np.arange(300_000.0)})
    old = read_model(path)[1]["x"]
    write_model(path, {}, {"x": np.zeros(3)})
    np.testing.assert_array_equal(old, np.arange(300_000.0))
    write_model(path, {}, {"x": old})  # a loaded model can be saved over its own file
    write_model(path, {}, read_model(path)[1])
    np.testing.assert_array_equal(read_model(path)[1]["x"], old)


def test_same_model_same_bytes(tmp_path):
    arrays = {"b": np.ones(2, np.float32), "a": np.eye(3), "c": np.zeros(2, np.float32)}
    write_model(tmp_path / "1", HEADER, arrays)
    write_model(tmp_path / "2", HEADER, dict(reversed(arrays.items())))
    write_model(tmp_path / "3", *read_model(tmp_path / "1"))
    assert len({(tmp_path / n).read_bytes() for n in "123"}) == 1


# -- atomic writing ---------------------------------------------------------------------------------------------------


def fail(*args, **kwargs):
    raise OSError(errno.ENOSPC, "no space left")


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("how", [fail, interrupt])
@pytest.mark.parametrize("where", ["replace", "fsync", "chmod"])
@pytest.mark.parametrize("existing", [True, False])
def test_a_failure_leaves_the_old_file_and_nothing_else(path, monkeypatch, where, how, existing):
    if where == "chmod" and not existing:
        pytest.skip("a new file needs no chmod")
    if existing:
        write_model(path, {"old": True}, {})
    with monkeypatch.context() as patch:
        patch.setattr(os, where, how)
        with pytest.raises((OSError, KeyboardInterrupt)):
            write_model(path, {"new": True}, {"x": np.zeros(10)})
    assert os.listdir(path.parent) == ([path.name] if existing else [])
    if existing:
        assert read_model(path) == ({"old": True}, {})


def test_a_full_disk(path):
    """A write that fails half-way is an OSError; the limit is set in a process of its own."""
    write_model(path, {"old": True}, {})
    code = f"""
import resource, signal, numpy as np
from nhsvm.model import write_model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
try:
    write_model({str(path)!r}, {{}}, {{"x": np.ones(100_000)}})
except OSError as error:
    print(error.errno)
"""
    pytest.importorskip("resource")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == str(errno.EFBIG)
    assert os.listdir(path.parent) == [path.name]
    assert read_model(path)[0] == {"old": True}


def test_a_killed_process_leaves_the_old_file(path):
    write_model(path, {"old": True}, {})
    code = f"""
import os, numpy as np
from nhsvm.model import write_model
os.replace = lambda *args: os._exit(9)
write_model({str(path)!r}, {{}}, {{"x": np.ones(1000)}})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    assert read_model(path)[0] == {"old": True}


def test_data_are_on_disk_before_the_file_is_replaced(path, monkeypatch):
    steps = []
    fsync, replace = os.fsync, os.replace

    def synced(descriptor):
        size = os.fstat(descriptor).st_size
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else f"file of {size}")
        fsync(descriptor)

    def replaced(*names):
        steps.append("replace")
        replace(*names)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_model(path, {}, {"x": np.ones(100)})
    assert steps == [f"file of {path.stat().st_size}", "replace", "folder"]


@pytest.mark.parametrize(
    ("header", "arrays", "match"),
    [
        ({"x": np.int64(1)}, {}, "int64 is not JSON"),
        ({"x": float("nan")}, {}, "not JSON compliant"),
        ({"x": (1, 2)}, {}, "come back changed"),
        ({"x": {1: 2}}, {}, "come back changed"),
        ({"x": "\ud83d\ude00"}, {}, "come back changed"),
        ({"x": object()}, {}, "cannot be stored as JSON"),
        ({}, {"x": np.array(["a"])}, "'x' is of type <U1"),
        ({}, {"x": np.array([None])}, "'x' is of type object"),
        ({}, {"x": np.ones(2, complex)}, "'x' is of type complex128"),
        ({}, {"x": np.ones(2, "M8[s]")}, "'x' is of type datetime64"),
        ({}, {"x": np.ones(2, np.longdouble)}, "'x' is of type"),
        ({}, {"x": np.zeros(2, [("a", int)])}, "'x' is of type"),
        ({}, {"x": np.ma.masked_equal([1, 2], 1)}, "'x' is of type"),
        ({}, {"x": [1.0]}, "'x' is of type list"),
        ({}, {"__metadata__": np.ones(2)}, "cannot be called"),
        ({}, {"\ud800": np.ones(2)}, "cannot be called"),
        ({}, {3: np.ones(2)}, "cannot be called 3"),
    ],
)
def test_what_cannot_be_stored_is_refused_before_a_file_is_touched(path, header, arrays, match):
    with pytest.raises(NHSVMError, match=match):
        write_model(path, header, arrays)
    assert not os.listdir(path.parent)


def test_a_header_that_safetensors_would_not_read_is_refused(path, monkeypatch):
    monkeypatch.setattr("nhsvm.model.file.MAX_HEADER", 1000)
    with pytest.raises(NHSVMError, match="a file can hold 1000"):
        write_model(path, {"x": "y" * 1000}, {})
    assert not os.listdir(path.parent)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="numpy 2")
def test_the_string_arrays_of_numpy_2_are_refused(path):
    with pytest.raises(NHSVMError, match="'x' is of type StringDType"):
        write_model(path, {}, {"x": np.array(["a"], dtype=np.dtypes.StringDType())})


def test_deep_headers_are_refused(path):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(NHSVMError, match="cannot be stored as JSON"):
        write_model(path, {"x": deep}, {})
    assert not os.listdir(path.parent)


@pytest.mark.skipif(os.name != "posix", reason="permissions")
def test_permissions(path):
    old = os.umask(0o027)
    try:
        write_model(path, {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o604)
        write_model(path, {}, {})
        assert stat.S_IMODE(path.stat().st_mode) == 0o604
    finally:
        os.umask(old)


def test_a_link_stays_a_link(path):
    link = path.with_name("link")
    link.symlink_to(path)
    write_model(link, {"x": 1}, {})
    write_model(str(link), {"x": 2}, {})
    assert link.is_symlink()
    assert read_model(path)[0] == {"x": 2}


def test_places_that_are_no_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_model(tmp_path / "missing")
    with pytest.raises(FileNotFoundError):
        write_model(tmp_path / "missing" / "model", {}, {})
    for act in (read_model, lambda p: write_model(p, {}, {})):
        with pytest.raises(IsADirectoryError):
            act(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileFormatError, match="pipe: not a regular file"):
        read_model(tmp_path / "pipe")
    with pytest.raises(OptionError, match="pipe is not a regular file"):
        write_model(tmp_path / "pipe", {}, {})
    assert os.listdir(tmp_path) == ["pipe"]


def test_metadata_of_a_safetensors_reader(path):
    write_model(path, {"x": 1}, {"a": np.eye(2)})
    metadata = safe_open(path, "np").metadata()
    assert metadata["nhsvm_crc32"] == f"{zlib.crc32(metadata['nhsvm'].encode()):08x}"
    assert set(metadata) == {"nhsvm", "nhsvm_crc32", "nhsvm_format"}
