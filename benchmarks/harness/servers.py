"""A process that has imported what a function needs and forks one process for each run, which then starts at once.

It reads folders from its input, one a line, and writes two lines for each: the number of the process that was forked,
and, when that has ended, its exit code.
"""

import atexit
import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from select import select
from typing import IO, NamedTuple, NoReturn

from benchmarks.harness.worker import find, work

__all__ = ["ERRORS", "Server", "ServerError", "Work", "borrowed", "ended_by_interrupt"]

ERRORS = "errors"
"""File in the folder of a run, for what it prints."""
ROOT = Path(__file__).parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DIES_WITH_ITS_PARENT = 1
"""PR_SET_PDEATHSIG of Linux: a server that is ended takes its run with it."""


class ServerError(RuntimeError):
    """What a server should run could not be imported, or the server was ended."""


class Work(NamedTuple):
    """What a server runs."""

    function: str
    """Place of the function, ``module:name``."""
    preload: str
    """Place of something else to import, or empty."""
    threads: int
    """Of numeric libraries, for those that read it from the environment when they are loaded."""
    forks: bool
    """Whether there is a process for each run; else the server itself is the process of its only run."""


class Server:
    """A running server, as seen by those who ask it for runs."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.harness.servers",
                work.function,
                work.preload,
                "forks" if work.forks else "",
            ],
            cwd=ROOT,
            env=os.environ | dict.fromkeys(THREADS, str(work.threads)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def start(self, folder: Path) -> int:
        """Begin a run; returns the number of its process."""
        stdin = self._pipe(self._process.stdin)
        with contextlib.suppress(BrokenPipeError):
            stdin.write(f"{folder}\n".encode())
            stdin.flush()
        return self._number()

    def exit_code(self, seconds: float) -> int | None:
        """Exit code of the run; None if it has not ended after this many seconds."""
        if not self.work.forks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return self._process.wait(seconds)
            return None
        ready, _, _ = select([self._pipe(self._process.stdout)], [], [], seconds)
        return self._number() if ready else None

    def close(self) -> None:
        """End the server; a run must be ended by whoever began it."""
        with self._process:
            self._process.kill()

    def kill(self) -> None:
        """End the server while another thread waits for it."""
        self._process.kill()

    def _number(self) -> int:
        line = self._pipe(self._process.stdout).readline()
        if not line:
            printed = self._pipe(self._process.stderr).read().decode(errors="replace").strip().splitlines()
            raise ServerError(printed[-1] if printed else f"the server of {self.work.function} has ended")
        return int(line)

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


_idle: list[Server] = []
_busy: list[Server] = []
_lock = threading.RLock()
_interrupted = threading.Event()


@contextlib.contextmanager
def borrowed(work: Work) -> Iterator[Server]:
    """A server for the work that nobody else uses; idle ones for other work are ended, to free their memory."""
    if _interrupted.is_set():
        raise ServerError("interrupted")
    with _lock:
        others = [server for server in _idle if server.work != work]
        found = [server for server in _idle if server.work == work]
        server = found[0] if found else Server(work)
        _idle[:] = found[1:]
        _busy.append(server)
    for other in others:
        other.close()
    try:
        yield server
    except BaseException:
        server.close()
        raise
    else:
        if work.forks:
            with _lock:
                _idle.append(server)
        else:
            server.close()
    finally:
        _busy.remove(server)


@atexit.register
def end_idle() -> None:
    """End the servers that nobody uses."""
    with _lock:
        while _idle:
            _idle.pop().close()


@contextlib.contextmanager
def ended_by_interrupt() -> Iterator[None]:
    """Within it, Ctrl-C at once ends the runs that other threads wait for, and no run begins after it."""

    def end(_signal: int, _frame: object) -> NoReturn:
        _interrupted.set()
        for server in list(_busy):
            server.kill()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        _interrupted.clear()


def serve(function: str, preload: str, forks: str) -> None:
    """Import what is needed, then fork for each line until there are no more, or run the first one here."""
    for place in filter(None, (function, preload)):
        find(place)
    for line in sys.stdin:
        if not forks:
            print(os.getpid(), flush=True)
            _run(Path(line.strip()))
        process = os.fork()
        if process == 0:
            os.setsid()  # a session of its own, so that all that it starts can be ended with it
            _run(Path(line.strip()))
        print(process, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)


def _run(folder: Path) -> NoReturn:
    """Do the work in this process, and end it."""
    ctypes.CDLL(None).prctl(DIES_WITH_ITS_PARENT, signal.SIGKILL)
    errors = os.open(folder / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(errors, stream)
    try:
        work(folder)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    serve(*sys.argv[1:])
