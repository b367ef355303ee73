# SPDX-License-Identifier: Apache-2.0
"""Three mpc-servers for each realm of MIT's scripts."""

import atexit
import os
import pathlib
import shutil
import tempfile
from unittest import mock

import config_files
import counts
import realm as realms

# Scripts that start krb5kdc with another clock (-T) give the same one to the servers: a KDC whose clock
# is not the servers' serves nobody. So certificates are of yesterday, and good for long.
CERTIFICATE_DAYS = 12000
YESTERDAY = -86400

_all = []


class RealServers:
    """Of one realm; they start when its database is made, or is used again after a stop."""

    def __init__(self, name):
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix='mit-realm-'))
        self._realm = realms.Realm(
            self._folder / 'r', realms.Options(realm=name, certificate_days=CERTIFICATE_DAYS))
        self._initialised = self._running = False
        self._ahead = 0
        _use_kept_certificates(self._realm)
        with mock.patch.dict(os.environ, _clock(YESTERDAY)):
            self._realm.write_files()
        _keep_certificates(self._realm)
        for party in range(3):  # scripts change passwords more often than people do
            self._realm.change_config(
                party, '[quota]', '[quota]\ncompared_per_hour = 1000\ncompared_per_day = 1000')
        self._counts = None
        _all.append(self)
        atexit.register(self.remove)

    def relations(self):
        found = config_files.kdc_conf(self._realm, stock=False)['dbmodules']['principals']
        return {name: value if isinstance(value, list) else str(value)
                for name, value in found.items() if name.startswith('mpc_') and name != 'mpc_wrapped'}

    def start(self):
        if self._running:
            return
        for server in self._realm.servers:
            server.env = {**self._realm.env, **_clock(self._ahead)}
        self._realm.start_servers()
        if not self._initialised:
            self._realm.admin('init-realm')
        self._initialised = self._running = True

    def set_clock(self, seconds_ahead):
        """From the next start on, which is now if it changes."""
        if seconds_ahead != self._ahead:
            self.stop()
        self._ahead = seconds_ahead

    def stop(self):
        self._realm.stop()
        self._running = False

    def remove(self):
        self.stop()
        self._counts = self.counts()
        shutil.rmtree(self._folder, ignore_errors=True)

    def counts(self):
        return self._counts or counts.of_realm(self._realm.name, self._realm.log_dir)


def counts_of_all():
    return [servers.counts() for servers in _all]


def _clock(ahead):
    """What a program needs in its environment to have another clock."""
    if not ahead:
        return {}
    return {'LD_PRELOAD': os.environ['MPCKDC_CLOCK_AHEAD_LIBRARY'], 'MPCKDC_CLOCK_AHEAD': str(ahead)}


# A realm's name is in its certificates, and most scripts have the same few realms.

def _kept(realm):
    kept = os.environ.get('MPCKDC_KEPT_CERTIFICATES')
    return pathlib.Path(kept) / realm.name if kept else None


def _use_kept_certificates(realm):
    kept = _kept(realm)
    if kept and kept.exists():
        shutil.copytree(kept, realm.dir / 'ca')


def _keep_certificates(realm):
    kept = _kept(realm)
    if kept and not kept.exists():
        making = kept.with_name(f'{kept.name}.{os.getpid()}')
        shutil.copytree(realm.dir / 'ca', making)
        making.rename(kept)
