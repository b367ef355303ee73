# SPDX-License-Identifier: Apache-2.0
"""Administration while one of two triples is down, and with machines of a party that are set up
differently."""

import dataclasses

import pytest

import config_files
import daemon
import realm as realm_module
import triples
from long_tests import LONG
from triples import OneTripleKdc, machine
from triples_night_test import start

pytestmark = LONG

ALICE = ('alice', 'a first password')


@pytest.fixture
def parties():
    made = triples.postgres_or_skip(pytest)
    yield made
    made.remove()


def test_a_realm_is_initialised_with_one_triple_down(tmp_path, parties):
    """Both are set up, and triple 1 is not started yet. What the first has made is the second's."""
    options = dataclasses.replace(realm_module.Options(), databases=parties.conninfos(), triples=2)
    with realm_module.Realm(tmp_path / 'realm', options) as live:
        live.write_files()
        parties.migrate(live)
        for party in range(3):
            start(live, machine(0, party))
        done = live.admin('init-realm', check=False)
        assert done.returncode == 0, done.stderr
        live.create_database()
        live.start_kdc()
        live.enroll(*ALICE)
        config_files.share_store_keys(live)
        for party in range(3):
            start(live, machine(1, party))
        triples.wait_until_healthy(live)
        with OneTripleKdc(live, 1) as kdc:
            live.kinit(*ALICE, env=kdc.env)
        said = live.admin('doctor', check=False)
        assert said.returncode == 0, said.stdout


def test_keys_are_enrolled_and_collected_with_one_triple_down(tmp_path, parties):
    """And the machines differ in delete_grace."""
    with triples.two_triples(tmp_path / 'realm', parties) as live:
        live.enroll(*ALICE)
        live.enroll('bob', 'a first password')
        for party in range(3):
            live.servers[machine(1, party)].stop()
        live.enroll('carol', 'a first password')
        live.enroll('bob', 'a second password', '--replace', '--delete-old')
        assert 'bob@' in live.admin('gc', check=False).stdout
        for party in range(3):
            live.change_config(machine(1, party), '[quota]', '[policy]\ndelete_grace = "5s"\n\n[quota]')
            start(live, machine(1, party))
        triples.wait_until_healthy(live)
        said = live.admin('doctor', check=False).stdout
        assert 'differ in [policy] delete_grace' in said, said
        with OneTripleKdc(live, 1) as kdc:
            live.kinit('carol', 'a first password', env=kdc.env)
            live.kinit('bob', 'a second password', env=kdc.env)
            wrong = live.kinit('bob', 'a first password', env=kdc.env, check=False)
            assert 'Password incorrect' in wrong.stdout, wrong.stdout
        gone = daemon.wait_until(lambda: 'no deleted keys' in live.admin('gc', check=False).stdout, 90, 2)
        assert gone, live.admin('gc', check=False).stdout
        live.admin('verify')
        live.kinit('bob', 'a second password')
