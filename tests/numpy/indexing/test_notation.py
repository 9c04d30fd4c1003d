"""einsum."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from tests.numpy.expressions import ARRAYS, check_jax, check_jit, check_numpy, lines

DATA = ARRAYS | {
    "A": ARRAYS["X"],
    "B": ARRAYS["G"][:4],
    "C": ARRAYS["G"][:, :3],
    "S": ARRAYS["G"][:3, :3],
    "I": np.arange(6).reshape(2, 3),
    "Z": ARRAYS["X"] + np.complex64(1j),
    "Q": ARRAYS["T"].repeat(2, 0)[:3, :, :3].copy(),
}

CASES = lines("""
jnp.einsum('ij,jk->ik',A,B)
jnp.einsum('ij,jk',A,B)
jnp.einsum('ii',S)
jnp.einsum('ii->i',S)
jnp.einsum('ij->ji',A)
jnp.einsum('ij->',A)
jnp.einsum('ij,jk,kl->il',A,B,C)
jnp.einsum('ij,jk,ki->',A,B,C)
jnp.einsum('...ij,jk->...ik',T,B)
jnp.einsum('...j,...j->...',T,A)
jnp.einsum('bij,bkj->bik',T,T)
jnp.einsum('i,j->ij',A[0],B[0])
jnp.einsum('i,i->i',A[0],A[1])
jnp.einsum(A,[0,1],B,[1,2],[0,2])
jnp.einsum(A,[0,1],B,[1,2])
jnp.einsum(T,[Ellipsis,0],[Ellipsis])
jnp.einsum('iij->j',Q)
jnp.einsum('ij,kl->jl',A,B)
jnp.einsum('ij,ij,ij->i',A,A,A)
jnp.einsum('i,->i',A[0],3.)
jnp.einsum('ij,jk->ik',I,I.T)
jnp.einsum('ij,jk->ik',A,Z.T)
jnp.einsum('ij,jk->ik',A>0,B>0)
jnp.einsum('ij,jk->ik',A,B,preferred_element_type=np.float16)
jnp.einsum('ab,bc,cd,de->ae',A,B,C,A,optimize='optimal')
jnp.einsum('ab,bc,cd,de,ef->af',A,B,C,A,B,optimize='greedy')
jnp.einsum('ab,bc,cd->ad',A,B,C,optimize=False)
jnp.einsum('ab,bc,cd->ad',A,B,C,optimize=[(0,1),(0,1)])
jnp.einsum('ii,i->i',S,A[:,0])
jnp.einsum('...->...',T)
jnp.einsum('i...->...',T)
jnp.einsum(' ij , jk -> ki ',A,B)
jnp.einsum('ij->ii',A)
jnp.einsum('ij,jk->iz',A,B)
jnp.einsum('ij,kk->',A,B)
jnp.einsum('ij',A,B)
jnp.einsum('ijk',A)
jnp.einsum('i$->i',A)
jnp.einsum('ij,jk->ik',A,C)
jnp.einsum('ij->j->i',A)
jnp.einsum('ij,jk->ik',A,[1])
jnp.einsum('iji->j',T.transpose(1,0,2)[:,:,:3])
jnp.einsum('i,i',A[0],A[0])
jnp.einsum('',3.)
jnp.einsum('ij,j->i',A[:,:1],A[0])
jnp.einsum('...ij->...ji',T)
jnp.einsum('bi,...i->b...',A,T)
jnp.einsum_path('ij,jk,kl->il',A,B,C)[0]
jnp.einsum('ij,jk->ik',A.astype(np.float16),B.astype(np.float16))
jnp.einsum('ij->i',I.astype(np.int8))
jnp.einsum('ij,jk,kl->il',A,B,C,optimize='x')
""")


@pytest.mark.parametrize("case", CASES)
def test_as_numpy(case):
    check_numpy(case, DATA, tol=0.0001)


@pytest.mark.parametrize("case", CASES[::3])
def test_under_jit(case):
    check_jit(case, DATA, tol=0.0001)


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_as_jax(case):
    check_jax(case, DATA, tol=0.0001)


def test_any_character_may_name_an_index() -> None:
    a = np.arange(6.0).reshape(2, 3)
    for spec in ("a1,1b->ab", "_@,@#->_#", "aé,éb->ab"):
        np.testing.assert_allclose(calque.numpy.einsum(spec, a, a.T), a @ a.T)
    with pytest.raises(ValueError, match=r"Character '\.'"):
        calque.numpy.einsum("a.,.b->ab", a, a.T)


@pytest.mark.parametrize("preferred", [None, jnp.float16])
def test_a_product_of_the_users_own_is_told_the_dtype_of_the_result(preferred):
    told = []

    def narrow(x, y, numbers, precision, preferred_element_type):
        told.append(preferred_element_type)
        x, y = x.astype(jnp.float8_e4m3fn), y.astype(jnp.float8_e5m2)
        return lax.dot_general(
            x, y, numbers, precision, preferred_element_type=preferred_element_type
        )

    x, y = jnp.array([[1.0, 2.0]]), jnp.array([[4], [8]])
    z = jnp.einsum("ij,jk->ik", x, y, preferred_element_type=preferred, _dot_general=narrow)
    expected = np.dtype(preferred or "float32")
    assert told == [expected] and z.dtype == expected and z.tolist() == [[20]]


def test_sizes_that_do_not_match_name_the_operand_and_both_sizes() -> None:
    text = r"label 'j' for operand 1 \(5\) does not match previous terms \(3\)"
    with pytest.raises(ValueError, match=text):
        jnp.einsum("ij,kj->ik", np.ones((2, 3)), np.ones((4, 5)))


@pytest.mark.parametrize(
    "text, dtype, of, want",
    [
        ("ab->a", np.int8, "int32", 500),
        ("ab->a", bool, "float32", 5),
        ("ab->", np.float16, "float32", 2000),
        ("ab,ac,ad->a", bool, "float32", 125),
        ("ab,c->a", bool, "int32", 20),
        ("ab,cd->", np.float16, "float32", 4e6),
    ],
)
def test_each_sum_is_taken_in_the_dtype_that_is_preferred(text, dtype, of, want):
    x = np.full((4, 5), 100).astype(dtype)
    operands = [x[0, :4] if part == "c" else x for part in text.split("->")[0].split(",")]
    got = jnp.einsum(text, *operands, preferred_element_type=of)
    assert got.dtype == of and np.all(got == want)


def test_weak_types_of_sums_of_products():
    weak, strong = jnp.broadcast_to(jnp.asarray(2.0), (3,)), jnp.ones(3)
    for f in (jnp.dot, jnp.matmul, jnp.inner, lambda a, b: jnp.einsum("a,a", a, b)):
        assert f(weak, weak).weak_type and not f(weak, strong).weak_type
    assert jnp.einsum("a->", weak).weak_type
    assert not jnp.dot(weak, weak, preferred_element_type="float32").weak_type
    with calque.enable_x64(True):
        signed, unsigned = jnp.ones(3, "int32"), jnp.ones(3, "uint64")
        assert (signed + unsigned).weak_type and jnp.dot(signed, unsigned).weak_type
