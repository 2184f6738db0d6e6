from tests.sharing.rules.written import condition

from thalweg.sharing.rules.gather_options import gather_options


def test_equalities_with_constants_become_options() -> None:
    assert gather_options(condition("v = 1 OR v = 2")) == condition("v IN (1, 2)")
    assert gather_options(condition("v IN (1, 2) OR v = 3")) == condition("v IN (1, 2, 3)")


def test_others_stay_beside_them() -> None:
    gathered = gather_options(condition("v = 1 OR t = 'a' OR v = 2"))
    assert gathered == condition("v IN (1, 2) OR t = 'a'")
    unlike = condition("v = 1 OR k = 1")
    assert gather_options(unlike) is unlike
