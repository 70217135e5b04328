"""What the figures of the repository count, on small made-up packages."""

import json
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest
from sklearn.base import BaseEstimator

from benchmarks.harness.house import __main__ as house
from benchmarks.harness.house.reach import Reach, count_classes, count_options, measure_reach, reach_of_a_tree
from benchmarks.harness.house.repeats import find_repeats
from benchmarks.harness.house.sizes import (
    count_all_lines,
    count_cases,
    count_code_lines,
    count_script_lines,
    count_tests,
)
from benchmarks.harness.house.sources import Module, Place, code_lines, format_places, read_modules
from benchmarks.harness.house.tangles import find_file_checks, find_private_reads, find_task_comparisons

STEPS = [f"step({i})" for i in range(9)]


def module(text: str, name: str = "a.py") -> Module:
    return Module(name, dedent(text))


def found(places: list[Place]) -> list[str]:
    return [place.text for place in places]


def test_modules_are_the_python_files_of_all_folders(tmp_path: Path) -> None:
    for name in ("b.py", "a/c.py", "_core.pyi", "a/page.js"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 'é'\n", encoding="utf-8")
    assert read_modules(tmp_path) == [Module("a/c.py", "x = 'é'\n"), Module("b.py", "x = 'é'\n")]


def test_lines_of_code_are_without_docstrings_comments_and_blank_lines() -> None:
    source = module('''
        """Of the module,

        in several lines."""
        import os  # why

        # nothing but a comment
        class A: ...
        "Of nothing."
        x: int
        """Of an attribute."""
        text = """not a docstring

            # and this is no comment"""
        def f():
            """Of a function."""
            return [  # begin
                os,

            ]
    ''')
    lines = [
        "class A: ...",
        "x: int",
        'text = """not a docstring',
        '# and this is no comment"""',
        "def f():",
        "return [",
    ]
    assert [line.text for line in code_lines(source)] == ["import os", *lines, "os,", "]"]
    assert [line.text for line in code_lines(source, with_imports=False)] == [*lines, "os,", "]"]
    assert code_lines(source)[0].number == 5
    assert count_code_lines([source, source]) == 18


def test_lines_of_scripts_are_those_that_are_not_blank(tmp_path: Path) -> None:
    (tmp_path / "page").mkdir()
    (tmp_path / "page" / "a.js").write_text("// why\n\nlet x = 1;\n  \n")
    (tmp_path / "page" / "a.css").write_text("p {}\n")
    assert count_script_lines(tmp_path) == 2


def test_tests_are_functions_and_methods_named_so() -> None:
    source = module("""
        def test_a(): ...

        def helper_test(): ...

        class TestB:
            async def test_c(self): ...
    """)
    assert count_tests([source]) == 2
    assert count_all_lines([source]) == 7


def test_cases_are_those_that_pytest_finds(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_a.py").write_text(
        "import pytest\n@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): ...\ndef test_b(): ...\n"
    )
    assert count_cases(tmp_path) == 3


def test_what_pytest_says_is_shown_if_it_finds_no_tests(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n")
    with pytest.raises(RuntimeError, match="did not say"):
        count_cases(tmp_path)


def test_checks_for_files_name_a_class_of_files_or_streams() -> None:
    text = """
        if isinstance(x, FileTable) or not isinstance(x, (list, streams.SampleStream)):
            isinstance(x, int | ScannedTable)
        isinstance(x, ArrayTable), isinstance(error, ModelFileError), print(FileTable), isinstance(FileTable, type)
    """
    homes = ["data/file_table.py", "training/streams.py", "training/streams_of_rows.py"]
    places = find_file_checks([module(text), *(module(text, home) for home in homes)])
    assert sorted(found(places)) == [
        "isinstance(x, (list, streams.SampleStream))",
        "isinstance(x, FileTable)",
        "isinstance(x, int | ScannedTable)",
    ]
    assert {place.module for place in places} == {"a.py"}


def test_comparisons_of_the_task_are_with_constants_and_outside_the_targets() -> None:
    text = """
        if task == "classes" or "classes" != tree.target_.task or self.task not in ("classes", "numbers"):
            task == other, tasks == "classes", task in TASKS, task == 1, task in (), is_classes == "yes"
    """
    places = find_task_comparisons([module(text), module(text, "targets/target.py")])
    assert sorted(found(places)) == [
        "'classes' != tree.target_.task",
        "self.task not in ('classes', 'numbers')",
        "task == 'classes'",
    ]


def test_private_reads_are_of_what_another_module_defines() -> None:
    reader = module("""
        class Own:
            __slots__ = ("_slot",)
            _annotated: int
            def _method(self):
                self._mine, super()._mine, cls._mine, x._mine
                x._slot, x._annotated, x._method, x._set, x.__dict__
                x._replace(a=1), x._asdict(), prunus._core, torch._foreach_add()
                x._set = 1
    """)
    owner = module("def f(self):\n    self._mine = 1", "b.py")
    ours, of_libraries = find_private_reads([reader, owner])
    assert ours == [Place("a.py", 6, "x._mine")]
    assert found(of_libraries) == ["torch._foreach_add"]


def test_a_repeat_reaches_as_far_as_its_lines_are_the_same() -> None:
    first = Module("a.py", "\n".join(["begin()", *STEPS, "end()"]))
    body = "\n\n    # why\n".join(f"    {step}  # what" for step in STEPS)
    second = Module("b.py", f'import os\ndef f():\n    """Do it."""\n{body}\n    finish()\n')
    assert find_repeats([first, second]) == [Place("a.py", 2, "9 lines as in b.py:4")]
    assert find_repeats([first, second], 10) == []


def test_what_is_written_three_times_makes_three_pairs() -> None:
    text = "\n".join(STEPS[:6])
    twice = Module("a.py", f"{text}\nother()\n{text}\n")
    once = Module("b.py", text)
    assert found(find_repeats([twice])) == ["6 lines as in a.py:8"]
    assert len(find_repeats([twice, once])) == 3


def test_places_in_one_module_that_overlap_are_no_repeat() -> None:
    same = Module("a.py", "\n".join(["step()"] * 11))
    assert find_repeats([same]) == []


def test_places_are_printed_under_their_modules() -> None:
    places = [Place("b.py", 7, "x"), Place("a.py", 20, "y"), Place("a.py", 3, "z")]
    assert format_places(places).split() == ["2", "a.py", "3", "z", "20", "y", "1", "b.py", "7", "x"]


def test_reach_counts_functions_and_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "house_example"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "late.py").write_text("class Late: ...\n")
    (folder / "other.py").write_text("apply = lambda f: f()\ndef ended(): ...\ndef unused(): ...\n")
    (folder / "first.py").write_text(
        dedent("""
            import threading
            from house_example import other

            def run():
                import house_example.late
                thread = threading.Thread(target=other.ended)
                thread.start()
                thread.join()
                return other.apply(lambda: [again() for _ in range(3)])

            def again(): ...
        """)
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = import_module("house_example.first").run
    before = sys.getprofile()
    assert measure_reach(run, folder) == Reach(modules=2, functions=3)
    assert measure_reach(run, tmp_path / "elsewhere") == Reach(0, 0)
    assert sys.getprofile() is before


def test_a_fit_runs_more_of_prunus_than_a_prediction() -> None:
    fit, predict = reach_of_a_tree()
    assert fit.functions > predict.functions > predict.modules > 0
    assert fit.modules > predict.modules


def test_classes_and_options_of_an_estimator() -> None:
    class Tree(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
        def __init__(self, depth: int = 1, leaf: str = "constant") -> None:
            self.depth, self.leaf = depth, leaf

    assert count_classes(bool) == 3
    assert count_options(Tree) == 2


def test_the_figures_are_printed_as_table_and_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("src/prunus/a.py", "if task == 'classes': ...\n"), ("tests/test_a.py", "def test_a(): ...\n")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "reach_of_a_tree", lambda: (Reach(4, 30), Reach(2, 10)))
    house.main(["--json"])
    figures = json.loads(capsys.readouterr().out)
    assert figures["functions run by a fit"] == 30
    assert figures["comparisons of the task"] == figures["lines of code"] == figures["test functions"] == 1
    house.main(["--verbose"])
    table, *details = capsys.readouterr().out.split("\n\n")
    assert [line.split()[-1] for line in table.splitlines()] == ["now", *map(str, figures.values())]
    assert any("task == 'classes'" in text for text in details)
