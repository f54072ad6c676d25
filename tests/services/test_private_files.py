"""Files with memories or secrets in them: private, whole, and named when they cannot be written."""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memservice.services.private_files import Unwritable, append, replacing
from memservice.services.transfer.lines import STANDARD, writing


@pytest.fixture(autouse=True)
def mask_that_lets_all_pass() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files may not grow beyond 64 kB in this process."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


def rights(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("name", ["w.jsonl", "w.jsonl.gz"])
def test_only_the_owner_may_read_an_export_at_any_time(tmp_path: Path, name: str) -> None:
    with writing(str(tmp_path / name)) as out:
        out.write(b"x" * 1_000_000)
        assert {rights(path) for path in tmp_path.iterdir()} == {0o600}
    assert [(path.name, rights(path)) for path in tmp_path.iterdir()] == [(name, 0o600)]


def test_an_export_does_not_follow_links(tmp_path: Path) -> None:
    """Neither through the name of the part file of old, nor through the name itself."""
    victim = tmp_path / "victim"
    victim.write_text("kept")
    for name in (".w.jsonl.part", "w.jsonl"):
        (tmp_path / name).symlink_to(victim)
    with writing(str(tmp_path / "w.jsonl")) as out:
        out.write(b"new")
    assert victim.read_text() == "kept"
    assert (tmp_path / "w.jsonl").read_bytes() == b"new"
    assert not (tmp_path / "w.jsonl").is_symlink()


def test_two_exports_to_one_name_do_not_mix(tmp_path: Path) -> None:
    target = tmp_path / "w.jsonl"
    with writing(str(target)) as first:
        first.write(b"first")
        with writing(str(target)) as second:
            second.write(b"second")
        assert target.read_bytes() == b"second"
    assert target.read_bytes() == b"first"
    assert len(list(tmp_path.iterdir())) == 1


def test_an_export_is_flushed_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def synced(opened: int) -> None:
        done.append(
            "folder"
            if stat.S_ISDIR(os.fstat(opened).st_mode)
            else f"file of {os.fstat(opened).st_size}"
        )
        sync(opened)

    def replaced(self: Path, target: Path) -> Path:
        done.append("name")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    with writing(str(tmp_path / "w.jsonl")) as out:
        out.write(b"12345")
    assert done == ["file of 5", "name", "folder"]


@pytest.mark.parametrize("name", ["w.jsonl", "w.jsonl.gz"])
def test_a_full_disk_is_reported_with_the_file_and_keeps_the_old_one(
    tmp_path: Path, name: str, full_disk: None
) -> None:
    target = tmp_path / name
    target.write_bytes(b"the last export")
    with pytest.raises(Unwritable) as caught, writing(str(target)) as out:
        for _ in range(100):
            out.write(os.urandom(10_000))
    assert str(caught.value) == f"{target} cannot be written: {os.strerror(errno.EFBIG)}"
    assert target.read_bytes() == b"the last export"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_under_standard_output_is_reported(
    tmp_path: Path, full_disk: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        pytest.raises(Unwritable, match=f"^a temporary file in {tmp_path} cannot be written: "),
        writing(STANDARD) as out,
    ):
        out.write(os.urandom(1_000_000))


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unwritable, match="there is no folder"), replacing(tmp_path / "no" / "w"):
        pass


def test_a_slow_reader_of_standard_output_holds_no_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All is read from the store before the first byte goes to a pipe that no program reads
    from."""
    receiving, sending = os.pipe()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(os.fdopen(sending, "wb")))
    read_all = threading.Event()

    def export() -> None:
        with writing(STANDARD) as out:
            for _ in range(50):
                out.write(b"x" * 10_000)
            read_all.set()
        sys.stdout.close()

    exporting = threading.Thread(target=export)
    exporting.start()
    assert read_all.wait(30), "500 kB are more than a pipe takes"
    time.sleep(0.1)
    assert exporting.is_alive()
    with os.fdopen(receiving, "rb") as pipe:
        assert len(pipe.read()) == 500_000
    exporting.join()


def test_traces_are_private_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    for text in ("one\n", "two \ud800\n"):
        with append(path) as file:
            file.write(text)
    assert path.read_bytes() == b"one\ntwo \xed\xa0\x80\n"
    assert rights(path) == 0o600


def test_changed_permissions_of_traces_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.touch()
    path.chmod(0o640)
    with append(path) as file:
        file.write("x")
    assert rights(path) == 0o640


def test_traces_do_not_follow_links(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError), append(tmp_path / "traces.jsonl"):
        pass
    assert not (tmp_path / "elsewhere").exists()
