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


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that hides all packages from the bar but those it is given."""

    def only(*packages: str) -> None:
        monkeypatch.setattr("prunus.training.callbacks.find_spec", lambda name: name if name in packages else None)

    return only


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(action: Callable[[], None]) -> str:
    """Return what an action writes to stderr if that is a terminal."""
    with contextlib.redirect_stderr(Terminal()) as stderr, mock.patch.dict(os.environ, TERM="xterm", COLUMNS="120"):
        action()
    return stderr.getvalue()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows the one number in this list."""
    now = [100.0]
    monkeypatch.setattr("prunus.training.callbacks.time.monotonic", lambda: now[0])
    return now


def logged(clock: list[float], *, epochs: int, seconds: float) -> list[str]:
    """Lines that a run writes, whose epochs take this long, where there is no terminal."""
    with contextlib.redirect_stderr(io.StringIO()) as stderr, ProgressBar(epochs) as bar:
        for epoch in range(1, epochs + 1):
            clock[0] += seconds
            bar.on_epoch_end(RECORD | {"epoch": epoch})
    return stderr.getvalue().splitlines()


def test_a_short_run_without_a_terminal_writes_one_line(clock: list[float]) -> None:
    line = "training: epoch 100 of 100  train_loss 0.5  valid_loss 0.25"
    assert logged(clock, epochs=100, seconds=0.003) == [line]


def test_a_run_of_seconds_or_minutes_writes_about_ten_lines(clock: list[float]) -> None:
    lines = logged(clock, epochs=100, seconds=0.5)
    assert [line.split()[2] for line in lines] == [str(epoch) for epoch in range(10, 101, 10)]


def test_lines_are_at_least_a_second_apart(clock: list[float]) -> None:
    assert [line.split()[2] for line in logged(clock, epochs=10, seconds=0.25)] == ["4", "8", "10"]


def test_a_slow_run_writes_a_line_each_minute(clock: list[float]) -> None:
    assert len(logged(clock, epochs=1000, seconds=5.0)) == 84  # 5000 seconds, and the last epoch


@pytest.mark.usefixtures("clock")
def test_a_run_that_stops_early_tells_of_its_last_epoch() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stderr, ProgressBar(9, title="learning") as bar:
        bar.on_epoch_end({"epoch": 2, "train_loss": 0.125})
    assert stderr.getvalue() == "learning: epoch 2 of 9  train_loss 0.125\n"


def test_a_run_of_no_epochs_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    show(epochs=0)
    assert capsys.readouterr() == ("", "")


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
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("clock")
def test_a_notebook_shows_the_last_of_many_fast_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch, kernel=object())
    show(epochs=1000)
    assert len(notebook.texts) == 2
    assert "1000/1000" in notebook.texts[-1]


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook(monkeypatch, kernel=None)
    assert on_terminal(show) != ""
    assert notebook.texts == []


@pytest.mark.parametrize("kernel", [None, object()])
def test_nothing_is_shown_if_not_wanted(
    monkeypatch: pytest.MonkeyPatch, kernel: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook = Notebook(monkeypatch, kernel)
    assert on_terminal(lambda: show(shown=False)) == ""
    show(shown=False)
    assert capsys.readouterr() == ("", "")
    assert notebook.texts == []


@needs_rich
def test_rich_shows_epochs_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    shown = on_terminal(show)
    assert all(part in shown for part in ("3/3", "train_loss 0.5", "valid_loss 0.25"))
    assert capsys.readouterr().out == ""


@needs_tqdm
def test_tqdm_shows_epochs_and_losses_without_rich(installed: Any, capsys: pytest.CaptureFixture[str]) -> None:
    installed("tqdm")
    shown = on_terminal(show)
    assert all(part in shown for part in ("3/3", "train_loss 0.5  valid_loss 0.25"))
    assert capsys.readouterr().out == ""


def test_a_terminal_without_either_shows_lines(installed: Any) -> None:
    installed()
    assert on_terminal(show) == "training: epoch 3 of 3  train_loss 0.5  valid_loss 0.25\n"


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


def test_the_bar_is_a_callback() -> None:
    assert isinstance(ProgressBar(3), Callback)


def test_the_bar_does_not_stop_a_run() -> None:
    with ProgressBar(4) as bar:
        assert run(callbacks=[bar], valid=samples(30)).history["epoch"] == [1, 2, 3, 4]
