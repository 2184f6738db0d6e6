"""Which controller moves fragments at a site, and the numbers of partners as an option."""

import pytest

from thalweg.runtime.network.moves.controllers import Conflict, Controller, controller_of
from thalweg.runtime.network.moves.partnering import parse_partners


def test_the_only_one_that_is_set_up_decides() -> None:
    assert controller_of(None, []) is None
    assert controller_of(None, [Controller.partners]) is Controller.partners


def test_where_several_are_set_up_one_has_to_be_named() -> None:
    both = [Controller.manager, Controller.partners]
    with pytest.raises(Conflict, match="manager and partners are set up"):
        controller_of(None, both)
    assert controller_of("manager", both) is Controller.manager
    with pytest.raises(Conflict, match="there are manager, partners, replanning"):
        controller_of("chance", both)


def test_numbers_of_partners_are_read_and_checked() -> None:
    found = parse_partners("round_s=2, kappa=1.5")
    assert (found.round_us, found.kappa, found.alpha, found.max1) == (2_000_000, 1.5, 0.9, 5)
    assert parse_partners("max1=3").max2 == 2
    assert parse_partners("").round_us == 5_000_000
    for wrong, why in (("kappa=1", "above 1"), ("speed=3", "not one of"), ("max1=x", "no number")):
        with pytest.raises(ValueError, match=why):
            parse_partners(wrong)
