"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.pathlib import ImportMode, import_path
from hypothesis import settings

from memservice.services.members import passwords
from memservice_sql import storage as sql_storage
from memservice_sql.rows import Store
from memservice_sqlite import connections
from support import cpu_profile, quick, redis_server, sharing
from support.process_state import changes, process_state, restored_process
from support.processes.preloading import share_compiled_rules
from support.receiver import Receiver, receiving
from support.reports import send_needed_reports
from support.stores.stores import empty_store, make_empty_file

if TYPE_CHECKING:
    from argon2 import PasswordHasher

    from support.scheduling import FileScheduling

share_compiled_rules()
pytest.register_assert_rewrite("support.api.shared_resources", "support.erasure.checking")

# The default, 700 new objects, looks for cycles so often that it takes an eighth of the time of a
# collection of tests, and 3 % of that of the tests.
gc.set_threshold(50_000, 20, 20)

ROOT = Path(__file__).resolve().parent.parent

DEFAULT_STORAGE = "memory"
STORAGES = {
    "storage_name": ("memory", "sqlite", "postgres"),
    "local_storage_name": ("memory", "sqlite"),
    "shared_storage_name": ("sqlite", "postgres"),
}
"""Argument of a test or fixture → the storages it runs on with `--storage all`: every one, those
that need no server, and those that several processes can share."""
VECTOR_INDEXES = ("sqlite+qdrant", "sqlite+redis", "postgres+qdrant", "postgres+redis")
"""A storage, and a vector index outside it: where a test is marked `every_index`."""

settings.register_profile("quick", max_examples=10, deadline=None)
settings.register_profile("default", max_examples=12, deadline=None)
settings.register_profile("full", max_examples=200, deadline=None)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--storage",
        choices=(*STORAGES["storage_name"], "all"),
        help="run the tests that need a store on this storage, or on all of them; without it, they "
        f"run on {DEFAULT_STORAGE}, and tests marked every_storage on those that the mark names, "
        "or on all of them if it names none",
    )


def storages_for(metafunc: pytest.Metafunc, argument: str) -> tuple[str, ...]:
    """The storages that a test runs on, by `--storage` and by its marks."""
    possible = STORAGES[argument]
    option = metafunc.config.getoption("--storage")
    if option == "all":
        indexes = metafunc.definition.get_closest_marker("every_index")
        return (*possible, *VECTOR_INDEXES) if indexes else possible
    mark = metafunc.definition.get_closest_marker("every_storage")
    if option is None and mark:
        marked = tuple(name for name in possible if name in mark.args or not mark.args)
        return marked or possible[:1]
    option = option or DEFAULT_STORAGE
    return (option,) if option in possible else possible[:1]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for argument in STORAGES:
        if argument in metafunc.fixturenames:
            metafunc.parametrize(argument, storages_for(metafunc, argument), scope="session")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FileScheduling | None:
    from support.scheduling import FileScheduling

    if config.getoption("dist") != "loadgroup":
        return None
    config.option.loadscopereorder = False
    return FileScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    if settings.get_current_profile_name() == "quick":
        # Examples from the constants of our modules are left to the other profiles. To read them
        # takes a second of CPU for each process, and five the first time.
        from hypothesis.internal.conjecture import providers

        patch = pytest.MonkeyPatch()
        patch.setattr(providers, "is_local_module_file", lambda path: False, raising=False)
    if hasattr(config, "workerinput"):
        send_needed_reports(config)
    if folder := os.environ.get(cpu_profile.VARIABLE):
        config.pluginmanager.register(cpu_profile.CpuProfile(Path(folder)), "cpu-profile")


def pytest_unconfigure() -> None:
    redis_server.end_shared()


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> list[pytest.Item] | None:
    """Make no items of what the quick profile leaves out: to make and to deselect them takes
    seconds in each process."""
    config = collector.config
    if not quick.is_quick(config.option.markexpr, config.args):
        return None
    return [] if quick.leaves_out(obj) or collector.get_closest_marker("slow") else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Import the test files and the product once for all processes of a whole run."""
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        from support.processes.preloaded import the_fork_server
        from support.processes.workers import fork_workers

        the_fork_server()
        for path in sorted((ROOT / "tests").rglob("test_*.py")):
            if path.parent.name == "benchmarks":  # its conftest.py makes them importable
                continue
            # The collection imports in the same way, and reports what fails. It ignores some files.
            with suppress(Exception, pytest.skip.Exception):
                import_path(
                    path,
                    mode=ImportMode.importlib,
                    root=config.rootpath,
                    consider_namespace_packages=False,
                )
        fork_workers(len(specs))


def pytest_collection_finish() -> None:
    """Leave modules and tests out of all later garbage collections: they stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of a file together. pytest sorts tests by their storage first, which
    interleaves files, and each change of file then sets up the fixtures of the module again."""
    files = {path: number for number, path in enumerate(sorted({item.path for item in items}))}
    items.sort(key=lambda item: files[item.path])
    if hasattr(config, "workerinput"):
        from support.scheduling import ordered

        items[:] = ordered(items)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Name long values after their argument. A generated file differs from process to process, by
    its time stamps for instance, and pytest-xdist refuses to run if test ids differ."""
    return argname if isinstance(val, bytes | str) and len(val) > 60 else None


STATE_BEFORE = pytest.StashKey[dict[str, Any]]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    item.stash[STATE_BEFORE] = process_state()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """A test that leaves the process changed fails, and not one that runs after it on some days."""
    yield
    if changed := changes(item.stash[STATE_BEFORE], process_state()):
        pytest.fail(f"use the fixture process_as_before: {'; '.join(changed)}", pytrace=False)


@pytest.fixture
def process_as_before() -> Iterator[None]:
    """For a test that sets signal handlers or the logging of its process."""
    with restored_process():
        yield


@pytest.fixture(scope="session", autouse=True)
def process_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set what all tests of this process share.

    The data directory of the user is an empty folder: no test may leave a store in the developer's.
    Stores, applications and clients share what each would otherwise compute again, for tens of
    milliseconds of CPU; `own_migrations`, `own_statements` and `hashes_at_full_cost` undo parts of
    it. This is one fixture, because pytest looks at each automatic fixture for each test.
    """
    os.environ["XDG_DATA_HOME"] = str(tmp_path_factory.mktemp("data"))
    with pytest.MonkeyPatch.context() as patch, passwords_hashed_with(fast_hasher):
        sharing.share_maps(patch)
        sharing.share_statements(patch)
        sharing.share_metadata(patch)
        sharing.find_hooks_fast(patch)
        sharing.share_certificates(patch)
        sharing.copy_new_stores(patch, empty_store)
        yield


@pytest.fixture
def own_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """New SQLite files are empty, and are migrated."""
    monkeypatch.setattr(connections, "_make", make_empty_file)


@pytest.fixture(scope="module")
def own_statements() -> Iterator[None]:
    """The stores that a test opens have statements of their own, for tests that look at them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sql_storage, "Store", Store)
        yield


@pytest.fixture
def hashes_at_full_cost() -> Iterator[None]:
    """Passwords are hashed with the parameters of the product."""
    with passwords_hashed_with(full_cost_hasher):
        yield


full_cost_hasher = passwords._hasher


@cache
def fast_hasher() -> PasswordHasher:
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@contextmanager
def passwords_hashed_with(hasher: Callable[[], PasswordHasher]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", hasher)
        passwords._decoy_hash.cache_clear()
        yield
    passwords._decoy_hash.cache_clear()


class FailedSubtests:
    """`pytest.Subtests` that report only what does not pass. The others have nothing to say, and to
    capture their output and report them takes longer than the request that most of them make."""

    def __init__(self, subtests: pytest.Subtests) -> None:
        self._subtests = subtests

    @contextmanager
    def test(self, msg: str | None = None, **context: Any) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with self._subtests.test(msg, **context):
                raise


@pytest.fixture
def subtests(subtests: pytest.Subtests) -> FailedSubtests:
    return FailedSubtests(subtests)


_folders = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder. The fixture of pytest lists the folders of all earlier tests for each."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    return tmp_path_factory.mktemp(f"{name}-{next(_folders)}", numbered=False)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def redis_url() -> str:
    """A real Redis, one for the whole run. Tests share it, so each uses a NAMESPACE of its own."""
    return redis_server.shared()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """An endpoint of webhooks on this machine."""
    with receiving() as opened:
        yield opened


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Nothing is skipped in silence: what was not exercised, how often, and what it needs."""
    reasons = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section("not exercised")
        for reason, number in sorted(reasons.items()):
            terminalreporter.write_line(f"{number} × {reason}")
    if terminalreporter.config.option.markexpr == "not heavy":
        terminalreporter.write_line(
            "what takes minutes, or repeats a rule on another storage, index or client, "
            "is run with -m heavy"
        )


def _reason(report: pytest.TestReport) -> str:
    reason = report.longrepr
    return str(reason[2] if isinstance(reason, tuple) else reason).removeprefix("Skipped: ")
