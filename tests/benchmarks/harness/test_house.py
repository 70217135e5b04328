"""What the figures of the repository count, on small made-up packages."""

from textwrap import dedent

from benchmarks.harness.house.repeats import find_repeats
from benchmarks.harness.house.sizes import count_code_lines
from benchmarks.harness.house.sources import Module, Place, code_lines
from benchmarks.harness.house.tangles import find_private_reads, find_task_comparisons

STEPS = [f"step({i})" for i in range(9)]


def module(text: str, name: str = "a.py") -> Module:
    return Module(name, dedent(text))


def found(places: list[Place]) -> list[str]:
    return [place.text for place in places]


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


def test_what_is_written_three_times_makes_three_pairs() -> None:
    text = "\n".join(STEPS[:6])
    twice = Module("a.py", f"{text}\nother()\n{text}\n")
    once = Module("b.py", text)
    assert found(find_repeats([twice])) == ["6 lines as in a.py:8"]
    assert len(find_repeats([twice, once])) == 3
