"""Rules that are read off the source of the packages.

No module needs itself, directly or through others, imports inside functions counted; a page is one folder. No module
asks the database for the rows of all projects, but for those that are named here with their reason. Only a policy
itself tests its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from guard_core.policies import POLICIES

ROOT = Path(__file__).parents[1]
PACKAGES = ("guard_core", "inspector")

# Modules that use `Model.unscoped`, `Model._base_manager` or SQL of their own: why rows of any project may be meant.
ALL_PROJECTS = {
    "inspector.accounts.invitations": "a token opens an invitation, whosever it is",
    "inspector.accounts.keys": "a key opens its project",
    "inspector.apps": "a setting of the connection",
    "inspector.data_folder.backup": "a backup holds every project",
    "inspector.data_folder.durable": "a setting of the connection",
    "inspector.data_folder.moving": "a move takes every project along",
    "inspector.data_folder.opening": "a lock of the whole database",
    "inspector.data_folder.uncertain": "bytes are shared by projects; they go with the last one that has them",
    "inspector.ingest.importing": "a worker resolves the job that it was handed",
    "inspector.ingest.live": "a worker takes over the lines that dead processes left, whosever they are",
    "inspector.ingest.spans": "as above, of spans",
    "inspector.ingest.submitting": "a worker takes up what waits for its data folder, whosever it is",
    "inspector.ingest.uploads": "bytes are shared by projects; they go with the last one that has them",
    "inspector.jobs.assessing": "a worker does what is left to do, whosever it is",
    "inspector.jobs.estimating": "as above",
    "inspector.jobs.indexing": "as above",
    "inspector.jobs.leased": "as above; the jobs of dead workers are taken back",
    "inspector.jobs.recounting": "a worker resolves the job that it was handed",
    "inspector.jobs.recovery": "the jobs of dead workers are taken back",
    "inspector.models.prepared": "it runs the statements of modules that name their rows",
    "inspector.pages.gallery.runs": "a worker resolves the job that it was handed",
    "inspector.pages.sweep.runs": "a worker resolves the job that it was handed",
    "inspector.project.doctor": "whether the bytes of recordings are there",
    "inspector.project.metrics": "numbers of all projects together",
    "inspector.project.health": "whether the database answers",
    "inspector.replays.__main__": "a process resolves the session that it was handed",
    "inspector.replays.stored": "files of sessions that are gone are swept",
    "inspector.sharing.making": "a worker resolves the job that it was handed",
    "inspector.sharing.publishing": "a token opens a share, whosever it is",
    "inspector.storage.sqlite3.base": "the connection itself, which makes the cursors of all others",
    "inspector.storage.deleting": "what was deleted is purged, and texts that no project names",
    "inspector.storage.text_index": "SQL that names a session, or a project",
    "inspector.watching.child": "the server of local mode watches what was chosen; it has one project",
    "inspector.webhooks.deliveries": "a worker resolves the job that it was handed",
    "inspector.storage.texts": "SQL that stores the texts and events of one session",
}
EVERYTHING = ("unscoped", "_base_manager", "_default_manager", "cursor")


def assigned_twice(path: Path) -> list[str]:
    """Names that a module assigns more than once: the second value holds for what is written before it, too."""
    body = ast.parse(path.read_text()).body
    targets = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    found = [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in set(found) if found.count(name) > 1]


def test_no_module_assigns_a_name_twice(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text('OVERFLOW = "a"\nOTHER = 1\nOVERFLOW = "b"\n')
    assert assigned_twice(bad) == ["OVERFLOW"]
    assert {name: twice for name, path in files(ROOT).items() if (twice := assigned_twice(path))} == {}


Graph = dict[str, set[str]]


def files(root: Path) -> dict[str, Path]:
    """Every module by its name."""
    modules = {}
    for package in PACKAGES:
        for path in (root / package).rglob("*.py"):
            parts = path.relative_to(root).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def names(path: Path, package: str) -> Iterator[str]:
    """What a file imports, wherever the statement is: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


@cache
def graph(root: Path) -> Graph:
    """Which modules of the packages each of them imports."""
    modules = files(root)

    def module_of(name: str) -> str:
        while name and name not in modules:
            name = name.rpartition(".")[0]
        return name

    needs: Graph = {}
    for module, path in modules.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        needs[module] = {module_of(name) for name in names(path, package)} - {"", module}
    return needs


def circle(imports: Graph) -> list[str]:
    """Modules each of which imports the next, the last one the first; empty where there are none."""
    left = dict(imports)
    while leaves := [module for module, needed in left.items() if not needed & left.keys()]:
        for module in leaves:
            del left[module]
    path: list[str] = []
    module = min(left, default="")
    while left and module not in path:
        path.append(module)
        module = min(left[module] & left.keys())
    return path[path.index(module) :] if path else []


def test_no_module_needs_itself():
    assert circle(graph(ROOT)) == [], "these modules import one another in a circle"


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ("from inspector import first", ["inspector.first", "inspector.other"]),
        ("def late():\n    from inspector.first import x", ["inspector.first", "inspector.other"]),
        ("def late():\n    from . import first", ["inspector.first", "inspector.other"]),
        ("import json", []),
    ],
    ids=["plain", "inside a function", "relative", "none"],
)
def test_a_circle_is_found_wherever_the_import_is(other, expected, tmp_path):
    package = tmp_path / "inspector"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "first.py").write_text("import inspector.other")
    (package / "other.py").write_text(other)
    assert circle(graph(tmp_path)) == expected


PAGES = ROOT / "inspector" / "pages"
FOR_ALL = {"shared", "session", "errors"}  # what every page may use
EMBEDDED = {("overview", "window")}  # the overview shows the question of the window page
WITHOUT_TEMPLATES = {"errors", "health"}
TESTED_ELSEWHERE = {
    "errors",
    "health",
    "replay",
    "recounting",
}  # with the requests, processes and columns that cause them


def page_of(module: str) -> str:
    return module.split(".")[2] if module.startswith("inspector.pages.") else ""


def test_a_page_uses_no_other_page():
    used = {(page_of(module), page_of(name)) for module, needed in graph(ROOT).items() for name in needed}
    others = {(page, other) for page, other in used if page and other not in {"", page, *FOR_ALL}}
    assert others == EMBEDDED


def test_a_page_has_a_template_folder_and_a_test_folder_of_its_name():
    pages = {path.parent.name for path in PAGES.glob("*/views.py")}
    assert pages - WITHOUT_TEMPLATES <= {path.name for path in (ROOT / "templates" / "inspector").iterdir()}
    assert pages - TESTED_ELSEWHERE <= {path.name for path in (ROOT / "tests/inspector/pages").iterdir()}


def asks_for_everything(source: str) -> bool:
    """Does a module reach rows without naming a project or a row in hand."""
    return any(isinstance(node, ast.Attribute) and node.attr in EVERYTHING for node in ast.walk(ast.parse(source)))


def test_rows_of_all_projects_are_asked_for_in_named_places_alone():
    modules = {name: path for name, path in files(ROOT).items() if name.startswith("inspector.")}
    asking = {name for name, path in modules.items() if asks_for_everything(path.read_text())}
    assert {name for name in asking if ".migrations." not in name} == set(ALL_PROJECTS)


@pytest.mark.parametrize(
    "source",
    ["Session.unscoped.all()", "row._base_manager.get()", "with connection.cursor() as c: pass"],
)
def test_a_way_around_the_managers_is_found(source):
    assert asks_for_everything(source)
    assert not asks_for_everything("Session.objects.of(project).filter(pk=1)")


# Functions of more than 60 lines, and why.
LONG_FUNCTIONS = {"guard_core.policies.contextguard.settings.published": "one entry for each setting"}


def test_no_function_is_longer_than_60_lines():
    lengths = {
        f"{module}.{node.name}": node.end_lineno - node.lineno + 1
        for module, path in files(ROOT).items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, FUNCTIONS)
    }
    assert {name for name, lines in lengths.items() if lines > 60} == set(LONG_FUNCTIONS)


# Classes of one name in several modules, and why: a row and the engine's value that it holds are one thing to the
# reader, and names of the API are read by its clients.
SHARED_NAMES = {
    "Comment": "the row, and what the API answers",
    "Command": "Django's name for a command",
    "Event": "the engine's value, and its row",
    "Finding": "the engine's value, and what the API answers",
    "Recording": "the engine's value, and its row",
    "Session": "the engine's value, and its row",
}


def classes(root: Path) -> dict[str, list[str]]:
    """The modules that define a class, by its name, without the "_" of a private one. Migrations are left out, and so
    are first looks: each names the parts of a line by what its own format calls them."""
    modules: dict[str, list[str]] = {}
    for module, path in files(root).items():
        if ".migrations" not in module and not module.endswith("look"):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    modules.setdefault(node.name.lstrip("_"), []).append(module)
    return modules


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Verbs that say what happened to a thing, as names of what it is.
VAGUE_NAMES = {"came", "found", "goes_by", "goes_on", "going", "going_on", "gone_on", "made", "tell", "tells", "told"}


def named_vaguely(path: Path) -> set[str]:
    """The module, and its functions, their parameters and their variables, that bear one of these names."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, FUNCTIONS)]
    names = {path.stem, *(node.name for node in nodes)}
    inside = [child for node in nodes for child in ast.walk(node)]
    names |= {node.arg for node in inside if isinstance(node, ast.arg)}
    names |= {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return {name for name in names if name.lstrip("_") in VAGUE_NAMES}


def test_names_say_what_a_thing_is(tmp_path):
    vague = tmp_path / "told.py"
    vague.write_text("def _goes_on():\n    found, steps = 1, 2\n")
    assert named_vaguely(vague) == {"told", "_goes_on", "found"}
    named = {name: named_vaguely(path) for name, path in files(ROOT).items() if ".migrations" not in name}
    assert {module: names for module, names in named.items() if names} == {}


def test_no_module_is_longer_than_600_lines():
    lengths = {name: len(path.read_text().splitlines()) for name, path in files(ROOT).items()}
    assert {name: lines for name, lines in lengths.items() if lines > 600} == {}


def test_each_class_has_a_name_of_its_own():
    several = {name: modules for name, modules in classes(ROOT).items() if len(modules) > 1}
    assert {name: modules for name, modules in several.items() if name not in SHARED_NAMES} == {}
    assert SHARED_NAMES.keys() - several.keys() == set(), "these need no exception any more"


def test_two_classes_of_one_name_are_found(tmp_path):
    for module in ("first", "second"):
        package = tmp_path / "inspector" / module
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f"class {'_' * (module == 'second')}Row:\n    pass\n")
    assert classes(tmp_path) == {"Row": ["inspector.first", "inspector.second"]}


def compared_policy_names(path: Path, names: Iterable[str]) -> list[str]:
    """Comparisons of a policy with the name of one, and choices by such a name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Compare):
            sides, what = [node.left, *node.comparators], ast.unparse(node)
        elif isinstance(node, ast.Match):
            sides, what = (
                [pattern for case in node.cases for pattern in ast.walk(case.pattern)],
                ast.unparse(node.subject),
            )
        else:
            continue
        words = {part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)}
        if words & set(names) and ("policy" in what or "kind.name" in what):
            found.append(what)
    return found


def test_no_module_but_a_policy_s_own_tests_its_name():
    modules = {name: path for name, path in files(ROOT).items() if not name.startswith("guard_core.policies.")}
    assert {name: tests for name, path in modules.items() if (tests := compared_policy_names(path, POLICIES))} == {}


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ('if trace.policy == "pi": pass', 1),
        ('done = policy_name not in ("none", "pi")', 1),
        ('match way.policy:\n    case "pi": pass', 1),
        ('if session.agent_format == "pi": pass', 0),
        ('if policy.name == "other": pass', 0),
    ],
)
def test_a_test_of_a_policy_s_name_is_found(code, count, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(code)
    assert len(compared_policy_names(path, ["none", "pi"])) == count
