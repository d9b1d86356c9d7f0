"""The built package runs where no checkout is: templates, static files and vocabulary come with it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from guard_core import __version__
from tests.services.server import ROOT, clean_environment

pytestmark = pytest.mark.once

WANTED = ("templates", "static")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the unpacked wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("guard_core", "inspector", *WANTED):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def run(installed: Path, code: str) -> str:
    """The output of Python code in the installed package, away from the checkout."""
    environment = {**clean_environment(), "PYTHONPATH": str(installed), "DATA_DIR": str(installed.parent / "data")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=installed.parent,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_every_template_and_static_file_is_in_the_wheel(installed: Path) -> None:
    for name in WANTED:
        here = {path.relative_to(ROOT / name) for path in (ROOT / name).rglob("*") if path.is_file()}
        there = installed / "inspector" / "_bundle" / name
        assert here == {path.relative_to(there) for path in there.rglob("*") if path.is_file()}


def test_the_vocabularies_are_in_the_wheel(installed: Path) -> None:
    assert (installed / "guard_core/tokens/vocab/o200k_base.tiktoken").is_file()


def test_the_package_finds_its_own_files(installed: Path) -> None:
    output = run(
        installed,
        "import os; os.environ['DJANGO_SETTINGS_MODULE'] = 'inspector.project.settings'\n"
        "import django; django.setup()\n"
        "from django.template.loader import get_template\n"
        "from django.contrib.staticfiles import finders\n"
        "print(get_template('base.html').origin.name); print(finders.find('css/base.css'))",
    )
    assert all(str(installed) in line for line in output.splitlines())


def test_the_installed_command_answers(installed: Path) -> None:
    assert run(
        installed, "from inspector.project.cli import main; import sys; sys.argv = ['x', '--help']; main()"
    ).startswith("usage")


def test_the_installed_command_imports_and_backs_up(installed: Path) -> None:
    recording = installed.parent / "chat.json"
    recording.write_text('[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello"}]')
    backup = installed.parent / "all.tar"
    for arguments, said in ((["import", str(recording)], "chat.json"), (["backup", str(backup)], "1 recording")):
        assert said in run(installed, f"from inspector.project.cli import main; main({arguments!r})")
    assert tarfile.is_tarfile(backup)
    assert f"Version: {__version__}\n" in (next(installed.glob("*.dist-info")) / "METADATA").read_text()
