# SPDX-License-Identifier: Apache-2.0
"""Two worlds: the realm as it is, and the control in which a test can drop a defence."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'realm'))

import config_files  # noqa: E402
import control_krb5  # noqa: E402
from attack import World  # noqa: E402
from start_world import start  # noqa: E402


@pytest.fixture(scope='session')
def world(tmp_path_factory):
    """The programs that are installed."""
    with start(tmp_path_factory.mktemp('world')) as live:
        yield World(live)


@pytest.fixture(scope='session')
def control(tmp_path_factory):
    """Servers that can drop a defence."""
    with start(tmp_path_factory.mktemp('control'),
                server_program=config_files.mpc_program('mpc-server-control')) as live:
        yield World(live)


@pytest.fixture(scope='session')
def gullible(tmp_path_factory):
    """The servers as they are; a krb5kdc and a kadmind that do not look at headers."""
    with start(tmp_path_factory.mktemp('gullible'), kdc_program=control_krb5.program('krb5kdc'),
               kadmind_program=control_krb5.program('kadmind')) as live:
        yield World(live)
