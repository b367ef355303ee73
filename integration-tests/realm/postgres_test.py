# SPDX-License-Identifier: Apache-2.0
"""Three servers whose shares are in PostgreSQL, each in a database of its own."""

import concurrent.futures
import subprocess
import threading
import time

import pytest

import config_files
import daemon
import postgres
import realm as realm_module

UNAVAILABLE = 'A service is not available'
WRONG = 'Password incorrect'


@pytest.fixture(scope='module')
def cluster():
    try:
        made = postgres.Cluster()
    except postgres.Missing as e:
        pytest.skip(str(e))
    yield made
    made.remove()


@pytest.fixture(scope='module')
def live(cluster, tmp_path_factory):
    options = realm_module.Options(databases=cluster.databases())
    with realm_module.Realm(tmp_path_factory.mktemp('postgres') / 'realm', options) as made:
        def prepare():
            for party in range(3):
                done = postgres.migrate(made, cluster, party)
                assert done.returncode == 0, done.stderr
        yield made.create(prepare)


def test_logins_enrolment_and_restart(live, cluster, new_user):
    user = new_user(live)
    live.kinit(*user)
    live.kvno(f'krbtgt/{live.name}')
    assert WRONG in live.kinit(user[0], 'wrong', check=False).stdout
    for party in range(3):
        live.restart_server(party)
    live.wait_for_servers()
    live.kinit(*user)
    live.admin('verify')
    keys = {server['keys'] for server in live.server_status()}
    assert keys == {int(cluster.sql('SELECT count(*) FROM mpckdc.keys', 'p1'))}


def test_the_database_sees_no_name(live, cluster, new_user):
    name, _ = new_user(live)
    dump = subprocess.run([str(postgres.programs() / 'pg_dump'), '-Fp',
                           cluster.conninfo('p0', 'super')], check=True, capture_output=True).stdout
    assert b'mpckdc.keys' in dump
    assert name.encode() not in dump and name.encode().hex().encode() not in dump


def test_another_partys_database_is_refused(live, cluster):
    live.servers[1].stop()
    toml = live.dir / 'p1/mpc-server.toml'
    right = toml.read_text()
    memory = live.dir / 'p1/data/database'
    kept = memory.read_text()
    try:
        toml.write_text(right.replace('dbname=p1', 'dbname=p2'))
        memory.unlink()
        done = subprocess.run([config_files.mpc_program('mpc-server'), f'--config={toml}'],
                              capture_output=True, encoding='utf-8', timeout=30)
        assert done.returncode == 1
        assert 'party 2' in done.stderr and 'party 1' in done.stderr, done.stderr
    finally:
        toml.write_text(right)
        memory.write_text(kept)
        live.servers[1].start()
        live.wait_for_servers()


def test_a_restart_of_the_database_under_logins(live, cluster, new_user):
    """No wrong password, no lockout, and logins go on by themselves."""
    users = [new_user(live) for _ in range(4)]
    stop = threading.Event()

    def log_in(user):
        good = 0
        while not stop.is_set():
            reply = live.kinit(*user, ccache=live.dir / f'cc-{user[0]}', check=False)
            assert WRONG not in reply.stdout, reply.stdout
            good += reply.returncode == 0
        return good

    with concurrent.futures.ThreadPoolExecutor(len(users)) as threads:
        logins = [threads.submit(log_in, user) for user in users]
        try:
            for _ in range(3):
                time.sleep(1)
                cluster.crash()
                time.sleep(0.5)
                cluster.start()
            time.sleep(1)
        finally:
            stop.set()
        assert all(login.result() > 0 for login in logins)
    for user in users:
        assert live.failed_attempts(user[0]) == 0
        assert daemon.wait_until(lambda: live.kinit(*user, check=False).returncode == 0, 20, 0.2)
    live.admin('verify')


def test_where_the_database_gives_no_more_connections(live, cluster, new_user):
    """Each server has what it began with: no login fails, and nobody calls the database unreachable."""
    users = [new_user(live) for _ in range(4)]
    cluster.sql('ALTER ROLE mpcserver CONNECTION LIMIT 9')  # a lane, a reader and a listener for each
    try:
        for party in range(3):
            live.restart_server(party)
        live.wait_for_servers()
        with concurrent.futures.ThreadPoolExecutor(len(users) + 1) as threads:
            logins = [threads.submit(lambda user=user: [
                live.kinit(*user, ccache=live.dir / f'cc-{user[0]}', check=False) for _ in range(8)])
                for user in users]
            lists = threads.submit(lambda: [live.admin('verify', check=False) for _ in range(4)])
            for login in logins:
                assert all(reply.returncode == 0 for reply in login.result()), \
                    [reply.stdout for reply in login.result()]
            assert all(said.returncode == 0 for said in lists.result()), \
                [said.stderr for said in lists.result()]
        assert 'NO DATABASE' not in live.admin('status', check=False).stdout
    finally:
        cluster.sql('ALTER ROLE mpcserver CONNECTION LIMIT -1')


def test_while_the_database_is_away(live, cluster, new_user):
    user = new_user(live)
    cluster.crash()
    try:
        # The server says so, and answers.
        status = live.server_status()
        assert [server['database']['reachable'] for server in status] == [False] * 3, status
        assert 'cannot be reached' in status[0]['database']['trouble'], status[0]
        assert postgres.PASSWORD not in str(status)
        assert 'NO DATABASE' in live.admin('status', check=False).stdout
        for password in (user[1], 'wrong'):
            reply = live.kinit(user[0], password, check=False)
            assert reply.returncode and WRONG not in reply.stdout, reply.stdout
            assert UNAVAILABLE in reply.stdout, reply.stdout
        refused = live.enroll('late', 'a password', check=False)
        assert refused.returncode and 'cannot be reached' in refused.stderr, refused.stderr
    finally:
        cluster.start()
    assert daemon.wait_until(lambda: live.kinit(*user, check=False).returncode == 0, 20, 0.2)
    assert live.failed_attempts(user[0]) == 0
    live.enroll('late', 'a password')
    live.kinit('late', 'a password')
