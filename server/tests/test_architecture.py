"""The dependency rules and budgets of the repository hold, and the checkers notice when they do not."""

import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import architecture  # noqa: E402
import budget  # noqa: E402
import sources  # noqa: E402

PACKAGE = architecture.PACKAGE
BAD = [
    ("layers", "router/src/engine/step.rs", "//! Steps.\nuse crate::http::sse;\n"),
    ("family-imports", PACKAGE + "models/families/tiny.py", '"""Tiny."""\n\nimport torch\n'),
    ("kernels", PACKAGE + "kernels/norm.py", '"""Norm."""\n\nfrom ..models import spec\n'),
    ("environment", "router/src/app.rs", '//! App.\nfn f() { std::env::var("X"); }\n'),
    ("environment", PACKAGE + "service.py", '"""Service."""\n\nimport os\n\nos.environ["X"]\n'),
    ("architecture-names", PACKAGE + "weights/loader.py", '"""Loader."""\n\nKIND = "llama"\n'),
    ("purpose", "router/src/new.rs", "fn f() {}\n"),
    ("unfinished", "router/src/new.rs", "//! New.\nfn f() { todo!() }\n"),
]
GOOD = [
    ("router/src/engine/step.rs", '//! Steps.\n// not a word to crate::http\nconst X: &str = "crate::http";\n'),
    (PACKAGE + "models/families/tiny.py", '"""Tiny."""\n\nfrom ..spec import DecoderSpec\n'),
    (PACKAGE + "models/registry.py", '"""Registry."""\n\nNAMES = {"LlamaForCausalLM": "llama"}\n'),
    (PACKAGE + "config.py", '"""Config."""\n\nimport os\n\nos.environ["X"]\n'),
]


def test_repository_keeps_the_rules():
    assert architecture.check() == []


def test_repository_keeps_the_budgets():
    assert [str(finding) for finding in budget.findings() if finding.over == "hard"] == []


@pytest.mark.parametrize(("rule", "name", "text"), BAD)
def test_fault_is_noticed(rule, name, text):
    faults = list(architecture.check_source(architecture.Source(name, text, test=False)))
    assert [fault.split(":")[0] for fault in faults] == [rule]


@pytest.mark.parametrize(("name", "text"), GOOD)
def test_good_file_passes(name, text):
    assert list(architecture.check_source(architecture.Source(name, text, test=False))) == []


RUST = """//! A file.
fn plain(a: u8, b: Vec<(u8, &'static str)>) -> u8 {
    let brace = '{'; // }
    a
}
impl<T: Fn(u8) -> u8> Thing<T> {
    pub async fn method<F: Fn(u8) -> u8>(&self, f: F) -> Result<(), E>
    where
        F: Send,
    {
        r#"}"#;
    }
}
#[cfg(test)]
mod tests {
    fn not_counted() {}
}
"""


def test_rust_functions_are_measured():
    code = sources.rust_code(RUST)
    assert list(sources.rust_functions(code)) == [("plain", 2, 4, 2), ("method", 7, 6, 1)]
    assert sources.rust_test_lines(code) == 4


def test_hard_limits_are_reported():
    body = "    x = 1\n" * 81
    over = [finding.what for finding in budget.python_findings("a.py", f"def f(a, b, c, d, e, g, h, i):\n{body}")]
    assert "lines of `f`" in over
    assert all(
        f.over == "hard"
        for f in budget.python_findings("a.py", f"def f(a, b, c, d, e, g, h, i):\n{body}")
        if f.what != "lines"
    )
