# SPDX-License-Identifier: Apache-2.0
"""The realm's modules are in the folder beside this one. One lab serves all tests."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'realm'))

import lab as lab_module  # noqa: E402
import network  # noqa: E402


@pytest.fixture(scope='session')
def lab(tmp_path_factory):
    reason = network.missing_rights()
    if reason:
        pytest.skip(reason)
    with lab_module.Lab(tmp_path_factory.mktemp('fault')) as made:
        yield made
