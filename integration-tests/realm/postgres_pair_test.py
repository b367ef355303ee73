# SPDX-License-Identifier: Apache-2.0
"""The fixture itself: what was committed is on the standby, whichever of the two has failed."""

import pytest

import postgres
import postgres_pair
from long_tests import LONG


@LONG
def test_it_fails_over_and_back():
    try:
        pair = postgres_pair.Pair()
    except postgres.Missing as e:
        pytest.skip(str(e))
    try:
        pair.sql('CREATE TABLE said (what text)')
        for what in ('before', 'between', 'after'):
            pair.sql(f"INSERT INTO said VALUES ('{what}')")
            pair.fail_over()
            assert pair.sql('SELECT string_agg(what, $$ $$) FROM said').split()[-1] == what
            pair.make_standby()
        assert pair.sql('SELECT count(*) FROM said') == '3'
    finally:
        pair.remove()
