"""The list of public names is true, and each comes from its home when it is asked for."""

import ast
import inspect
import subprocess
import sys

import pytest

import guard_core


def test_every_public_name_is_there_once():
    assert [name for name in guard_core.__all__ if not hasattr(guard_core, name)] == []
    assert len(set(guard_core.__all__)) == len(guard_core.__all__)
    assert set(guard_core.__all__) <= set(dir(guard_core))


def test_a_type_checker_sees_the_same_names_at_the_same_homes():
    imports = [node for node in ast.walk(ast.parse(inspect.getsource(guard_core))) if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports if "guard_core." in (node.module or "") for alias in node.names}
    assert set(seen) == {*guard_core.__all__, "__version__"}
    for name, module in seen.items():
        assert getattr(guard_core, name) is getattr(sys.modules[module], name)


def test_a_submodule_does_not_hide_the_function_of_its_name():
    code = (
        "import guard_core.replay, guard_core.sweep; from guard_core import replay, sweep;"
        "print(callable(replay), callable(sweep), guard_core.replay is replay)"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["True"] * 3


def test_an_unknown_name_is_an_error_of_the_usual_kind():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        guard_core.nothing  # noqa: B018
    with pytest.raises(ImportError):
        from guard_core import nothing  # noqa: F401


def test_a_star_imports_the_public_names_and_no_others():
    names: dict[str, object] = {}
    exec("from guard_core import *", names)
    assert set(names) - {"__builtins__"} == set(guard_core.__all__)


def test_importing_the_package_loads_no_other_module_of_it_than_its_version():
    code = "import guard_core, sys; print(*sorted(name for name in sys.modules if name.startswith('guard_core')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == ["guard_core", "guard_core.version"]


def test_nothing_else_is_imported_for_the_public():
    names = {
        name
        for name, value in vars(guard_core).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("guard_core")
    }
    assert names <= set(guard_core.__all__)
