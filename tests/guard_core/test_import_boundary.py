"""The engine knows nothing of the web, and loads heavy neighbours only when they are needed."""

import subprocess
import sys

import pytest

KEPT_OUT = ("django", "channels", "plotly", "inspector", "tiktoken", "genai_prices", "uvicorn", "google.adk")


@pytest.mark.parametrize("module", ["guard_core", "guard_core.__main__", "guard_core.recordings", "guard_core.sweep"])
def test_it_loads_no_web_framework(module):
    code = f"import sys, {module}; print([name for name in {KEPT_OUT!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_reading_needs_no_arrays():
    """A process that reads one file starts in a fraction of a second, and is small."""
    code = (
        "import sys, inspector.ingest.reading.reader; "
        "print([name for name in ('numpy', 'django') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
