# SPDX-License-Identifier: Apache-2.0
"""Tests that mostly repeat, with other servers or at other moments, what a shorter one shows, or wait
for minutes: `make test-long` runs them, `make test` does not."""

import os

import pytest

ENABLED = bool(os.environ.get('MPCKDC_LONG'))
LONG = pytest.mark.skipif(not ENABLED, reason='make test-long runs it')


def some(values, short):
    """Parameters of which `make test` takes those in `short` alone."""
    return [value if value in short else pytest.param(value, marks=LONG) for value in values]
