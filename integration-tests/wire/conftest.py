# SPDX-License-Identifier: Apache-2.0
"""Finds the module under test; what cannot run here says why."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import lines  # noqa: E402


@pytest.fixture(scope='session')
def can_make_lines():
    reason = lines.missing()
    if reason:
        pytest.skip(reason)
