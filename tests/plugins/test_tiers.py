"""`make test` and `make long` together run every test, and what is long says so."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.plugins.examples import DEAR
from tests.plugins.longer import LONG as LISTED
from tests.plugins.longer import SAMPLED
from tests.plugins.tiers import AGAIN, LONGER, WALKED, WALKS, is_in_long, is_in_short, mostly_long

ROOT = Path(__file__).resolve().parents[2]
LONG, LONG_THERE = pytest.mark.long.mark, pytest.mark.long("postgresql").mark


def item(*marks: pytest.Mark, nodeid: str = "tests/test_a.py::test_x[y]", is_law: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        nodeid=nodeid,
        function=SimpleNamespace(is_hypothesis_test=is_law),
        iter_markers=lambda name: iter(mark for mark in marks if mark.name == name),
    )


@pytest.mark.parametrize(
    ("marks", "is_postgres", "is_short"),
    [
        ((), False, True),
        ((), True, True),
        ((LONG,), False, False),
        ((LONG,), True, False),
        ((LONG_THERE,), False, True),
        ((LONG_THERE,), True, False),
        ((LONG_THERE, LONG), False, False),
        ((pytest.mark.once.mark,), False, True),
    ],
)
def test_every_test_is_part_of_one_of_them_on_each_database(marks, is_postgres, is_short):
    test = item(*marks, nodeid=f"{AGAIN[0]}::test_x")
    assert (is_in_short(test, is_postgres), is_in_long(test, is_postgres)) == (is_short, not is_short)


@pytest.mark.parametrize(
    ("nodeid", "on_sqlite", "on_postgres"),
    [
        (f"{AGAIN[0]}::test_x", True, True),
        (f"{WALKS[0]}::test_x", True, False),
        (f"{WALKED[0]}test_of_no_walk.py::test_x", False, False),
        ("tests/guard_core/test_a.py::test_x", True, False),
    ],
)
def test_what_is_not_at_once_on_a_database_is_long_there(nodeid, on_sqlite, on_postgres):
    test = item(nodeid=nodeid)
    assert (is_in_short(test, False), is_in_short(test, True)) == (on_sqlite, on_postgres)
    assert (is_in_long(test, False), is_in_long(test, True)) == (not on_sqlite, not on_postgres)


@pytest.mark.parametrize("name", WALKS + AGAIN)
def test_what_is_tried_at_once_is_there(name):
    file, _, test = name.partition("::")
    assert (ROOT / file).exists()
    assert not test or f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


def test_a_walk_is_one_through_a_browser_or_a_server():
    assert all(name.startswith(WALKED) for name in WALKS)
    assert all((ROOT / folder).is_dir() for folder in WALKED)


@pytest.mark.parametrize("is_postgres", [False, True])
def test_what_make_long_does_at_more_length_is_part_of_both(is_postgres):
    law = item(nodeid=f"{DEAR[0]}::test_x[case]", is_law=True)
    assert (is_in_short(law, False), is_in_long(law, False)) == (True, True)
    test = item(pytest.mark.long("more").mark, nodeid=f"{AGAIN[0]}::test_x")
    assert (is_in_short(test, is_postgres), is_in_long(test, is_postgres)) == (True, True)


def test_what_is_no_law_is_part_of_one_whatever_its_file():
    assert not is_in_long(item(nodeid=f"{DEAR[0]}::test_x"), False)


@pytest.mark.parametrize("name", DEAR)
def test_the_laws_that_are_tried_on_fewer_examples_are_there(name):
    file, _, law = name.partition("::")
    source = (ROOT / file).read_text()
    assert "@given(" in source
    assert f"def {law}" in source


def names_of(file: str) -> list[str]:
    return re.findall(r"^(?:async )?def (test_\w+)", (ROOT / file).read_text(), re.MULTILINE)


@pytest.mark.parametrize("file", LISTED)
def test_beside_each_listed_long_test_there_is_a_short_one_of_the_same_promise(file):
    for long, short in LISTED[file].items():
        other, _, name = short.rpartition("::")
        start = name.partition("[")[0]
        assert not long or any(test.startswith(long.partition("[")[0]) for test in names_of(file)), long
        assert any(
            test.startswith(start) and ("[" in long or not f"{other or file}::{test}".startswith(LONGER))
            for test in names_of(other or file)
        ), short


def test_what_is_listed_as_long_is_long_on_both_databases():
    for name in LONGER:
        test = item(nodeid=f"{name}x")
        assert [is_in_short(test, False), is_in_short(test, True)] == [False, False]
        assert [is_in_long(test, False), is_in_long(test, True)] == [True, True]


@pytest.mark.parametrize(("start", "one_in"), SAMPLED.items())
def test_of_many_cases_some_are_short_and_always_the_same(start, one_in):
    file, _, name = start.partition("::")
    assert any(test.startswith(name) for test in names_of(file))
    cases = [item(nodeid=f"{start}{case}") for case in range(600)]
    short = [is_in_short(case, False) for case in cases]
    assert 0.7 < sum(short) * one_in / len(cases) < 1.4
    assert short == [is_in_short(case, False) for case in cases]
    assert all(is_in_long(case, False) is not is_chosen for case, is_chosen in zip(cases, short, strict=True))


def test_of_many_cases_the_named_ones_are_short():
    one, two, three = mostly_long(["a", ("b", 1), "c"], short=["c"])
    assert (one.values, two.values, three) == (("a",), ("b", 1), "c")
    assert [mark.name for case in (one, two) for mark in case.marks] == ["long", "long"]
    with pytest.raises(AssertionError, match="no such cases"):
        mostly_long(["a"], short=["b"])


def is_long(decorator: ast.expr) -> bool:
    return "pytest.mark.long" in ast.unparse(decorator)


def test_what_is_long_says_why():
    marked = 0
    for path in (ROOT / "tests").rglob("test_*.py"):
        source = path.read_text()
        if "mark.long" not in source or path == Path(__file__):
            continue
        module = ast.parse(source)
        if any(isinstance(each, ast.Assign) and is_long(each.value) for each in module.body):
            assert ast.get_docstring(module), path
        for test in ast.walk(module):
            if isinstance(test, ast.FunctionDef) and any(map(is_long, test.decorator_list)):
                assert ast.get_docstring(test) or ast.get_docstring(module), f"{path.name}: {test.name}"
                marked += 1
    assert marked
