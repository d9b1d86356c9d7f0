"""The engine knows nothing of the web, and loads its heavy parts late."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys
import guard_core, guard_core.recordings, guard_core.replay, guard_core.policies, guard_core.attribution
import guard_core.findings, guard_core.models, guard_core.tokens.tokenizer
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""


@pytest.fixture(scope="module")
def loaded():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", ["django", "channels", "plotly", "inspector"])
def test_the_engine_does_not_load_the_web(loaded, name):
    assert name not in loaded


@pytest.mark.parametrize("name", ["tiktoken", "genai_prices"])
def test_the_engine_loads_heavy_libraries_late(loaded, name):
    assert "guard_core" in loaded
    assert name not in loaded
