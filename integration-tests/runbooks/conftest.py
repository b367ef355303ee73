# SPDX-License-Identifier: Apache-2.0
"""A realm that deploy/runbooks/install.md made, word by word, and which all runbooks' tests share."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import bare_machines  # noqa: E402
import world as world_module  # noqa: E402


@pytest.fixture(scope='session')
def bare(tmp_path_factory):
    """bare(): machines on which nothing is installed."""
    reason = bare_machines.missing_rights()
    if reason:
        pytest.skip(reason)
    made = []

    def make():
        made.append(world_module.World(tmp_path_factory.mktemp('machines')).__enter__())
        return made[-1]
    yield make
    for world in made:
        world.__exit__()
