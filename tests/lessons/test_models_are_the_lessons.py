"""What later lessons import from course_utils.models is what an earlier lesson teaches."""

import ast
import re

import pytest
from lesson_files import NOTEBOOKS, ROOT, code_of

MODELS = sorted(p for p in (ROOT / "course_utils/models").glob("*.py") if p.stem != "__init__")


def bare_functions(source: str) -> dict[str, str]:
    """Dump every top-level function, without its docstrings and annotations."""
    tree = ast.parse(source)
    return {
        node.name: ast.dump(_bare(node)) for node in tree.body if isinstance(node, ast.FunctionDef)
    }


def _bare(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:]
        elif isinstance(node, ast.arg):
            node.annotation = None
    return tree


@pytest.mark.parametrize("module", MODELS, ids=lambda path: path.stem)
def test_every_function_of_a_model_is_a_cell_of_its_lesson(module):
    source = module.read_text()
    names_its_lesson = re.search(r"lesson (\d\d_\w+)", ast.get_docstring(ast.parse(source)))
    lesson = NOTEBOOKS / f"{names_its_lesson[1]}.ipynb"
    taught = bare_functions(code_of(lesson))
    for name, function in bare_functions(source).items():
        assert name in taught, f"{lesson.name} doesn't define {name}"
        assert function == taught[name], f"{name} differs between {module.name} and {lesson.name}"


def test_the_rows_and_batches_of_the_worker_are_those_that_lesson_09_teaches():
    worker = bare_functions((ROOT / "course_utils/processes/training.py").read_text())
    taught = bare_functions(code_of(NOTEBOOKS / "09_many_processes.ipynb"))
    # The worker remembers the order it has drawn; it reaches the pixels through their module.
    assert taught["own_rows"] == worker["own_rows"]
    assert taught["global_batch"] == worker["global_batch"].replace(
        "Attribute(value=Name(id='mlp', ctx=Load()), attr='to_model_input', ctx=Load())",
        "Name(id='to_model_input', ctx=Load())",
    )


def test_the_comparison_sees_a_changed_constant_and_ignores_words():
    taught = 'def f(x: int) -> int:\n    """One."""\n    return 2 * x'
    assert bare_functions("def f(x):\n    return 2 * x") == bare_functions(taught)
    assert bare_functions("def f(x):\n    return 3 * x") != bare_functions(taught)
