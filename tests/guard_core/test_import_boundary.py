"""The engine knows nothing of the web, and loads heavy neighbours only when they are needed."""

import subprocess
import sys

import pytest

KEPT_OUT = ("django", "channels", "plotly", "inspector", "tiktoken", "genai_prices", "uvicorn", "google.adk")


@pytest.mark.parametrize("module", ["guard_core", "guard_core.__main__", "guard_core.recordings", "guard_core.sweep"])
def test_it_loads_no_web_framework(module):
    code = f"import sys, {module}; print([name for name in {KEPT_OUT!r} if name in sys.modules])"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"


def test_reading_needs_no_arrays():
    """A process that reads one file starts in a fraction of a second, and is small."""
    code = (
        "import sys, inspector.ingest.reading.reader; "
        "print([name for name in ('numpy', 'django') if name in sys.modules])"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert completed.stdout.strip() == "[]"


def test_the_end_of_a_command_searches_no_module_for_garbage():
    """It would take a fifth of a short command. What is left is Python's own list of the modules, two objects each."""
    code = (
        "import gc, runpy, sys; sys.argv = ['guard_core', 'verdict', '--help']; "
        "gc.callbacks.append(lambda phase, info: print(len(gc.get_objects()), file=sys.stderr)); "
        "runpy.run_module('guard_core', run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    *_, searched = map(int, done.stderr.split())
    assert searched < 5_000
