"""The processor that code is generated for."""

import pytest

from calque.machine.code import llvm, target


@pytest.mark.skipif(not target.describe().is_x86, reason="names of x86 processors")
@pytest.mark.parametrize(
    ("name", "width", "registers"),
    [("x86-64", 16, 16), ("x86-64-v3", 32, 16), ("skylake-avx512", 64, 32), ("haswell", 32, 16)],
)
def test_a_named_processor_says_its_vectors(
    name: str, width: int, registers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if width > target.describe().vector_bytes:
        pytest.skip("this machine has no such vectors")
    monkeypatch.setenv("CALQUE_CPU", name)
    found = target._own.__wrapped__()
    assert (found.cpu, found.vector_bytes, found.vector_registers) == (name, width, registers)


@pytest.mark.skipif(not target.describe().is_x86, reason="names of x86 processors")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nonsense", "is not known to LLVM"),
        ("skylake-avx5", "did you mean skylake-avx512"),
        ("i386", "is not for this kind of machine"),
        ("help", "is not known to LLVM"),
    ],
)
def test_an_unknown_processor_is_an_error(
    name: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALQUE_CPU", name)
    with pytest.raises(ValueError, match=r"known names: .*x86-64-v3") as caught:
        target._own.__wrapped__()
    assert why in str(caught.value) and "native" in str(caught.value)


def test_native_is_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALQUE_CPU", raising=False)
    host = target._own.__wrapped__()
    monkeypatch.setenv("CALQUE_CPU", "native")
    assert target._own.__wrapped__() == host


@pytest.mark.skipif(not target.describe().is_x86, reason="names of x86 processors")
def test_a_processor_with_more_than_this_one_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target, "_host_features", lambda: {"sse2": True})
    monkeypatch.setenv("CALQUE_CPU", "haswell")
    with pytest.raises(ValueError, match="wider vectors than this machine"):
        target._ask_llvm()


def test_the_host_is_described() -> None:
    found = target.describe()
    assert found.vector_bytes in (16, 32, 64)
    assert 4 << 10 <= found.l1_bytes <= found.l2_bytes
    assert found.cpu in found.key


@pytest.mark.parametrize(
    ("text", "size"), [("48K", 48 << 10), ("1M", 1 << 20), ("512", 512), ("", 0), ("huge", 0)]
)
def test_sizes_of_caches_are_read(text: str, size: int) -> None:
    assert target._parse_size(text) == size


def test_a_machine_is_made_for_each_level() -> None:
    assert all(target.create_machine(opt) is not None for opt in range(4))


def test_code_for_another_processor_is_made_and_not_linked() -> None:
    own = target.describe()
    other = own._replace(cpu="another", key="another", vector_bytes=16)
    with target.making_for(other):
        assert target.describe() is other and target.is_foreign()
        with pytest.raises(llvm.LLVMError, match="does not run here"):
            llvm.link_object(b"", ["f"])
        with target.making_for(None):
            assert target.describe() is own and not target.is_foreign()
    assert target.describe() is own


@pytest.mark.skipif(not target.describe().is_x86, reason="names of x86 processors")
def test_a_processor_that_this_machine_need_not_be() -> None:
    found = target.named("skylake-avx512")
    assert (found.cpu, found.vector_bytes, found.vector_registers) == ("skylake-avx512", 64, 32)
    with pytest.raises(ValueError, match="cpu='skylark' is not known to LLVM; did you mean"):
        target.named("skylark")
