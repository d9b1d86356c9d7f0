"""The list of public names is true."""

import guard_core


def test_every_public_name_is_there_and_sorted():
    assert [name for name in guard_core.__all__ if not hasattr(guard_core, name)] == []
    assert len(set(guard_core.__all__)) == len(guard_core.__all__)


def test_nothing_else_is_imported_for_the_public():
    found = {
        name
        for name, value in vars(guard_core).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("guard_core")
    }
    assert found <= set(guard_core.__all__)
