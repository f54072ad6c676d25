"""Imports point one way, and the core names no backend."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from support.project.sources import modules, nodes

pytestmark = pytest.mark.xdist_group("sources")

FOUNDATION = {"domain", "spi"}
CONFIGURED = FOUNDATION | {"hookspecs", "settings", "plugins"}
RULES = CONFIGURED | {
    "reasoning",
    "telemetry",
    "compute_lock",
    "timed_calls",
    "runtime",
    "services",
}
WORK = RULES | {"pipeline", "worker", "operations", "compose"}

ALLOWED: dict[str, set[str]] = {
    "__init__": set(),
    "domain": {"domain"},
    "spi": FOUNDATION,
    "hookspecs": FOUNDATION,
    "settings": {"settings", "domain"},
    "plugins": CONFIGURED,
    "compute_lock": {"spi"},
    "reasoning": CONFIGURED | {"compute_lock", "reasoning"},
    "telemetry": CONFIGURED | {"telemetry", "__init__"},
    "timed_calls": {"compute_lock", "spi"},
    "runtime": CONFIGURED | {"reasoning", "telemetry", "timed_calls"},
    "services": RULES | {"__init__"},
    "pipeline": RULES | {"pipeline"},
    "worker": RULES | {"pipeline", "worker", "__init__"},
    "operations": RULES | {"pipeline", "worker", "operations", "__init__"},
    "compose": RULES | {"worker"},
    "testing": RULES | {"testing", "app", "compose"},
    "api": WORK | {"api", "__init__"},
    "app": WORK | {"api", "app", "__init__"},
    "cli": WORK | {"api", "app", "cli", "serving", "__init__"},
    "serving": WORK | {"api", "app", "serving", "__init__"},
    "__main__": {"cli"},
}
"""Room of the core → the rooms it may import.
`api, cli → operations → worker → pipeline → services → reasoning → spi → domain`."""

SHELF_MAY_USE = FOUNDATION | {"hookspecs"}
CLIENTS = {"memservice_console", "memservice_mcp"}
CLIENTS_MAY_USE = SHELF_MAY_USE | {"services", "operations", "runtime", "settings", "__init__"}
"""They are clients of the services, as the API is: they come with the release that they call, and
open no storage themselves."""
SHARED_LIBRARIES = {"memservice_sql", "memservice_http"}

ROOMS = {
    "flask": {"api", "app", "cli", "serving", "hookspecs", "testing"},
    "flask_smorest": {"api", "app"},
    "werkzeug": {"api", "app", "serving"},
    "webargs": {"api"},
    "sqlalchemy": set(),
    "alembic": set(),
    "gunicorn": {"cli", "serving", "app"},
    "click": {"cli", "hookspecs"},
    "rq": {"worker", "cli"},
    "redis": {"worker", "operations", "cli"},
    "httpx": {"telemetry", "cli"},
    "prometheus_client": {"telemetry"},
}
"""Library → the only rooms of the core that may import it; the shelves may import what they
need."""

BACKENDS = re.compile(
    r"sqlite|postgres|psycopg|pgvector|qdrant|redis|memservice_(memory|hashed|extractive|sql)\b"
    r"|openai|anthropic|gemini|(?-i:jsonl|JSONL)",
    re.I,
)
NAMED_ON_PURPOSE = {
    ("settings/service.py", "sqlite:///memservice.db"): "the default URI",
    ("settings/service.py", "redis_url"): "the variable that the contract calls REDIS_URL",
    ("settings/models.py", "openai"): "the default transport",
    ("settings/families.py", "WEBHOOK_JSONL_DIRECTORY"): "the former name of a plugin's setting",
    ("settings/families.py", "jsonl"): "the plugin that has it now",
}
RUNNER = re.compile(r"\bredis|redis_url|REDIS_URL", re.I)
"""Redis as the carrier of RQ's queues, which are the core's own; only where work is run, or told
of."""
TOKENIZER = re.compile("openai")
TOKENIZER_FILE = "domain/tokens.py"
"""A vocabulary that the names of its packages call so."""
RUNNER_ROOMS = {"worker", "operations", "cli", "serving", "compose"}


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every absolute module name that is imported, wherever in the file; a `from` import of a
    package names its parts."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            if node.module == "memservice":
                yield from ((node.lineno, f"memservice.{alias.name}") for alias in node.names)
            elif node.module:
                yield node.lineno, node.module


def package_of(name: str) -> str:
    """`memservice.api.errors` → `api`; `memservice.__version__` → `__init__`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and not parts[1].startswith("__version") else "__init__"


def circles(package: Path) -> list[list[str]]:
    """Groups of modules that import each other, by any import wherever it stands."""
    names = {}
    for file, tree in modules(package):
        parts = file.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = tree
    imported = {name: sorted(targets(tree, names.keys()) - {name}) for name, tree in names.items()}
    above: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        pending = [name]
        while pending:
            for target in imported[pending.pop()]:
                if name not in above[target]:
                    above[target].add(name)
                    pending.append(target)
    groups = {
        tuple(sorted(other for other in above[name] if name in above[other])) for name in names
    }
    return [list(group) for group in sorted(groups) if group]


def targets(tree: ast.Module, allowed: Collection[str]) -> set[str]:
    """Those of the known modules that a module imports. A package is a target if a name is taken
    that is no module of it."""
    chosen = set()
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            chosen |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            chosen |= {name if name in allowed else node.module for name in names}
    return chosen & set(allowed)


def test_the_core_imports_one_way(root: Path) -> None:
    core = root / "memservice"
    wrong = []
    for file, tree in modules(core):
        here = file.relative_to(core).parts[0].removesuffix(".py")
        assert here in ALLOWED, (
            f"memservice/{here} is a new room: say in ALLOWED what it may import"
        )
        for line, name in imports(tree):
            top = name.partition(".")[0]
            if top == "memservice" and package_of(name) not in ALLOWED[here]:
                wrong.append(f"{file.relative_to(root)}:{line}: {here} imports {name}")
            elif top.startswith("memservice_"):
                wrong.append(f"{file.relative_to(root)}:{line}: the core imports {name}")
            elif top in ROOMS and here not in ROOMS[top]:
                wrong.append(f"{file.relative_to(root)}:{line}: {top} does not belong in {here}")
    assert wrong == []


@pytest.mark.slow
def test_no_module_imports_itself_through_others(root: Path) -> None:
    """Imports for type checkers and those inside functions count too."""
    assert circles(root / "memservice") == []
    for shelf in ("backends", "plugins"):
        for package in sorted((root / shelf).glob("memservice_*")):
            assert circles(package) == []


@pytest.mark.parametrize(
    "line",
    [
        "import house.one",
        "from house.one import A",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house import one",
        "def f() -> None:\n    import house.one",
    ],
)
def test_the_check_for_cycles_detects_them(tmp_path: Path, line: str) -> None:
    for folder, first_line, groups in (
        ("without", "", []),
        ("with", line, [["house.one", "house.three", "house.two"]]),
    ):
        house = tmp_path / folder / "house"
        house.mkdir(parents=True)
        (house / "__init__.py").touch()
        (house / "one.py").write_text("from house import two\nA = 1\n")
        (house / "two.py").write_text("from house.three import C\n")
        (house / "three.py").write_text(f"{first_line}\nC = 1\n")
        assert circles(house) == groups


@pytest.mark.slow
@pytest.mark.parametrize("shelf", ["backends", "plugins"])
def test_shelves_import_only_the_seams(root: Path, shelf: str) -> None:
    wrong = []
    for file, tree in modules(root / shelf):
        own = file.relative_to(root / shelf).parts[0]
        allowed = CLIENTS_MAY_USE if own in CLIENTS else SHELF_MAY_USE
        for line, name in imports(tree):
            top = name.partition(".")[0]
            if top == "memservice" and package_of(name) not in allowed:
                wrong.append(f"{file.relative_to(root)}:{line}: imports {name}")
            elif top.startswith("memservice_") and top not in {own, *SHARED_LIBRARIES}:
                wrong.append(f"{file.relative_to(root)}:{line}: imports its neighbour {name}")
    assert wrong == []


def words_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names and texts of the code itself: not comments, not docstrings, which may explain by
    comparison."""
    prose = {
        id(node.value)
        for parent in nodes(tree)
        if isinstance(parent, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for node in parent.body
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
        for field in ("id", "attr", "arg", "name", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield getattr(node, "lineno", 0), value


SCRIPTED_SERVERS = {"testing/model_protocols.py", "testing/badmodel.py"}
"""Servers for tests, which speak the protocols of providers."""


@cache
def names_a_backend(word: str) -> bool:
    return BACKENDS.search(word) is not None


@pytest.mark.slow
def test_the_core_names_no_backend(root: Path) -> None:
    core = root / "memservice"
    wrong, excused = [], set()
    for file, tree in modules(core):
        path = file.relative_to(core)
        if path.as_posix() in SCRIPTED_SERVERS:
            continue
        for line, word in words_of(tree):
            if path.as_posix() == TOKENIZER_FILE:
                word = TOKENIZER.sub("", word)
            if not names_a_backend(word):
                continue
            excuse = (path.as_posix(), word)
            if excuse in NAMED_ON_PURPOSE:
                excused.add(excuse)
            elif not (
                path.parts[0].removesuffix(".py") in RUNNER_ROOMS
                and not BACKENDS.search(RUNNER.sub("", word))
            ):
                wrong.append(f"memservice/{path}:{line}: {word[:80]}")
    assert wrong == []
    assert excused == set(NAMED_ON_PURPOSE), "an exception that nothing needs any more"


def test_the_check_for_backends_covers_names_texts_and_imports() -> None:
    tree = ast.parse(
        '"""sqlite in prose"""\nimport qdrant_client\nx = "postgresql://"\nsqlite_path = '
        "1\ny.redis = 2\n"
    )
    assert {line for line, word in words_of(tree) if BACKENDS.search(word)} == {2, 3, 4, 5}


GENERATION = re.compile(
    r"(?<![a-z0-9])v[12](?![a-z0-9])"
    r"|(first|second|old|older|early|earliest)_?generation|generation_?(1|2|one|two)(?![a-z0-9])",
    re.I,
)
OLDER = {"v1", "v2"}
FIELDS = {"v1_name", "v1_role"}
"""Fields of records, and the columns of stores."""
RULES_OF_V1 = "memservice.services.v1"
NAMES_A_GENERATION: dict[str, tuple[set[str], str]] = {
    "domain/records": (FIELDS, "the records"),
    "spi/schema.py": ({"v1_name"}, "names are unique"),
    "testing/storage": (FIELDS, "the kit stores records"),
    "settings/service.py": (
        {
            *(f"{generation}_enabled" for generation in OLDER),
            *(f"{generation}_deprecated_since" for generation in OLDER),
            "v1_shared_sessions",
        },
        "settings that operators know",
    ),
    "api/generations.py": (
        {
            *OLDER,
            *(f"{generation}_enabled" for generation in OLDER),
            *(f"{generation}_deprecated_since" for generation in OLDER),
        },
        "mounts the generations",
    ),
    "api/auth.py": ({RULES_OF_V1}, "keys and paths may name resources by uid"),
    "services/auth/api_keys.py": ({RULES_OF_V1}, "revokes keys that name uids"),
    "services/members/visitors.py": ({RULES_OF_V1}, "such a key may sign in at the console"),
    "services/auth/bounds.py": ({RULES_OF_V1}, "bounds leave out named collections"),
    "pipeline/summarize.py": ({RULES_OF_V1}, "metamessages show summaries"),
    "services/erasure/peers.py": ({"v1_name", "v1_role"}, "an erased peer loses them"),
    "services/erasure/person.py": ({"v1_name", "v1_role"}, "they belong to the person"),
    "services/erasure/notes.py": ({RULES_OF_V1}, "metamessages quote erased texts"),
    "services/workspaces.py": ({"v1_name"}, "a new workspace has a name, too"),
    "services/peers.py": ({"v1_name"}, "a new peer has a name, too, and is shown with it"),
    "services/scopes.py": ({"v1_name"}, "a scope is a peer"),
    "services/transfer/importing.py": ({"v1_name"}, "the name may be taken"),
    "services/transfer/histories/conversion.py": (FIELDS, "writes the records of an export"),
    "cli/remote_workspace.py": (FIELDS, "writes the records of an export"),
}
"""File or folder → the identifiers in it that name a generation of the API, and the reason."""


def generations_named(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Names, modules, and texts that are names."""
    for line, word in words_of(tree):
        if names_a_generation(word):
            yield line, word


@cache
def names_a_generation(word: str) -> bool:
    return bool(GENERATION.search(word) and re.fullmatch(r"[\w.]+", word))


@pytest.mark.slow
def test_shared_rules_name_no_generation(root: Path) -> None:
    """They name a capability instead, for instance `include_archived`."""
    core = root / "memservice"
    wrong, excused = [], set()
    for file, tree in modules(core):
        path = file.relative_to(core)
        if OLDER & set(path.parts):
            continue
        excuses = {path.as_posix(), path.parent.as_posix()} & NAMES_A_GENERATION.keys()
        for line, word in generations_named(tree):
            matching = {
                (excuse, word) for excuse in excuses if word in NAMES_A_GENERATION[excuse][0]
            }
            excused |= matching
            if not matching:
                wrong.append(f"memservice/{path}:{line}: {word}")
    assert wrong == [], (
        "name the capability, or move the rule to services/v1 or v2; "
        "else give a reason in NAMES_A_GENERATION"
    )
    listed = {(path, word) for path, (words, _) in NAMES_A_GENERATION.items() for word in words}
    assert listed - excused == set(), "an exception that is not needed"


def test_the_check_for_generations_covers_names_texts_and_imports() -> None:
    tree = ast.parse(
        '"""v1 in prose"""\nfrom memservice.services.v1 import keys\nx.v2_name = 1\ny = "v1_role"\n'
        "f(is_v1=1)\nfirst_generation = 1\nMINILM_L6_V20 = 1\nbase = '/v1 of a model'\n"
        "def only_generation_2(): pass\n"
    )
    assert {line for line, _ in generations_named(tree)} == {2, 3, 4, 5, 6, 9}


CONTEXT_OF_FLASK = {"request", "g", "current_app", "has_request_context", "session"}
READS_REQUESTS = {"v2/routes.py": "reads the client, once a request"}


def from_flask(tree: ast.Module) -> set[str]:
    """The names that a module imports from Flask; all of Flask has the request, too."""
    names = set()
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "flask":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {"request" for alias in node.names if alias.name.partition(".")[0] == "flask"}
    return names


def test_handlers_and_schemas_of_generations_read_no_request(root: Path) -> None:
    """A handler gets a `Call`; the same schema reads the same input on every path."""
    api = root / "memservice" / "api"
    readers = {
        file.relative_to(api).as_posix()
        for generation in ("v1", "v2", "v3")
        for file, tree in modules(api / generation)
        if CONTEXT_OF_FLASK & from_flask(tree)
    }
    assert readers == set(READS_REQUESTS)


@pytest.mark.parametrize(
    "code", ["from flask import request", "import flask", "from flask.globals import current_app"]
)
def test_the_check_of_requests_detects_violations(code: str) -> None:
    assert CONTEXT_OF_FLASK & from_flask(ast.parse(code))


def changes_to_a_runtime(tree: ast.Module) -> Iterator[int]:
    """Lines that set a part of a runtime, or make one outside the composition root."""
    for node in nodes(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Attribute) and ast.unparse(target.value) in RUNTIMES:
                    yield node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "Runtime":
            yield node.lineno


RUNTIMES = {"rt", "runtime", "self.rt", "self.runtime", "self._rt", "self._runtime"}


@pytest.mark.slow
def test_only_the_composition_root_creates_a_runtime(root: Path) -> None:
    core = root / "memservice"
    wrong = [
        f"{file.relative_to(root)}:{line}"
        for file, tree in modules(core)
        if file.name != "compose.py"
        for line in changes_to_a_runtime(tree)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "code",
    ["rt.storage = x", "self._rt.clock: T = x", "runtime.a += [x]", "Runtime(settings, plugins)"],
)
def test_the_check_of_runtimes_detects_violations(code: str) -> None:
    assert list(changes_to_a_runtime(ast.parse(code))) == [1]


PARTS_OF_A_REQUEST = {"body", "query", "path", "header"}


def request_locations(tree: ast.Module) -> Iterator[int]:
    """Lines that give a problem a location in a request, `("body", "name")`, instead of an
    argument."""
    for _, name, call in called(tree):
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Tuple) and first.elts:
            several, first = len(first.elts) > 1, first.elts[0]
        else:
            several = len(call.args) > 1 and name == "at"
        if (
            several
            and name in {"at", "Problem"}
            and isinstance(first, ast.Constant)
            and first.value in PARTS_OF_A_REQUEST
        ):
            yield call.lineno


@pytest.mark.slow
def test_rules_name_arguments_not_parts_of_a_request(root: Path) -> None:
    wrong = [
        f"{file.relative_to(root)}:{line}"
        for folder in ("memservice/services", "memservice/domain/filters", "plugins")
        for file, tree in modules(root / folder)
        for line in request_locations(tree)
    ]
    assert wrong == []


def test_the_check_of_locations_detects_violations() -> None:
    tree = ast.parse(
        'InvalidInput.at("body", "a", message="")\nProblem(("query", "a"), "")\n'
        'InvalidInput.at("query", message="")\nProblem(("a", "query"), "")\n'
    )
    assert list(request_locations(tree)) == [1, 2]


MAX_PARAMETERS = 7
LONGER = {
    "enqueue": "one task's fields",
    "of_steps": "an event's fields, by keyword only",
    "query": "the fields of one request",
}


def test_services_take_few_parameters(root: Path) -> None:
    """What belongs together travels as one object."""
    core = root / "memservice"
    long = {
        node.name
        for file, tree in modules(core)
        if file.is_relative_to(core / "services")
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef)
        and len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs])
        - (bool(node.args.args) and node.args.args[0].arg in {"self", "cls"})
        > MAX_PARAMETERS
    }
    assert long == set(LONGER)


MAKES_PRINCIPALS = {
    "services/auth/policy.py": "of a request's claims",
    "cli/operator.py": "for commands",
    "testing/application.py": "for the keys of a test",
}
ASKS_FOR_PRINCIPALS = {
    "services/auth/policy.py",
    "api/auth.py",
    "services/members/visitors.py",
}
MAKES_BOUNDS = {"services/auth/bounds.py"}


def called(tree: ast.AST) -> Iterator[tuple[int, str, ast.Call]]:
    """The last name of everything that is called."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield (
                node.lineno,
                node.func.id if isinstance(node.func, ast.Name) else node.func.attr,
                node,
            )


def beyond_their_caller(path: str, tree: ast.Module) -> list[str]:
    """Where a file makes or widens a principal or bounds for itself, instead of taking its
    caller's."""
    calls = []
    for line, name, call in called(tree):
        of_principal = (
            isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "Principal"
        )
        if (name == "Principal" or of_principal) and path not in MAKES_PRINCIPALS:
            calls.append(f"{path}:{line}: makes a principal")
        if name == "Bounds" and path not in MAKES_BOUNDS:
            calls.append(f"{path}:{line}: makes bounds")
        changed = [keyword.arg for keyword in call.keywords if name == "replace"]
        if path != "services/auth/policy.py" and {
            "admin",
            "member_of",
            "has_user_claim",
            "permissions",
        } & set(changed):
            calls.append(f"{path}:{line}: changes a principal")
        if "workspaces" in changed and "role" not in changed:  # with a role, it is an account
            calls.append(f"{path}:{line}: changes a principal")
        if path not in MAKES_BOUNDS and {
            "narrowed",
            "message_condition",
            "last_seq",
            "has_cards",
            "has_chains",
        } & set(changed):
            calls.append(f"{path}:{line}: changes bounds")
    for node in nodes(tree):
        names = (
            {node.id}
            if isinstance(node, ast.Name)
            else {node.attr}
            if isinstance(node, ast.Attribute)
            else set()
        )
        if {"principal_of", "principal_of_member"} & names and path not in ASKS_FOR_PRINCIPALS:
            calls.append(f"{path}:{node.lineno}: asks for a principal")  # type: ignore[attr-defined]
        if "UNRESTRICTED" in names and path != "api/auth.py":
            calls.append(f"{path}:{node.lineno}: works as everybody")  # type: ignore[attr-defined]
        in_peers_name = {"pipeline/dream/handler.py", "pipeline/derive/context.py", *MAKES_BOUNDS}
        if "of_observer" in names and path not in in_peers_name:
            calls.append(f"{path}:{node.lineno}: draws on what a peer may, whoever asks")  # type: ignore[attr-defined]
    return calls


@pytest.mark.slow
def test_code_that_serves_a_request_uses_its_caller(root: Path) -> None:
    core = root / "memservice"
    wrong = []
    for file, tree in modules(core):
        path = file.relative_to(core)
        if path.parts[0] != "reasoning":  # it imports no services, and has bounds of another kind
            wrong += beyond_their_caller(path.as_posix(), tree)
    assert wrong == []
    users = {
        file.relative_to(core).parts[0]
        for file, tree in modules(core)
        for _, name in imports(tree)
        if name == "memservice.cli.operator"
    }
    assert users == {"cli"}


@pytest.mark.parametrize(
    "code",
    [
        "chat.ask_peer(rt, Principal.all(), workspace)",
        "who = principal.Principal(admin=True)",
        "who = Principal()",
        "who = replace(who, admin=True)",
        "who = access.principal_of(None)",
        "who = policy.principal_of_member(Role.OWNER, None)",
        "who = replace(who, permissions=ALL)",
        "who = replace(who, workspaces=None)",
        "who = auth.UNRESTRICTED",
        "bounds = Bounds(place.key)",
        "bounds = bounds.Bounds(place.key)",
        "bounds = replace(bounds, message_condition=TRUE)",
        "bounds = of_observer(view, peer)",
    ],
)
def test_the_check_of_callers_detects_violations(code: str) -> None:
    assert len(beyond_their_caller("services/new.py", ast.parse(code))) == 1
