"""The trial of PTX: its text, and (thread by thread, on this CPU) that the kernels compute what
calque's own engine computes, bit by bit."""

import ctypes
import importlib.util
import pathlib
import re
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.core.config import config

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "ptx_spike.py"
if not TOOL.exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("ptx_spike", TOOL)
assert spec is not None and spec.loader is not None
tool = importlib.util.module_from_spec(spec)
sys.modules["ptx_spike"] = tool
spec.loader.exec_module(tool)
REGISTERS = ("tid.x", "ctaid.x", "ntid.x")


def x_of(n):
    return np.random.default_rng(n).normal(size=n).astype(np.float32)


def only_kernel(f, *args):
    (kernel,) = tool.kernels_of(f, *args)
    return kernel


def needs_nvptx():
    llvm.initialize_all_targets()
    try:
        llvm.Target.from_triple(tool.TRIPLE)
    except RuntimeError:
        pytest.skip("llvmlite's LLVM has no NVPTX")


def test_the_text_of_an_elementwise_kernel():
    needs_nvptx()
    text = tool.ptx(only_kernel(lambda x, y: x * y + 2, x_of(1000), x_of(1000)))
    assert ".target sm_80" in text and ".visible .entry kernel_0(" in text
    assert len(re.findall(r"\.param \.u64 \.ptr \.global", text)) == 3
    assert text.count("ld.global.b32") == 2 and text.count("st.global.b32") == 1
    assert "%tid.x" in text and "%ctaid.x" in text and "%ntid.x" in text
    assert "mul.rn.f32" in text and "add.rn.f32" in text and "fma" not in text
    assert ".shared" not in text and "bar.sync" not in text


def test_the_text_of_a_sum():
    needs_nvptx()
    text = tool.ptx(only_kernel(lambda x: jnp.sum(x * x), x_of(1000)))
    assert ".shared .align 4 .b8 partial[64]" in text and "bar.sync" in text
    assert len(re.findall(r"\.param \.u64 \.ptr \.global", text)) == 2
    assert text.count("ld.global.b32") == 4 and text.count("ld.shared.b32") == 16
    assert text.count("st.shared.b32") == 1 and text.count("st.global.b32") == 1
    assert "fma" not in text and "ld.b32" not in text  # every address has its space


def on_this_cpu(kernel, extent, arrays):
    """Runs all threads one after the other, the first thread last: nothing has to wait then."""
    ir = kernel.ir.replace(f'target triple = "{tool.TRIPLE}"', "").replace("ptx_kernel ", "")
    ir = ir.replace(
        f"declare void {tool.BARRIER}()", f"define void {tool.BARRIER}() {{ ret void }}"
    )
    for r in REGISTERS:
        name = r.replace(".", "_")
        ir = ir.replace(
            f"declare i32 {tool.SPECIAL}{r}()",
            f"@{name} = global i32 0\ndefine i32 {tool.SPECIAL}{r}() {{\n"
            f"  %x = load i32, ptr @{name}\n  ret i32 %x\n}}",
        )
    ir = (
        ir.replace("@llvm.nvvm.", "@here.")
        .replace("addrspace(1) ", "")
        .replace("addrspace(3) ", "")
    )
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(ir)
    machine = llvm.Target.from_default_triple().create_target_machine()
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        cells = [
            ctypes.c_int32.from_address(engine.get_global_value_address(r.replace(".", "_")))
            for r in REGISTERS
        ]
        run = ctypes.CFUNCTYPE(
            None, *[ctypes.c_void_p] * len(arrays), *[ctypes.c_int64] * len(kernel.sizes)
        )(engine.get_function_address(kernel.name))
        blocks = 1 if kernel.is_sum else -(-extent // kernel.threads)
        cells[2].value = kernel.threads
        for cells[1].value in range(blocks):
            for cells[0].value in reversed(range(kernel.threads)):
                run(*[a.ctypes.data for a in arrays], *[extent] * len(kernel.sizes))


@pytest.fixture
def exactly():
    """No product and sum become one operation, which the trial does not do either."""
    with config.override("calque_exact", True):
        yield


@pytest.mark.parametrize("n", [2, 63, 64, 1000, 1025])
def test_elements_have_the_bits_of_the_own_engine(exactly, n):
    def f(x, y):
        return (x * y + 2) / x - y

    x, y, out = x_of(n), x_of(n)[::-1].copy(), np.zeros(n, np.float32)
    kernel = only_kernel(f, x, y)
    given = {"in1": x, "in2": y}
    on_this_cpu(kernel, n, [given.get(b.name, out) for b in kernel.buffers])
    np.testing.assert_array_equal(out.view(np.int32), np.asarray(jax.jit(f)(x, y)).view(np.int32))


@pytest.mark.parametrize("n", [65, 1000, 4096, 5001])
def test_sums_have_the_bits_of_the_own_engine(exactly, n):
    def f(x):
        return jnp.sum(x * x) * 0.5

    x, out = x_of(n), np.zeros((), np.float32)
    kernel = only_kernel(f, x)
    on_this_cpu(kernel, n, [x if b.name.startswith("in") else out for b in kernel.buffers])
    assert out.view(np.int32) == np.asarray(jax.jit(f)(x)).view(np.int32)


@pytest.mark.parametrize(
    "f, said",
    [
        (lambda x: jnp.exp(x), "the operation exp of f32"),
        (lambda x: jnp.max(x), "a fold that is not one sum in blocks"),
        (lambda x: x > 0, "numbers of i1|the operation"),
        (lambda x: jnp.sort(x), "a step of kind Routine"),
        (lambda x: jnp.linalg.eigvals(jnp.outer(x, x)), "a step of kind|a kernel that is not"),
    ],
)
def test_what_it_does_not_write_is_refused_by_name(f, said):
    with pytest.raises(tool.Refused, match=said):
        list(tool.kernels_of(f, x_of(200)))


def test_it_prints_both(capsys):
    needs_nvptx()
    assert tool.main() == 0
    assert capsys.readouterr().out.count(".visible .entry") == 2
