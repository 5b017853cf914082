"""Linear layers that keep 16-bit weights, against torch on the same weights widened: every type, bias, size, rank."""

import copy

import pytest
import torch
import torch.nn.functional as F

from tests.plans import load_decoder
from text_generation_server._native import CpuMatrix, CpuPool
from text_generation_server.quant.cpu import FEW_TOKENS, CpuProduct

TYPES = [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("tokens", [1, 3, FEW_TOKENS, FEW_TOKENS + 1])
@pytest.mark.parametrize("biased", [False, True])
def test_equals_torch_on_widened_weights(dtype, tokens, biased):
    weight = torch.randn(75, 130).to(dtype)
    x, bias = torch.randn(tokens, 130), torch.randn(75) if biased else None
    method = CpuProduct(CpuPool(2))
    method.prepare(weight)
    torch.testing.assert_close(method.apply(x, bias), F.linear(x, weight.float(), bias), atol=1e-4, rtol=1e-5)


def test_slices_of_rows_and_of_columns():
    whole = torch.randn(40, 64).half()
    for part in (whole[10:30], whole[:, 16:48]):
        method = CpuProduct(CpuPool(1))
        method.prepare(part)
        x = torch.randn(2, 128)[:, : part.shape[1]]
        torch.testing.assert_close(method.apply(x, None), F.linear(x, part.float()), atol=1e-4, rtol=1e-5)


def test_what_does_not_fit_is_refused():
    matrix = CpuMatrix(CpuPool(1), torch.zeros(4, 8).numpy(), "float32")
    with pytest.raises(ValueError, match="4 rows of 8"):
        matrix.multiply(torch.zeros(1, 8).numpy(), torch.zeros(1, 5).numpy())
    with pytest.raises(TypeError):
        CpuMatrix(CpuPool(1), torch.zeros(4, 8).numpy(), "float16")
    with pytest.raises(TypeError, match="float64"):
        CpuMatrix(CpuPool(1), torch.zeros(4, 8).double().numpy(), "float64")


@pytest.mark.parametrize("dtype", TYPES)
def test_matrices_keep_the_type_of_the_checkpoint(tiny_checkpoint, tmp_path, dtype):
    _, model = tiny_checkpoint(tie_word_embeddings=True)
    copy.deepcopy(model).to(dtype).save_pretrained(tmp_path)
    decoder = load_decoder(tmp_path)
    matrices = [linear.weight.data for linear in (*decoder.linears, decoder.head.linear)]
    assert {matrix.dtype for matrix in matrices} == {dtype}
    # A tied head costs no memory of its own.
    assert decoder.head.linear.weight.data.data_ptr() == decoder.embedding.weight.data.data_ptr()
    assert decoder.final_norm.weight.data.dtype == torch.float32
