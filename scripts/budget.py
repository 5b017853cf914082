"""Checks the size of files and functions: soft limits are listed, hard ones fail.

Owns the figures below and nothing else. Tests and generated code do not count; comments and blank lines do. GPU kernels
(`@triton.jit`) have no limit of parameters: pointers, strides and sizes are handed to them one by one.

    budget.py [--soft]      --soft lists what is over a soft limit as well
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from sources import is_test, relative, rust_code, rust_functions, rust_test_lines, tracked


@dataclass(frozen=True)
class Limit:
    """A size that may be passed with a good reason (`soft`), and one that may not (`hard`)."""

    soft: int
    hard: int


FILE_LINES = Limit(250, 500)
FUNCTION_LINES = Limit(30, 80)
PARAMETERS = Limit(5, 7)
FAMILY_LINES = Limit(80, 120)


@dataclass(frozen=True)
class Finding:
    """One measured size. `where` is a path, with a line where it helps."""

    where: str
    what: str
    size: int
    limit: Limit

    @property
    def over(self) -> str | None:
        """Which limit is passed."""
        return "hard" if self.size > self.limit.hard else "soft" if self.size > self.limit.soft else None

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.where}: {self.what}: {self.size} (target {self.limit.soft}, limit {self.limit.hard})"


def function_findings(where: str, name: str, lines: int, parameters: int) -> Iterator[Finding]:
    """The sizes of one function."""
    yield Finding(where, f"lines of `{name}`", lines, FUNCTION_LINES)
    yield Finding(where, f"parameters of `{name}`", parameters, PARAMETERS)


def rust_findings(name: str, text: str) -> Iterator[Finding]:
    """The sizes of one Rust file."""
    code = rust_code(text)
    yield Finding(name, "lines", text.count("\n") - rust_test_lines(code), FILE_LINES)
    for function, line, lines, parameters in rust_functions(code):
        yield from function_findings(f"{name}:{line}", function, lines, parameters)


def python_findings(name: str, text: str) -> Iterator[Finding]:
    """The sizes of one Python file."""
    family = "/models/families/" in name
    yield Finding(name, "lines", text.count("\n"), FAMILY_LINES if family else FILE_LINES)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in named)
            if any(ast.unparse(decorator) == "triton.jit" for decorator in node.decorator_list):
                count = 0
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield from function_findings(f"{name}:{node.lineno}", node.name, lines, count)


def findings() -> Iterator[Finding]:
    """Every size of every source."""
    for path in tracked(".rs", ".py"):
        if not is_test(path):
            measure = rust_findings if path.suffix == ".rs" else python_findings
            yield from measure(relative(path), path.read_text(encoding="utf-8"))


def main() -> int:
    """Print what is over; 1 when a hard limit is."""
    over = [finding for finding in findings() if finding.over]
    hard = [finding for finding in over if finding.over == "hard"]
    soft = [finding for finding in over if finding.over == "soft"]
    if "--soft" in sys.argv:
        print(*(f"soft  {finding}" for finding in soft), sep="\n")
    print(*(f"HARD  {finding}" for finding in hard), sep="\n", end="\n" if hard else "")
    print(f"budget: {len(hard)} over the limit, {len(soft)} over the target (--soft lists them)")
    return 1 if hard else 0


if __name__ == "__main__":
    sys.exit(main())
