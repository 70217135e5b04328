"""Progress is a bar in a terminal, text that changes in a notebook, and a few lines elsewhere."""

import contextlib
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from prunus.training import Callback, ProgressBar
from tests.training.problems import run, samples

RECORD = {"epoch": 1, "train_loss": 0.5, "valid_loss": 0.25}
needs_rich = pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="rich is not installed")
needs_tqdm = pytest.mark.skipif(importlib.util.find_spec("tqdm") is None, reason="tqdm is not installed")


def show(*, shown: bool = True, epochs: int = 3) -> None:
    with ProgressBar(epochs, shown=shown) as bar:
        for epoch in range(1, epochs + 1):
            bar.on_epoch_end(RECORD | {"epoch": epoch})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(action: Callable[[], None] = show) -> str:
    """Return what an action writes to stderr if that is a terminal."""
    with contextlib.redirect_stderr(Terminal()) as stderr, mock.patch.dict(os.environ, TERM="xterm", COLUMNS="120"):
        action()
    return stderr.getvalue()


def install(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    """Hide all packages from the bar but these."""
    monkeypatch.setattr("prunus.training.callbacks.find_spec", lambda name: name if name in packages else None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows the one number in this list."""
    now = [100.0]
    monkeypatch.setattr("prunus.training.callbacks.time.monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize(
    ("epochs", "seconds", "expected"),
    [
        (100, 0.003, [100]),
        (100, 0.5, [*range(10, 101, 10)]),
        (10, 0.25, [4, 8, 10]),  # at least a second apart
        (1000, 5.0, [*range(12, 1000, 12), 1000]),  # one each minute
        (0, 1.0, []),
    ],
)
def test_lines_without_a_terminal(epochs: int, seconds: float, expected: list[int], clock: list[float]) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stderr, ProgressBar(epochs) as bar:
        for epoch in range(1, epochs + 1):
            clock[0] += seconds
            bar.on_epoch_end(RECORD | {"epoch": epoch})
    lines = [f"training: epoch {epoch} of {epochs}  train_loss 0.5  valid_loss 0.25" for epoch in expected]
    assert stderr.getvalue().splitlines() == lines


@pytest.mark.usefixtures("clock")
def test_a_run_that_stops_early_tells_of_its_last_epoch() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stderr, ProgressBar(9, title="learning") as bar:
        bar.on_epoch_end({"epoch": 2, "train_loss": 0.125})
    assert stderr.getvalue() == "learning: epoch 2 of 9  train_loss 0.125\n"


class Notebook:
    """Stands for IPython in a notebook, and keeps the texts that it was asked to show."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kernel: Any) -> None:
        self.texts: list[str] = []
        shell = SimpleNamespace() if kernel is None else SimpleNamespace(kernel=kernel)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=self.display))

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert display_id
        self.update(data, raw=raw)
        return SimpleNamespace(update=self.update)

    def update(self, data: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.texts.append(data["text/plain"])


def test_a_notebook_shows_text_that_changes(monkeypatch: pytest.MonkeyPatch, clock: list[float], capsys: Any) -> None:
    notebook = Notebook(monkeypatch, kernel=object())
    with ProgressBar(2) as bar:
        for epoch in (1, 2):
            clock[0] += 1.0
            bar.on_epoch_end(RECORD | {"epoch": epoch})
    first, second, last = notebook.texts
    assert first == f"training |{30 * '░'}| 0/2"
    assert second == f"training |{15 * '█'}{15 * '░'}| 1/2  train_loss 0.5  valid_loss 0.25"
    assert last.startswith(f"training |{30 * '█'}| 2/2")
    notebook.texts.clear()
    show(epochs=1000)  # fast epochs
    assert len(notebook.texts) == 2
    assert "1000/1000" in notebook.texts[-1]
    assert capsys.readouterr() == ("", "")


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch, kernel=None)
    assert on_terminal() != ""
    assert notebook.texts == []


@pytest.mark.parametrize("kernel", [None, object()])
def test_nothing_is_shown_if_not_wanted(monkeypatch: pytest.MonkeyPatch, kernel: Any, capsys: Any) -> None:
    notebook = Notebook(monkeypatch, kernel)
    assert on_terminal(lambda: show(shown=False)) == ""
    show(shown=False)
    assert capsys.readouterr() == ("", "")
    assert notebook.texts == []


@pytest.mark.parametrize("package", [pytest.param("rich", marks=needs_rich), pytest.param("tqdm", marks=needs_tqdm)])
def test_a_terminal_shows_epochs_and_losses(package: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    install(monkeypatch, package)
    shown = on_terminal()
    assert all(part in shown for part in ("3/3", "train_loss 0.5  valid_loss 0.25"))
    assert capsys.readouterr().out == ""


def test_a_terminal_without_either_shows_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert on_terminal() == "training: epoch 3 of 3  train_loss 0.5  valid_loss 0.25\n"


@needs_rich
def test_what_callbacks_print_goes_where_they_print_it(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> None:
        with ProgressBar(3) as bar:
            bar.on_epoch_end(RECORD)
            sys.stdout.write("mine\n")

    assert "mine" not in on_terminal(act)  # broke: it did not reach the file that stdout was sent to
    assert capsys.readouterr().out == "mine\n"


@needs_rich
def test_the_bar_closes_after_an_error() -> None:
    bar = ProgressBar(3)

    def act() -> None:
        with pytest.raises(KeyError), bar:
            raise KeyError

    on_terminal(act)
    assert not bar._display.progress.live.is_started  # type: ignore[union-attr]


def test_a_python_without_stderr_shows_nothing() -> None:
    with contextlib.redirect_stderr(None):  # as in programs with a graphical interface on Windows
        show()


def test_the_bar_is_a_callback_that_does_not_stop_a_run() -> None:
    with ProgressBar(4) as bar:
        assert isinstance(bar, Callback)
        assert run(callbacks=[bar], valid=samples(30)).history["epoch"] == [1, 2, 3, 4]
