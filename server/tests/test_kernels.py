"""The Triton kernels against their references, in Triton's interpreter where there is no GPU."""

import os
import subprocess
import sys

import pytest
import torch

CUDA = torch.cuda.is_available()
# (starts, counts): decode, fresh prefill, chunk, all together.
ROWS = [([0], [5]), ([70], [1]), ([40, 0, 130, 3], [1, 33, 9, 1])]


def test_kernels_in_the_interpreter():
    """Triton decides at import whether it interprets, so the tests below run in a process of their own."""
    if CUDA or os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("the tests below run here")
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "passed" in done.stdout


here = pytest.mark.skipif(not CUDA and os.environ.get("TRITON_INTERPRET") != "1", reason="needs the interpreter")


@here
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("heads", [(4, 4), (9, 3), (8, 1)])
@pytest.mark.parametrize("window", [None, 20])
@pytest.mark.parametrize("rows", ROWS)
def test_paged_attention(dtype, heads, window, rows):
    import numpy as np

    from text_generation_server.attention.base import LayerShape, RaggedRows, flat_slots
    from text_generation_server.attention.triton import TritonBackend
    from text_generation_server.kernels.paged_attention import paged_attention_reference
    from text_generation_server.kernels.write_cache import write_cache_reference

    device = torch.device("cuda" if CUDA else "cpu")
    starts, counts = (np.array(x) for x in rows)
    width = 48
    backend = TritonBackend([LayerShape(heads[0], heads[1], width, window)], 16, dtype, device)
    backend.allocate(64)
    torch.manual_seed(0)
    backend.cache[0].normal_()
    used = -(-(starts + counts).max() // 16)
    tables = np.random.default_rng(0).permutation(64)[: used * len(starts)].reshape(len(starts), used).astype(np.int32)
    ragged = RaggedRows(starts, counts, tables)
    qkv = torch.randn(int(counts.sum()), heads[0] + 2 * heads[1], width, dtype=dtype, device=device)
    query, key, value = qkv.split((heads[0], heads[1], heads[1]), 1)
    cache = backend.cache[0].cpu().clone()
    write_cache_reference(key.cpu(), value.cpu(), cache, torch.from_numpy(flat_slots(ragged, 16)))
    firsts = np.cumsum(counts) - counts
    described = torch.tensor(np.stack((starts, counts, firsts)))
    expected = paged_attention_reference(query.cpu(), cache, torch.from_numpy(tables), described, window).flatten(1)
    got = backend.begin(ragged)(0, query, key, value)
    assert torch.equal(backend.cache[0].cpu(), cache)
    assert (got.cpu().float() - expected).abs().max() < (1e-5 if dtype == torch.float32 else 4e-3)
