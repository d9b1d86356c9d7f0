"""Structs are described before threads decode them: two first decodings at once would end the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RACE = """
import sys, threading, types
import msgspec
from inspector.project.structs import describe_all

sys.setswitchinterval(1e-6)  # every few instructions another thread goes on
kinds = []
for number in range(100):
    module = sys.modules[f"m{number}"] = types.ModuleType(f"m{number}")
    fields = "".join(f"    a{place}: int = 0\\n" for place in range(20))
    source = "import msgspec\\n" + "".join(
        f"class S{depth}(msgspec.Struct):\\n{fields}    inner: 'S{depth - 1} | None' = None\\n"
        for depth in range(1, 12)
    )
    exec(source.replace("S0 | None", "int | None"), vars(module))
    kinds.append(module.S11)
if sys.argv[1] == "described":
    describe_all()
data = msgspec.msgpack.encode({"a0": 1, "inner": {"inner": {"a1": 3}}})
for kind in kinds:
    barrier = threading.Barrier(4)

    def decode():
        barrier.wait()
        for _ in range(20):
            assert msgspec.msgpack.decode(data, type=kind).inner.inner.a1 == 3

    threads = [threading.Thread(target=decode) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print("decoded", flush=True)
"""


def test_threads_may_decode_what_was_described():
    """Without the description this program ends by a segmentation fault."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-c", RACE, "described"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "decoded\n"), done.stderr[-2000:]


SERVER = """
import gc, sys
import django
django.setup()
from inspector.project import serving
serving._server(None, "").config.load()
print("inspector.pages.library.views" in sys.modules, gc.get_freeze_count() > 100_000)
"""


def test_a_server_has_every_page_and_its_structs_before_the_first_request():
    """And no search for garbage looks at them again."""
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "inspector.project.settings"}
    command = [sys.executable, "-c", SERVER]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], env=environ, capture_output=True, text=True)
    assert done.stdout.split() == ["True", "True"], done.stderr[-2000:]
