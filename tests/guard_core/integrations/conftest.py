"""The examples of the README."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

README = Path(__file__).parents[3] / "guard_core" / "README.md"


@pytest.fixture
def readme_code() -> Callable[[str], str]:
    """The example of the README that imports a module of `guard_core.integrations`."""

    def code_of(module: str) -> str:
        blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
        (code,) = [block for block in blocks if f"from guard_core.integrations.{module} import" in block]
        return code

    return code_of
