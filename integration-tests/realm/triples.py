# SPDX-License-Identifier: Apache-2.0
"""Realms with two triples: each party has two machines on one database of its own."""

import contextlib
import dataclasses
import re

import config_files
import daemon
import postgres
import realm as realm_module

PATIENCE = 20  # seconds until what was started is there; ample for a loaded machine


@contextlib.contextmanager
def two_triples(folder, parties, options=None):
    """A realm that is up, on these postgres.Parties."""
    options = dataclasses.replace(options or realm_module.Options(),
                                  databases=parties.conninfos(), triples=2)
    live = realm_module.Realm(folder, options)
    with live:
        yield live.create(lambda: parties.migrate(live))


def machine(triple, party):
    """Its place in live.servers and in the ports."""
    return 3 * triple + party


def healthy(live):
    """Of each triple, whether mpc-admin says so."""
    return [triple['healthy'] for triple in live.status()['triples']]


def wait_until_healthy(live, expected=(True, True), patience=30):
    seen = []

    def look():
        seen[:] = healthy(live)
        return seen == list(expected)
    assert daemon.wait_until(look, patience, 0.2), (seen, live.admin('status', check=False).stdout)


def jobs(live):
    """How many each triple has answered, by its P0."""
    status = live.server_status()
    return [status[machine(triple, 0)].get('jobs', 0) for triple in range(2)]


class OneTripleKdc:
    """`with` it: another krb5kdc of the realm's database, which knows one triple."""

    def __init__(self, live, triple, name='', certificate='kdc-kdc'):
        self.port = daemon.free_ports(1)[0]
        self.name = name or f'kdc-of-{triple}'
        conf = live.kdc_dir / f'{self.name}.conf'
        conf.write_text(self._profile(live, triple, certificate))
        client = live.dir / f'krb5-{self.name}.conf'
        client.write_text((live.dir / 'krb5.conf').read_text().replace(
            f'kdc = 127.0.0.1:{live.ports.kdc}', f'kdc = 127.0.0.1:{self.port}'))
        self.env = {'KRB5_CONFIG': str(client)}  # of a client
        self._kdc = daemon.Daemon(self.name, live.kdc.argv,
                                  {**live.env, 'KRB5_KDC_PROFILE': str(conf)}, live.run_dir,
                                  live.log_dir)
        self.log = live.log_dir / f'{self.name}-requests.log'

    def _profile(self, live, triple, certificate):
        text = (live.kdc_dir / 'kdc.conf').read_text()
        lines = re.findall(r'^ *mpc_servers = .*\n', text, re.M)
        for other, line in enumerate(lines):
            if other != triple:
                text = text.replace(line, '')
        text = text.replace(f'mpc_cluster = {config_files.CLUSTER}\n',
                            f'mpc_cluster = {config_files.CLUSTER + triple}\n')
        text = text.replace('kdc-kdc.', f'{certificate}.')
        text = text.replace(f'{live.log_dir}/kdc.log', f'{live.log_dir}/{self.name}-requests.log')
        return re.sub(rf':{live.ports.kdc}\b', f':{self.port}', text)

    def __enter__(self):
        self._kdc.start()
        assert daemon.wait_until(lambda: self._kdc.listens_on(self.port), PATIENCE), \
            self._kdc.log_tail()
        return self

    def __exit__(self, *_):
        self._kdc.stop()


def postgres_or_skip(pytest, **options):
    try:
        return postgres.Parties(**options)
    except postgres.Missing as e:
        return pytest.skip(str(e))
