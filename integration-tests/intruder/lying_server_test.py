# SPDX-License-Identifier: Apache-2.0
"""One of the three servers is the intruder's, and alters what it sends: to the honest KDC, to the
other servers."""

import json
import urllib.request

import config_files
import daemon
import pytest
from start_world import start

LIAR = 1
ALICE = ('alice', 'known to alice alone')
UNAVAILABLE = 'A service is not available'


@pytest.fixture
def live(tmp_path_factory):
    with start(tmp_path_factory.mktemp('liar'), metrics=tuple(daemon.free_ports(3))) as realm:
        realm.enroll(*ALICE)
        server = realm.servers[LIAR]
        server.stop()
        server.argv[0] = config_files.mpc_program('mpc-server-control')
        server.start()
        assert daemon.wait_until(lambda: realm.kinit(*ALICE, check=False).returncode == 0, 30, 0.2)
        yield realm


def test_a_server_that_alters_its_answers_is_named_and_nothing_is_taken(live):
    control, log = live.dir / 'dropped-defences', live.log_dir / 'kdc.log'
    assert 'altered its answer' not in log.read_text()
    control.write_text('Honesty\n')
    reply = live.kinit(*ALICE, check=False)
    assert reply.returncode and UNAVAILABLE in reply.stdout, reply.stdout
    assert live.failed_attempts(ALICE[0]) == 0
    line = next(line for line in log.read_text().splitlines() if 'altered its answer' in line)
    assert f'{live.ports.clients[LIAR]} (party {LIAR})' in line
    assert 'nothing of' in line and 'taken' in line
    control.write_text('')
    live.kinit(*ALICE)


def assert_unavailable(live, password):
    """Whatever the password: a proof that fails says nothing about it."""
    reply = live.kinit(ALICE[0], password, check=False)
    assert reply.returncode and UNAVAILABLE in reply.stdout, reply.stdout
    assert live.failed_attempts(ALICE[0]) == 0


def metric(live, party, line):
    url = f'http://127.0.0.1:{live.options.metrics[party]}/metrics'
    return line in urllib.request.urlopen(url, timeout=10).read().decode().splitlines()


def audited(live, party, kind):
    lines = (live.log_dir / f'p{party}-audit.jsonl').read_text().splitlines()
    return [line for line in map(json.loads, lines) if line['kind'] == kind]


def test_a_server_that_lies_in_a_computation_stops_the_realm_until_an_administrator_says_so(live):
    control = live.dir / 'dropped-defences'
    control.write_text('TrueMessages\n')
    assert_unavailable(live, ALICE[1])
    control.write_text('')

    honest = [party for party in range(3) if party != LIAR]
    for restarted in (False, True):
        if restarted:
            for party in range(3):
                live.restart_server(party)
            assert_unavailable(live, 'wrong')
        for party in honest:
            status = next(s for s in live.server_status() if s['party'] == party)
            assert LIAR in status['quarantine']['suspects'], status
            assert party not in status['quarantine']['suspects'], status
            assert f"the proof of P{LIAR}'s messages" in status['quarantine']['text'], status
            assert daemon.wait_until(
                lambda: metric(live, party, 'mpckdc_state{what="quarantined"} 1'), 10)
            assert metric(live, party, f'mpckdc_deviation{{suspect="p{LIAR}"}} 1')
    for party in honest:
        assert LIAR in audited(live, party, 'deviation')[0]['suspects']
        log = live.servers[party].log.read_text()
        assert 'until mpc-admin readmit' in log and 'a-server-deviated.md' in log
    status = live.admin('status', check=False)
    assert status.returncode == 1 and 'QUARANTINED' in status.stdout
    assert 'mpc-admin readmit' in live.admin('doctor', check=False).stdout

    # With a server down nothing is ended, and the next attempt ends all of it.
    live.servers[honest[0]].stop()
    refused = live.admin('readmit', check=False)
    assert refused.returncode == 3 and f'{live.ports.clients[honest[0]]}' in refused.stderr
    assert next(s for s in live.server_status() if s.get('party') == honest[1])['quarantine']
    live.servers[honest[0]].start()
    assert daemon.wait_until(
        lambda: live.servers[honest[0]].listens_on(live.ports.clients[honest[0]]), 30)
    ended = live.admin('readmit').stdout
    for party in honest:
        assert f'party {party} ended its quarantine' in ended
        act = [line for line in audited(live, party, 'admin') if line['call'] == 'Readmit'][-1]
        assert act['who'] == 'admin/administrator' and act['ended'] and LIAR in act['suspects']
    live.wait_for_servers()
    live.kinit(*ALICE)
    again = live.admin('readmit', check=False)
    assert again.returncode == 4 and 'nothing to readmit' in again.stdout + again.stderr


def test_a_garbler_with_other_shares_is_named_in_log_audit_log_and_status(live):
    """Logins of stock clients are garbled, each by two servers for the third one, in turn."""
    user = ('stock', 'known to stock alone')
    live.enroll(*user, '--enctype', 'aes256-cts')
    live.kinit(*user)
    control = live.dir / 'dropped-defences'
    control.write_text('GarbledShares G1 u\nGarbledShares G2 w\n')
    for _ in range(12):  # it lies when it garbles, and is honest when it evaluates
        reply = live.kinit(*user, check=False)
        if reply.returncode:
            break
    assert reply.returncode and UNAVAILABLE in reply.stdout, reply.stdout
    assert live.failed_attempts(user[0]) == 0
    control.write_text('')

    seen = [s for s in live.server_status() if s['party'] != LIAR and s.get('quarantine')]
    assert len(seen) == 1, 'the evaluator alone'
    party, quarantine = seen[0]['party'], seen[0]['quarantine']
    text = f'P{LIAR} sent a label of another share than this one'
    assert quarantine['suspects'] == [LIAR] and text in quarantine['text']
    line = audited(live, party, 'deviation')[0]
    assert line['suspects'] == [LIAR] and text in line['text']
    assert f'P{LIAR} deviated from the protocol: {text}' in live.servers[party].log.read_text()
    status = live.admin('status', check=False)
    said = status.stdout + status.stderr
    assert status.returncode == 1 and text in said and f'saw fits party {LIAR}' in said
    named = f'mpckdc_deviation{{suspect="p{LIAR}"}} 1'
    assert daemon.wait_until(lambda: metric(live, party, named), 10)
    assert f'party {party} ended its quarantine' in live.admin('readmit').stdout
    live.wait_for_servers()
    live.kinit(*user)
