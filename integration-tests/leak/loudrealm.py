# SPDX-License-Identifier: Apache-2.0
"""A realm that says all it can: every log at its highest verbosity, every trace asked for."""

import socket
import subprocess
import time

import config_files
import realm

CLIENTS = ('kinit', 'kvno', 'kpasswd', 'klist')
LOUD = {'GRPC_VERBOSITY': 'DEBUG', 'GRPC_TRACE': 'all'}


class LoudRealm(realm.Realm):
    """What its processes write lies in log_dir: logs, audit logs, traces, commands' output."""

    def __init__(self, folder, options=None):
        super().__init__(folder, options)
        self.trace = self._keep_output

    def write_files(self):
        super().write_files()
        for party in range(3):
            self.change_config(party, 'level = "info"', 'level = "debug"')
        config_files.replace(self.kdc_dir / 'kdc.conf', '[logging]\n',
                             '[logging]\n    debug = true\n')

    def run(self, *command, env=None, **options):
        # A client knows its password; its own trace says what it encrypts. It is no log of ours.
        trace = {'KRB5_TRACE': str(self.dir / 'client-trace.log')} if command[0] in CLIENTS else {}
        return super().run(*command, env={**trace, **(env or {})}, **options)

    def logs(self):
        return sorted(path for path in self.log_dir.rglob('*') if path.is_file())

    def _environment(self):
        return {**super()._environment(), **LOUD,
                'KRB5_TRACE': str(self.log_dir / 'krb5-trace.log'),
                'SSLKEYLOGFILE': str(self.log_dir / 'tls-session-keys.log')}

    def _keep_output(self, argv, output):
        with open(self.log_dir / 'commands.log', 'a') as log:
            log.write(f'{time.monotonic():.2f} $ {" ".join(map(str, argv))}\n{output}\n')


def accepts_connections(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(('127.0.0.1', port)) == 0


def build_keep_environment(folder):
    """A library that keeps programs from changing their environment: for the control, which shows
    what would be in the logs if GRPC_TRACE were not taken away."""
    source, library = folder / 'keep_environment.c', folder / 'keep_environment.so'
    source.write_text('int unsetenv(const char *name) { (void)name; return 0; }\n')
    subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source], check=True)
    return library
