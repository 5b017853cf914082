"""The OpenAPI document is true: generated requests, valid and invalid ones, get answers that it describes, and none of
them breaks the server."""

import pytest

from fuzz_http import fuzz

CASES = 2000


@pytest.mark.timeout(600)
def test_every_answer_is_documented_and_none_is_a_fault(tmp_path, demo_folder):
    code, output, sent = fuzz(CASES, tmp_path, demo_folder, seed=1)
    assert code == 0, output
    assert sent >= CASES
