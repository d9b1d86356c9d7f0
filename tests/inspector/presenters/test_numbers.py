"""Numbers as people read them."""

import numpy as np

from inspector.presenters.numbers import step_index, step_number


def test_people_count_from_1_where_the_engine_counts_from_0():
    assert (step_number(0), step_index(1)) == (1, 0)
    assert list(step_number(np.array([0, 47]))) == [1, 48]
    assert all(step_index(step_number(index)) == index for index in range(100))
