# SPDX-License-Identifier: Apache-2.0
"""A primary PostgreSQL and its synchronous standby, for tests that let the one fail and the other take over.

What Patroni does is done here by hand, in its order: the standby is promoted, takes commits alone until
the lost one is back as its standby, and from then on waits for that one."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import daemon
import postgres


class Pair(postgres.Cluster):
    """As postgres.Cluster, on two servers; `self.dir` and `self.server` are the primary's."""

    def __init__(self):
        self._standby_dir = None  # conninfo() is asked before there is one
        super().__init__()
        self._standby_dir = pathlib.Path(tempfile.mkdtemp(prefix='mpc-kdc-pg.', dir='/tmp'))
        self._standby_dir.chmod(0o755)
        # The databases' own user reads this one, for pg_basebackup and the standby.
        self._replication = self.dir / 'replication-passfile'
        self._replication.write_text(self.passfile.read_text())
        self._replication.chmod(0o600)
        for path in (self._standby_dir, self._replication):
            self._own(path)
        self._hosts = (self.dir, self._standby_dir)
        self._standby = None
        self.make_standby()

    def _own(self, path):
        if os.getuid() == 0:
            shutil.chown(path, 'nobody', 'nogroup')

    def conninfo(self, database, user='mpcserver'):
        if self._standby_dir is None:
            return super().conninfo(database, user)
        return (f'host={self._hosts[0]},{self._hosts[1]} dbname={database} user={user} '
                f'passfile={self.passfile} target_session_attrs=read-write')

    def make_standby(self):
        """A copy of the primary, which then waits for it with each commit."""
        data = self._standby_dir / 'data'
        shutil.rmtree(data, ignore_errors=True)
        self._run('pg_basebackup', '-D', data, '-R', '-w', '-c', 'fast', '-X', 'stream', '-d',
                  f'host={self.dir} dbname=postgres user=super passfile={self._replication}')
        self._standby = self._server_at(self._standby_dir)
        self._standby.start()
        # Commits would wait for a standby that is not there yet.
        self._wait_for("state = 'streaming'")
        self._set('*')
        self._wait_for("sync_state = 'sync'")

    def _wait_for(self, standby):
        assert daemon.wait_until(
            lambda: self.sql(f'SELECT count(*) FROM pg_stat_replication WHERE {standby}') == '1', 60,
            0.1), self._standby.log_tail()

    def wait_until_replayed(self):
        """A client that asks the standby first is told of a new database that there is none."""
        self._wait_for('replay_lsn >= pg_current_wal_lsn()')

    def _server_at(self, folder):
        return daemon.Daemon(
            'postgres', [*self._prefix, postgres.programs() / 'postgres', '-D', folder / 'data',
                         '-c', f'unix_socket_directories={folder}'], dict(os.environ), folder, folder)

    def _set(self, standby_names):
        self.sql(f"ALTER SYSTEM SET synchronous_standby_names = '{standby_names}'")
        self.sql('SELECT pg_reload_conf()')

    def fail_over(self):
        """The primary dies, the standby takes its place; make_standby() makes the lost one anew."""
        self.server.stop(signal.SIGQUIT)
        self.dir, self._standby_dir = self._standby_dir, self.dir
        self.server, self._standby = self._standby, None
        self._run('pg_ctl', 'promote', '-D', self.dir / 'data', '-w')
        self._set('')

    def remove(self):
        for server in (self._standby, self.server):
            if server:
                server.stop(signal.SIGQUIT)
        for folder in self._hosts:
            shutil.rmtree(folder, ignore_errors=True)
