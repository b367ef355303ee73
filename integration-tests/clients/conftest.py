# SPDX-License-Identifier: Apache-2.0
"""A realm of ours and MIT's own KDC, for the tests of this folder.
MPCKDC_CLIENT_USERS=local|protected|imported chooses where users' keys are."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import client_lab as lab_module  # noqa: E402

USERS = os.environ.get('MPCKDC_CLIENT_USERS', lab_module.DEFAULT_USERS)


def _lab(tmp_path_factory, kind):
    made = lab_module.Lab(tmp_path_factory.mktemp(kind), kind)
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture(scope='session')
def ours(tmp_path_factory):
    yield from _lab(tmp_path_factory, USERS)


@pytest.fixture(scope='session')
def stock(tmp_path_factory):
    yield from _lab(tmp_path_factory, 'stock')


@pytest.fixture(scope='session')
def imported(tmp_path_factory):
    yield from _lab(tmp_path_factory, 'imported')
