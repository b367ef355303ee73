# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own, reached by a Unix socket alone. Root runs it as `nobody`."""

import glob
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import config_files
import daemon

PASSWORD = 'of-the-test'
PORT = 5432


class Missing(Exception):
    """There is no PostgreSQL on this machine."""


def programs():
    found = sorted(glob.glob('/usr/lib/postgresql/*/bin/initdb'))
    if not found:
        raise Missing('no /usr/lib/postgresql/*/bin/initdb: install Debian\'s postgresql')
    return pathlib.Path(found[-1]).parent


def as_user(folder):
    """The command that becomes the server's user, who owns the folder: initdb refuses root."""
    if os.getuid() != 0:
        return []
    shutil.chown(folder, 'nobody', 'nogroup')
    return ['setpriv', '--reuid=nobody', '--regid=nogroup', '--clear-groups']


class Cluster:
    """One database for each server, with an owner of the schemas and a run-time role.

    `copied`: another cluster, of which this one is a standby."""

    def __init__(self, copied=None):
        # Short: a socket's name is.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='mpc-kdc-pg.', dir='/tmp'))
        self.dir.chmod(0o755)
        self._prefix = as_user(self.dir)
        # Its processes read one too; each wants it to be its own, and nobody else's to read.
        self.passfile = self._private('passfile', f'*:*:*:*:{PASSWORD}\n')
        self.standby = None
        self._copy(copied) if copied else self._make()
        with open(self.dir / 'data/postgresql.conf', 'a') as conf:
            conf.write(f"listen_addresses = ''\nunix_socket_directories = '{self.dir}'\n")
        self.server = daemon.Daemon(
            'postgres', [*self._prefix, programs() / 'postgres', '-D', self.dir / 'data'],
            dict(os.environ), self.dir, self.dir)
        self.start()
        if copied is None:
            for role in ('mpcowner', 'mpcserver'):
                self.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")

    def _private(self, name, text):
        path = self.dir / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def _make(self):
        pwfile = self.dir / 'password'
        pwfile.write_text(PASSWORD + '\n')
        self._run('initdb', '-D', self.dir / 'data', '-U', 'super', '-A', 'scram-sha-256',
                  f'--pwfile={pwfile}', '--locale=C', '-E', 'UTF8', '--no-sync')

    def _copy(self, primary):
        own = self._private('passfile.own', f'*:*:*:*:{PASSWORD}\n')
        if self._prefix:
            shutil.chown(own, 'nobody', 'nogroup')
        self._run('pg_basebackup', '-D', self.dir / 'data', '-R', '-X', 'stream', '-c', 'fast',
                  '--no-sync', '-d', f'host={primary.dir} user=super passfile={own} '
                  'application_name=standby')

    def add_standby(self):
        """A synchronous one. From now on a connection string names both."""
        self.standby = Cluster(copied=self)
        self.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        self.sql('SELECT pg_reload_conf()')
        assert daemon.wait_until(
            lambda: self.sql('SELECT sync_state FROM pg_stat_replication') == 'sync', 30)
        return self.standby

    def promote(self):
        """Of a standby."""
        self._run('pg_ctl', 'promote', '-w', '-D', self.dir / 'data')

    def _run(self, program, *args):
        return subprocess.run([*self._prefix, str(programs() / program), *map(str, args)],
                              cwd=self.dir, check=True, capture_output=True, encoding='utf-8')

    def start(self):
        self.server.start()
        ready = [str(programs() / 'pg_isready'), '-q', '-h', str(self.dir)]
        assert daemon.wait_until(lambda: subprocess.run(ready).returncode == 0, 60, 0.05), \
            self.server.log_tail()

    def kill(self):
        """-9 of all its processes, as when the machine goes."""
        pid = self.server.pid()
        children = subprocess.run(['pgrep', '-P', str(pid)], capture_output=True,
                                  encoding='utf-8').stdout.split()
        for process in [pid, *map(int, children)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.server.kill()

    def crash(self):
        """SIGQUIT: all its processes end at once and it recovers at its next start."""
        self.server.stop(signal.SIGQUIT)

    def remove(self):
        if self.standby:
            self.standby.remove()
        self.crash()
        shutil.rmtree(self.dir)

    def conninfo(self, database, user='mpcserver'):
        hosts = ','.join(str(one.dir) for one in (self, self.standby) if one)
        return f'host={hosts} dbname={database} user={user} passfile={self.passfile}'

    def sql(self, statement, database='postgres'):
        done = subprocess.run(
            [str(programs() / 'psql'), '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', statement,
             f'host={self.dir} dbname={database} user=super passfile={self.passfile}'], check=True, capture_output=True, encoding='utf-8')
        return done.stdout.strip()

    def databases(self):
        """An empty database for each server."""
        for party in range(3):
            self.sql(f'CREATE DATABASE p{party} OWNER mpcowner')
        return tuple(self.conninfo(f'p{party}') for party in range(3))


class Parties:
    """A cluster for each party, as it is outside of tests; those of `standbys` have a synchronous one."""

    def __init__(self, standbys=()):
        self.clusters = []
        try:
            for party in range(3):
                cluster = Cluster()
                self.clusters.append(cluster)
                if party in standbys:
                    cluster.add_standby()
                cluster.sql(f'CREATE DATABASE p{party} OWNER mpcowner')
        except BaseException:
            self.remove()
            raise

    def conninfos(self):
        return tuple(cluster.conninfo(f'p{party}') for party, cluster in enumerate(self.clusters))

    def migrate(self, live):
        for party, cluster in enumerate(self.clusters):
            done = migrate(live, cluster, party)
            assert done.returncode == 0, done.stderr

    def remove(self):
        for cluster in self.clusters:
            cluster.remove()


def migrate(live, cluster, party):
    """The schema, by mpc-server's own command."""
    return subprocess.run(
        [config_files.mpc_program('mpc-server'), f'--config={live.dir}/p{party}/mpc-server.toml',
         '--migrate', f'--migrate-as={cluster.conninfo(f"p{party}", "mpcowner")}'],
        capture_output=True, encoding='utf-8')
