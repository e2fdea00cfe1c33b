"""Compiled code on disk and in memory: found again, checked, bounded, unloaded, shared by threads."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_query.llvm import kernels as kernels_module
from trident_query.llvm.engine import LlvmQuery
from trident_query.llvm.host import Host, host, make_host, object_code
from trident_query.llvm.kernels import Kernels
from trident_query.llvm.loader import LIBRARIES_MAX, Library
from trident_query.llvm.objects import ObjectCache, Stored, default_folder

FOUR = "define i64 @four(i64 %x) {\n %y = add i64 %x, 4\n ret i64 %y\n}"


@pytest.fixture(scope="module")
def four() -> bytes:
    return object_code(FOUR, host())


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "objects")


def maker(code: bytes = b"code") -> tuple[Callable[[], Stored], list[int]]:
    calls: list[int] = []

    def make() -> Stored:
        calls.append(1)
        return Stored(code, {"n": len(calls)})

    return make, calls


def only_file(cache: ObjectCache) -> Path:
    (path,) = cache.folder.iterdir()
    return path


def test_what_was_made_once_is_found_again(cache: ObjectCache) -> None:
    make, calls = maker()
    assert cache.get("a", make) == (Stored(b"code", {"n": 1}), False)
    assert cache.get("a", make) == (Stored(b"code", {"n": 1}), True)
    assert ObjectCache(cache.folder).get("a", make)[1] is True
    assert len(calls) == 1
    cache.get("b", make)
    assert len(calls) == 2
    assert stat.S_IMODE(cache.folder.stat().st_mode) == 0o700


def test_each_damaged_byte_and_each_cut_is_noticed(cache: ObjectCache) -> None:
    make, _ = maker(b"some code")
    cache.get("a", make)
    path = only_file(cache)
    whole = path.read_bytes()
    damages = [whole[:i] + bytes([whole[i] ^ 0x10]) + whole[i + 1 :] for i in range(len(whole))]
    damages += [whole[:n] for n in range(len(whole))] + [whole + b"\0", b""]
    for number, damaged in enumerate(damages, 1):
        path.write_bytes(damaged)
        stored, found = cache.get("a", make)
        assert (stored.code, found, cache.damaged) == (b"some code", False, number)
        assert cache.get("a", make)[1], "it was made again"


def test_the_folder_stays_under_its_cap_and_keeps_what_is_used(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path, bytes_max=10_000)
    make, _ = maker(b"x" * 900)
    for number in range(20):
        cache.get(str(number), make)
        path = max(tmp_path.iterdir(), key=lambda p: p.stat().st_mtime_ns)
        os.utime(path, (time.time() - 90_000 + number,) * 2)
    assert cache.get("3", make)[1], "used: now it is the newest"
    (tmp_path / "left.new").write_bytes(b"x" * 50_000)
    os.utime(tmp_path / "left.new", (0, 0))
    cache.evict()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 10_000
    assert cache.get("3", make)[1]
    assert cache.get("19", make)[1]
    assert not cache.get("5", make)[1]
    assert not (tmp_path / "left.new").exists()


def test_a_folder_that_others_can_write_is_not_trusted(cache: ObjectCache) -> None:
    make, calls = maker()
    cache.get("a", make)
    cache.folder.chmod(0o777)
    assert not cache.get("a", make)[1]
    assert "written by others" in cache.problem
    assert len(calls) == 2


def test_no_folder_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = ObjectCache(tmp_path / "file" / "objects")
    make, _ = maker()
    assert cache.get("a", make) == (Stored(b"code", {"n": 1}), False)
    assert cache.problem


def test_where_the_folder_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRIDENT_LLVM_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("TRIDENT_LLVM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "trident" / "llvm"


def test_code_is_keyed_by_all_it_depends_on() -> None:
    known = host()
    keys = {known.key()}
    for change in ({"cpu": "another"}, {"features": ""}, {"width": 64}, {"triple": "x"}):
        keys.add(dataclasses.replace(known, **change).key())  # type: ignore[arg-type]
    assert len(keys) == 5
    assert "22." in known.key() or "llvm" not in known.key()


@pytest.mark.parametrize(
    ("triple", "features", "width", "shuffles"),
    [
        ("x86_64-unknown-linux-gnu", "+sse2,+ssse3,+avx2", 32, True),
        ("x86_64-unknown-linux-gnu", "+sse2,+ssse3,-avx2", 16, True),
        ("x86_64-unknown-linux-gnu", "+sse2,-ssse3", 16, False),
        ("aarch64-unknown-linux-gnu", "+neon", 16, False),
    ],
)
def test_vectors_of_a_cpu(triple: str, features: str, width: int, shuffles: bool) -> None:
    made: Host = make_host(triple, "", features)
    assert (made.width, made.shuffles) == (width, shuffles)


def test_a_cached_program_loads_in_milliseconds(tmp_path: Path) -> None:
    """A second process finds the code; from the pattern to the first answer it takes a few ms."""
    script = (
        "import time, numpy as np\n"
        "from trident_query.llvm.engine import LlvmQuery\n"
        "column = np.array([b'AAPL', b'MSFT'] * 50, 'S8')\n"
        "q = LlvmQuery(); q.compile('^x').match(column); began = time.perf_counter()\n"
        "p = q.compile('^[A-Z]{4}[WRU] *$|PL'); p.match(column)\n"
        "print(time.perf_counter() - began, p.explain()['columns'][0]['from'])\n"
    )
    environment = {**os.environ, "TRIDENT_LLVM_CACHE": str(tmp_path)}
    runs = []
    for _ in range(4):
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        seconds, source = done.stdout.split()
        runs.append((float(seconds), source))
    assert [source for _, source in runs] == ["compiled", "disk", "disk", "disk"]
    assert min(seconds for seconds, _ in runs[1:]) < 0.005


def test_the_least_recently_used_code_goes_first(cache: ObjectCache, four: bytes) -> None:
    kept = Kernels(cache, count_max=3)
    make, _ = maker(four)

    def get(key: str) -> kernels_module.Kernel:
        return kept.get(key, host(), "four", (ctypes.c_int64,), make)

    first = get("a")
    get("b")
    get("c")
    assert get("a") is first
    get("d")
    assert get("a") is first
    assert get("b").source == "disk", "it had to be loaded again"
    assert len(kept._kernels) == 3
    kept.clear()
    assert first.call(3) == 7, "who holds a kernel may call it"


def _pages(address: int) -> str:
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, rights = line.split()[:2]
            low, high = (int(part, 16) for part in span.split("-"))
            if low <= address < high:
                return rights
    return "unmapped"


def test_code_is_never_writable_and_executable_and_can_be_unloaded(four: bytes) -> None:
    library = Library(four, ["four"])
    function = library.function("four", ctypes.c_int64, ctypes.c_int64)
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    assert function(1) == 5
    assert _pages(address) == "r-xp"
    library.close()
    library.close()
    assert _pages(address) != "r-xp"


def _resident_kb() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_programs(cache: ObjectCache, four: bytes) -> None:
    """10,000 programs, each used once and evicted; a session that kept them would hold 90 MB."""
    kept = Kernels(cache, count_max=8)
    make, _ = maker(four)

    def use(numbers: range) -> None:
        for number in numbers:
            cache.get = lambda key, make: (make(), False)  # type: ignore[method-assign]
            assert kept.get(str(number), host(), "four", (ctypes.c_int64,), make).call(number) == number + 4

    use(range(2 * LIBRARIES_MAX))
    before = _resident_kb()
    use(range(2 * LIBRARIES_MAX, 10_000))
    assert _resident_kb() - before < 8_000


def test_threads_share_programs(llvm: LlvmQuery) -> None:
    """Eight threads compile, match, scan and forget the same patterns; each answer is right."""
    column = np.array([b"AAPL", b"MSFT", b"ZZZZ", b"B"] * 500, "S8")
    text = b" ".join(column.tolist()) * 3
    patterns = ["^A", "F", "Z{2}", "B|A", "A.?P", "(?:S|F)+"]
    expected = {p: (llvm.compile(p).match(column).tobytes(), llvm.compile(p).spans(text)) for p in patterns}
    shared = {p: llvm.compile(p) for p in patterns}
    failures: list[object] = []

    def work(seed: int) -> None:
        try:
            for turn in range(30):
                pattern = patterns[(seed + turn) % len(patterns)]
                program = shared[pattern] if turn % 2 else LlvmQuery().compile(pattern)
                if turn % 7 == seed % 7:
                    kernels_module.kernels().clear()
                got = program.match(column).tobytes(), program.spans(text)
                if got != expected[pattern]:
                    failures.append((seed, turn, pattern))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_code_runs_without_the_gil(llvm: LlvmQuery) -> None:
    """While one thread is in a single call (a second or so: one value, 2^30 times), another gets to count."""
    program = llvm.compile("^[A-Z]*[AB][A-Z]{6} *$")
    column = np.broadcast_to(np.zeros(8, np.uint8), (1 << 30, 8))
    program.count(column[:32])
    scanning = threading.Thread(target=program.count, args=(column,))
    counted = 0
    scanning.start()
    while scanning.is_alive():
        counted += 1
        time.sleep(0)
    assert counted > 50
