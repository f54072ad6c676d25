"""Records of `memservice.spi` that compute something."""

from __future__ import annotations

from memservice.spi.reasoner import Spent


def test_costs_add_up_in_every_field() -> None:
    one, other = Spent("a", 1, 2, 3, 4, 5), Spent("b", 10, 20, 30, 40, 50)
    assert one + other == Spent("a", 11, 22, 33, 44, 55)
    assert len(Spent.__struct_fields__) == 6, "a new field is added too"


def test_a_sum_has_the_first_model_that_was_called() -> None:
    assert sum([Spent(), Spent("a"), Spent("b")], Spent()).model == "a"
