# SPDX-License-Identifier: Apache-2.0
"""A PostgreSQL server of a test's own, reached by a Unix socket alone. Root runs it as `nobody`."""

import glob
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

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
    """One database for each server, with an owner of the schemas and a run-time role."""

    def __init__(self):
        # Short: a socket's name is.
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='mpc-kdc-pg.', dir='/tmp'))
        self.dir.chmod(0o755)
        self._prefix = as_user(self.dir)
        self.passfile = self.dir / 'passfile'
        self.passfile.write_text(f'*:*:*:*:{PASSWORD}\n')
        self.passfile.chmod(0o600)
        pwfile = self.dir / 'password'
        pwfile.write_text(PASSWORD + '\n')
        self._run('initdb', '-D', self.dir / 'data', '-U', 'super', '-A', 'scram-sha-256',
                  f'--pwfile={pwfile}', '--locale=C', '-E', 'UTF8', '--no-sync')
        with open(self.dir / 'data/postgresql.conf', 'a') as conf:
            conf.write(f"listen_addresses = ''\nunix_socket_directories = '{self.dir}'\n")
        self.server = daemon.Daemon(
            'postgres', [*self._prefix, programs() / 'postgres', '-D', self.dir / 'data'],
            dict(os.environ), self.dir, self.dir)
        self.start()
        for role in ('mpcowner', 'mpcserver'):
            self.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")

    def _run(self, program, *args):
        return subprocess.run([*self._prefix, str(programs() / program), *map(str, args)],
                              cwd=self.dir, check=True, capture_output=True, encoding='utf-8')

    def start(self):
        self.server.start()
        ready = [str(programs() / 'pg_isready'), '-q', '-h', str(self.dir)]
        assert daemon.wait_until(lambda: subprocess.run(ready).returncode == 0, 60, 0.05), \
            self.server.log_tail()

    def crash(self):
        """SIGQUIT: all its processes end at once and it recovers at its next start."""
        self.server.stop(signal.SIGQUIT)

    def remove(self):
        self.crash()
        shutil.rmtree(self.dir)

    def conninfo(self, database, user='mpcserver'):
        return f'host={self.dir} dbname={database} user={user} passfile={self.passfile}'

    def sql(self, statement, database='postgres'):
        done = subprocess.run(
            [str(programs() / 'psql'), '-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', statement,
             self.conninfo(database, 'super')], check=True, capture_output=True, encoding='utf-8')
        return done.stdout.strip()

    def databases(self):
        """An empty database for each server."""
        for party in range(3):
            self.sql(f'CREATE DATABASE p{party} OWNER mpcowner')
        return tuple(self.conninfo(f'p{party}') for party in range(3))
