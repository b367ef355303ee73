# SPDX-License-Identifier: Apache-2.0
"""The audit logs of a real realm: three chains that hold and tell the same."""

import json
import re
import shutil
import subprocess

import pytest

import config_files
import daemon


@pytest.fixture(scope='module')
def live(own_realm):
    own_realm.enroll('alice', 'a password')
    own_realm.enroll('bob', 'b password')
    for _ in range(3):
        own_realm.kinit('alice', 'a password')
    own_realm.kinit('alice', 'a password', '-S', 'kadmin/admin')
    wrong = own_realm.kinit('bob', 'not his password', check=False)
    assert wrong.returncode
    own_realm.stop_kdc()
    for server in own_realm.servers:  # a stopped server's log is complete
        server.stop()
    return own_realm


@pytest.fixture
def logs(live, tmp_path):
    """Copies of the three logs, to be changed at will."""
    copies = []
    for party in range(3):
        copy = tmp_path / f'p{party}.jsonl'
        shutil.copy(live.log_dir / f'p{party}-audit.jsonl', copy)
        copies.append(copy)
    return copies


def audit(*arguments):
    """mpc-admin audit, on files alone: no configuration, no certificate, no server."""
    argv = [config_files.mpc_program('mpc-admin'), 'audit', *arguments]
    return subprocess.run([str(part) for part in argv], env={'MPC_ADMIN_CONFIG': '/nonexistent'},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding='utf-8',
                          timeout=120)


def reconcile(*logs):
    result = audit('reconcile', '--json', *logs)
    return result.returncode, json.loads(result.stdout)


def lines_of(path):
    return path.read_text().splitlines(keepends=True)


def last_login(path):
    """The number of the last line with a login that succeeded, from 0."""
    return max(i for i, line in enumerate(lines_of(path))
               if any(job['op'] == 'LOGIN' and job['verdict'] == 'OK'
                      for job in json.loads(line).get('jobs', [])))


# Nothing was touched -----------------------------------------------------------------------------

def test_each_chain_holds(logs):
    for log in logs:
        result = audit('verify', log)
        assert result.returncode == 0, result.stdout + result.stderr
        assert 'the chain is intact' in result.stdout


def test_the_tickets_for_a_service_are_found(live, logs):
    """Three servers name the keys alike, and one of the logins was for kadmin."""
    for log in logs:
        found = json.loads(audit('show', '--json', '--service', 'kadmin/admin', log).stdout)
        assert [(job['what'], job['verdict']) for job in found] == [('LOGIN (seal 2)', 'OK')]
        both = audit('show', '--json', '--service', 'kadmin/admin', '--principal', 'alice', log)
        assert json.loads(both.stdout) == found
        tgts = json.loads(audit('show', '--json', '--service', f'krbtgt/{live.name}', log).stdout)
        assert len([job for job in tgts if job['verdict'] == 'OK']) == 3


def test_the_three_tell_the_same(logs):
    status, found = reconcile(*logs)
    assert status == 0, found
    assert found['unexplained'] == 0 and found['clean']
    assert found['jobs'] >= 4 and found['batches'] >= 4
    assert reconcile(logs[2], logs[0], logs[1])[0] == 0, 'in any order'


def test_what_was_done_as_alice(logs):
    shown = json.loads(audit('show', '--json', '--principal', 'alice', logs[1]).stdout)
    assert [act for act in shown if act['what'] == 'LOGIN' and act['verdict'] == 'OK']
    assert [act for act in shown if act['what'] == 'StageKeys'], 'her enrolment'
    bob = json.loads(audit('show', '--json', '--principal', 'bob', logs[1]).stdout)
    assert 'BAD_TAG' in {act['verdict'] for act in bob}
    assert not [act for act in bob if act['what'] == 'LOGIN' and act['verdict'] == 'OK']


def test_a_head_noted_elsewhere(live, logs):
    line = lines_of(logs[0])[4]
    head = json.loads(line)['hash']
    assert audit('verify', '--head', head, logs[0]).returncode == 0
    assert audit('verify', '--head', head, logs[1]).returncode == 1, "another server's line"


# Somebody was here -------------------------------------------------------------------------------

def test_an_edited_line_is_named(logs):
    lines = lines_of(logs[1])
    edited = last_login(logs[1])
    lines[edited] = lines[edited].replace('"verdict":"OK"', '"verdict":"NO"', 1)
    logs[1].write_text(''.join(lines))
    result = audit('verify', logs[1])
    assert result.returncode == 1
    assert f'{logs[1]}:{edited + 1}: altered' in result.stdout, result.stdout
    assert reconcile(*logs)[0] == 1


def test_a_removed_line_is_named(logs):
    lines = lines_of(logs[2])
    removed = last_login(logs[2])
    del lines[removed]
    logs[2].write_text(''.join(lines))
    result = audit('verify', logs[2])
    assert result.returncode == 1 and f'line {removed + 1} is missing' in result.stdout


def test_a_removed_tail_is_seen_by_the_others(logs):
    lines = lines_of(logs[0])
    cut = last_login(logs[0])
    login = next(job for job in json.loads(lines[cut])['jobs'] if job['op'] == 'LOGIN')
    logs[0].write_text(''.join(lines[:cut]))
    assert audit('verify', logs[0]).returncode == 0, 'the chain itself cannot know'
    status, found = reconcile(*logs)
    assert status == 1
    missing = [one for one in found['findings'] if not one['explained'] and one['id'] == login['id']]
    assert missing and missing[0]['servers'][0] is None, found['findings']
    assert missing[0]['servers'][1]['verdict'] == 'OK'
    assert found['by_kdc'] and login['principal'] in found['by_principal']


def test_a_log_rewritten_from_some_line_on(logs):
    """Whoever may write the file can make a new chain; the other two servers' logs tell."""
    import hashlib
    lines = [line.rstrip('\n') for line in lines_of(logs[1])]
    at = last_login(logs[1])
    victim = json.loads(lines[at])['jobs'][0]['principal']
    lines[at] = lines[at].replace(victim, '0' * 32)
    prev = json.loads(lines[at - 1])['hash']
    for i in range(at, len(lines)):
        body = re.sub(r'"prev":"[0-9a-f]{64}"', f'"prev":"{prev}"', lines[i].rsplit(',"hash":"', 1)[0])
        if i == at:
            body = re.sub(r'"view":"[0-9a-f]{64}"', '"view":"' + 'e' * 64 + '"', body)
        prev = hashlib.sha256(body.encode()).hexdigest()
        lines[i] = f'{body},"hash":"{prev}"}}'
    logs[1].write_text('\n'.join(lines) + '\n')
    assert audit('verify', logs[1]).returncode == 0, 'the document says so'
    status, found = reconcile(*logs)
    assert status == 1
    assert 'different batches' in {one['kind'] for one in found['findings']}


# Rotation, restarts ------------------------------------------------------------------------------

def test_the_chain_goes_on_over_files_and_restarts(new_realm, new_user, tmp_path):
    live = new_realm()
    user = new_user(live)
    live.kinit(*user)
    log = live.log_dir / 'p2-audit.jsonl'
    log.rename(live.log_dir / 'p2-audit.jsonl.1')  # logrotate
    live.servers[2].send_signal(1)
    assert daemon.wait_until(log.exists, 10)
    live.kinit(*user)
    live.servers[2].kill()
    log.write_bytes(log.read_bytes() + b'{"v":2,"seq":99,"pr')  # what a power failure leaves
    live.servers[2].start()
    live.wait_for_servers()
    assert daemon.wait_until(lambda: live.kinit(*user, check=False).returncode == 0, 20, pause=0.5)
    live.stop()
    result = audit('verify', log, live.log_dir / 'p2-audit.jsonl.1')
    assert result.returncode == 0, result.stdout
    both = tmp_path / 'p2'
    both.mkdir()
    for name in ('p2-audit.jsonl', 'p2-audit.jsonl.1'):
        shutil.copy(live.log_dir / name, both)
    status, found = reconcile(live.log_dir / 'p0-audit.jsonl', live.log_dir / 'p1-audit.jsonl', both)
    assert status == 0, found['findings']


# A server that cannot write ----------------------------------------------------------------------

def test_a_server_that_cannot_audit_answers_nothing(make_realm, new_user, mount_disk, fill_disk,
                                                    tmp_path):
    disk = mount_disk(tmp_path / 'disk', 1)
    live = make_realm()
    live.create(lambda: live.change_config(1, f'{live.log_dir}/p1-audit.jsonl',
                                           f'{disk}/audit.jsonl'))
    user = new_user(live)
    live.kinit(*user)
    filler = fill_disk(disk)

    def refused():
        reply = live.kinit(*user, check=False)
        assert not reply.returncode or 'A service is not available' in reply.stdout, reply.stdout
        return reply.returncode != 0

    # What is left of the log's last page takes a line or two.
    assert daemon.wait_until(refused, 60, pause=0.1)
    assert refused(), 'and it stays so'
    status = live.server_status()
    assert 'audit log' in status[1]['degraded'], status[1]
    assert not status[0]['degraded'] and not status[2]['degraded']
    assert live.enroll('late', 'a password', check=False).returncode

    filler.unlink()
    assert daemon.wait_until(lambda: not live.server_status()[1]['degraded'], 20, pause=0.2)
    live.kinit(*user)
    live.stop()
    result = audit('verify', disk / 'audit.jsonl')
    assert result.returncode == 0, result.stdout
    assert '"event":"resumed"' in (disk / 'audit.jsonl').read_text()
    status, found = reconcile(live.log_dir / 'p0-audit.jsonl', disk / 'audit.jsonl',
                              live.log_dir / 'p2-audit.jsonl')
    assert status == 0, found['findings']
    assert any('could not write its audit log' in reason or 'held its answer back' in reason
               for reason in found['explained']), found['explained']
