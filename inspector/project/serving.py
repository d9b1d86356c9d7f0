"""One command that runs everything: migrations, static files, the worker, the web server; and stops it all cleanly."""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from inspector.data_folder.owner import CommandRefused, FolderLocks, Holder, in_use, refuse_served, serving
from inspector.project import memory
from inspector.project.structs import describe_all

log = logging.getLogger(__name__)

GRACE_SECONDS = 6  # for requests under way; with those of the worker below 10 seconds in all
WORKER_GRACE_SECONDS = 2.5  # after the requests: it was asked when they were; its job outlives it
SPARE_CONNECTIONS = 2  # to SQLite, for the requests to come; ours: each keeps up to 8 MB of pages (settings.database)
RESTART_AFTER = 0.3  # seconds at most between the death of a worker and the next one
REFUSED = 2  # exit code where the command line asks for what is not allowed
NO_LOGIN = (
    "There is no login, so only this machine may reach the server: bind to 127.0.0.1, set TEAM=1 for accounts, "
    "or LOGIN_PROXY=1 when a proxy in front of it asks for a login."
)


def serve(bind: str, port: int) -> int:
    """Run until Ctrl-C or SIGTERM; the exit code. Raises CommandRefused."""
    memory.keep_little(memory.COLUMN, memory.SPARE)
    check_bind(bind)
    try:
        listener = listen(bind, port)
    except CommandRefused:
        _refuse_second()
        raise
    port = listener.getsockname()[1]
    os.environ.update({"BIND": bind, "PORT": str(port), "HASHED_STATIC": "1"})
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _ended_before_start)
    address = f"http://{f'[{bind}]' if ':' in bind else bind}:{port}/"
    return _run(listener, address, prepare(address))


def _refuse_second() -> None:
    """Where the port is taken by a server on the same data folder, say so."""
    from django.conf import settings  # with Django: set up by `prepare`

    if serving(Path(settings.DATA_DIR)):
        raise CommandRefused(in_use(Path(settings.DATA_DIR))) from None


def check_bind(bind: str) -> None:
    """Refuse an address that others can reach, unless something in front asks for a login."""
    from inspector.project import environment  # reads the environment that the command line may change

    try:
        loopback = bind == "localhost" or ipaddress.ip_address(bind).is_loopback
    except ValueError:
        raise CommandRefused(f"{bind!r} is not an address of this machine; use 127.0.0.1.") from None
    if not (loopback or environment.flag("TEAM") or environment.flag("LOGIN_PROXY")):
        raise CommandRefused(NO_LOGIN)


def listen(bind: str, port: int) -> socket.socket:
    """The listening socket, taken before anything else is started."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((bind, port))
    except OSError as error:
        listener.close()
        raise CommandRefused(
            f"Port {port} of {bind} cannot be used ({error.strerror}); choose another with --port."
        ) from None
    listener.set_inheritable(False)
    return listener


def prepare(address: str) -> FolderLocks:
    """Settings, tables, static files; the locks of the data folder. Quick when nothing changed.

    Raises CommandRefused.
    """
    import django  # with its settings, which the command line may change

    with memory.loading():
        django.setup()
        from django.conf import settings

        from inspector.data_folder.opening import open_folder

    refuse_served(Path(settings.DATA_DIR))
    locks = open_folder()
    locks.serve(Holder.here(address))
    collect_static()
    return locks


def collect_static() -> None:
    """Give static files their hashed names and compressed copies, once per state of the sources."""
    from django.conf import settings  # with Django: set up by `prepare`
    from django.core.management import call_command

    stamp = Path(settings.STATIC_ROOT).with_name("static.stamp")
    state = static_state()
    if stamp.is_file() and stamp.read_text() == state and Path(settings.STATIC_ROOT).is_dir():
        return
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(state)


def static_state() -> str:
    """A digest of all static files: path, size and time of change."""
    from django.contrib.staticfiles.finders import get_finders  # with Django: set up by `prepare`

    digest = hashlib.sha256()
    for finder in get_finders():
        for path, storage in finder.list([]):
            state = os.stat(storage.path(path))
            digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


class WorkerProcess:
    """The worker, started again when it dies; a byte on its standard input announces work.

    The thread that starts a worker outlives it: Linux ends a process with the thread that started it (lifeline.py).
    """

    def __init__(self, locks: FolderLocks) -> None:
        self._locks = locks
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._watch, name="worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        try:
            os.write(process.stdin.fileno(), b"w")
        except (OSError, ValueError):
            log.debug("the worker could not be woken; it will find the job when it next polls")

    def ask_to_stop(self) -> None:
        self._stopping.set()

    def stop(self) -> None:
        self.ask_to_stop()
        self._thread.join(WORKER_GRACE_SECONDS)
        if self._thread.is_alive() and self._process is not None:
            log.warning("the worker did not stop in time and was killed; its job resumes at the next start")
            self._process.kill()
            self._thread.join()

    def _watch(self) -> None:
        process = self._process = self._spawn()
        while not self._stopping.wait(RESTART_AFTER):
            if process.poll() is not None:
                log.warning("the worker stopped; starting another")
                process = self._process = self._spawn()
        process.terminate()
        process.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "inspector.project.worker", "--piped"]
        # glibc gives each thread a heap of its own, whose free memory no other thread uses again.
        environment = {"MALLOC_ARENA_MAX": "1", **os.environ}
        # It keeps the locks while it lives: no second server starts while the worker of a killed one runs.
        process = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=self._locks.files)
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process


def _run(listener: socket.socket, address: str, locks: FolderLocks) -> int:
    from django.conf import settings  # with Django: set up by `prepare`
    from django.db import connections, transaction
    from django_tasks.signals import task_enqueued

    from inspector.storage.sqlite3.spare import SPARES

    connections.close_all()
    worker = WorkerProcess(locks)
    worker.start()
    task_enqueued.connect(lambda **_: transaction.on_commit(worker.wake), weak=False)
    watch = _watch(address)
    greeting = f"Compaction Inspector: {address}   (data in {settings.DATA_DIR}; Ctrl-C stops it)"
    server = _server(worker, "\n".join(filter(None, (greeting, _setup(address)))))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # what uvicorn puts back, and raises again, when it has ended
    if settings.EMBEDDED:
        SPARES.hold(SPARE_CONNECTIONS)
    try:
        server.run(sockets=[listener])
    finally:
        SPARES.close()
        if watch is not None:
            watch.stop()
        worker.stop()
    return 0 if server.started else 1


def _watch(address: str) -> Any:
    """The watch of the folders that a person has chosen; None where others than that person reach the server."""
    from inspector.watching.child import begin  # needs the models
    from inspector.watching.offered import is_offered  # with Django: set up by `prepare`

    return begin(address.rstrip("/")) if is_offered() else None


def _setup(address: str) -> str:
    """What team mode says while there is no account: where to make the first one."""
    from django.conf import settings  # with Django: set up by `prepare`

    if not settings.TEAM:
        return ""
    from inspector.accounts.invitations import setup_address  # needs the models

    link = setup_address(settings.PUBLIC_URL or address)
    return f"There is no account yet. Make the first one within a day: {link}" if link else ""


def _application() -> Any:
    """The application with all of its pages, whose structs no thread decodes before they are described."""
    with memory.loading():
        from django.urls import get_resolver

        from inspector.project.asgi import application  # with Django, and after the static files are there

        _ = get_resolver().url_patterns  # loads every page
        describe_all()
    memory.note_start()
    return application


def _server(worker: WorkerProcess, greeting: str) -> Any:
    import uvicorn  # late: only the server needs it
    from django.conf import settings

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                print(greeting, flush=True)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            worker.ask_to_stop()
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            _application,
            factory=True,
            access_log=False,
            log_config=None,
            server_header=False,
            proxy_headers=False,  # proxies.py believes them from PROXIES alone
            timeout_graceful_shutdown=GRACE_SECONDS,
            ws_max_size=settings.MAX_SOCKET_FRAME_BYTES,
            ws_per_message_deflate=False,  # hints are shorter than what compressing them would cost
            ws_ping_interval=20,
            ws_ping_timeout=20,
        )
    )


def _ended_before_start(signum: int, frame: Any) -> None:
    """Until the server takes signals itself, they end the process as they will then, without a traceback."""
    raise SystemExit(0)
