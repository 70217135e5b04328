"""The progress bar is shown on stderr if that is a terminal."""

import contextlib
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from prunus.training import Callback, ProgressBar
from prunus.training import progress as progress_module
from tests.training.problems import run, samples

RECORD = {"epoch": 1, "train_loss": 0.5, "valid_loss": 0.25}
needs_rich = pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="rich is not installed")
needs_tqdm = pytest.mark.skipif(importlib.util.find_spec("tqdm") is None, reason="tqdm is not installed")


def show(shown: bool | None = None, *, epochs: int = 3) -> None:
    with ProgressBar(epochs, shown=shown) as bar:
        for epoch in range(1, epochs + 1):
            bar.on_epoch_end(RECORD | {"epoch": epoch})


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns a function that hides all packages from the bar but those it is given."""

    def only(*packages: str) -> None:
        monkeypatch.setattr(progress_module, "find_spec", lambda name: name if name in packages else None)

    return only


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(action: Callable[[], None]) -> str:
    """Return what an action writes to stderr if that is a terminal."""
    with contextlib.redirect_stderr(Terminal()) as stderr, mock.patch.dict(os.environ, TERM="xterm", COLUMNS="120"):
        action()
    return stderr.getvalue()


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show()
    assert capsys.readouterr() == ("", "")


def test_nothing_is_shown_on_a_terminal_if_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    assert on_terminal(lambda: show(shown=False)) == capsys.readouterr().out == ""


@needs_rich
def test_rich_shows_epochs_and_losses(capsys: pytest.CaptureFixture[str]) -> None:
    shown = on_terminal(show)
    assert all(part in shown for part in ("3/3", "train_loss 0.5", "valid_loss 0.25"))
    assert capsys.readouterr().out == ""


@needs_rich
def test_rich_works_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show(shown=True)
    assert capsys.readouterr().out == ""


@needs_tqdm
@pytest.mark.parametrize("wanted", [None, True])
def test_tqdm_shows_epochs_and_losses_without_rich(
    wanted: bool | None, installed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    installed("tqdm")
    shown = on_terminal(lambda: show(wanted))
    assert all(part in shown for part in ("3/3", "train_loss 0.5  valid_loss 0.25"))
    assert capsys.readouterr().out == ""


def test_nothing_is_shown_without_either(installed: Any) -> None:
    installed()
    assert on_terminal(show) == ""


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
    bar = ProgressBar(3, shown=True)

    def act() -> None:
        with pytest.raises(KeyError), bar:
            raise KeyError

    on_terminal(act)
    assert not bar._bar.live.is_started


def test_a_python_without_stderr_shows_nothing() -> None:
    with contextlib.redirect_stderr(None):  # as in programs with a graphical interface on Windows
        show()


def test_the_bar_is_a_callback() -> None:
    assert isinstance(ProgressBar(3), Callback)


def test_the_bar_does_not_stop_a_run() -> None:
    with ProgressBar(4, shown=True) as bar:
        assert run(callbacks=[bar], valid=samples(30)).history["epoch"] == [1, 2, 3, 4]
