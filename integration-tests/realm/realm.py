# SPDX-License-Identifier: Apache-2.0
"""A whole realm, by default on the loopback interface: mpc-servers, krb5kdc, kadmind, principals.

The demo and the integration tests start their realms here, and only here. Everything that a realm
writes is under its own folder:

    ca/            test certificate authority and role certificates
    p0/ p1/ p2/    each server's configuration, store key and data; p0-1/ and so on of triple 1
    kdc/           krb5.conf, kdc.conf, the principal database, the stash
    admin/         mpc-admin's configuration
    log/  run/     logs and pid files
    env.sh         what a shell needs to use the realm

A realm may be spread over several places (daemon.Place): p0, p1, p2, kdc, and `client`, where every
command runs, the administrators' too.

A StockRealm is the same without servers: MIT's own database, keys and all.
"""

import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess

import config_files
import daemon

MASTER_PASSWORD = 'demo master key password'
START_PATIENCE = 30  # seconds until a daemon must be up; ample for a loaded machine


class RealmError(Exception):
    """A command of the realm failed; the text says which and shows its output."""


@dataclasses.dataclass
class Options:
    realm: str = 'EXAMPLE.COM'
    wrapped: str = 'db2'           # the KDB module under ours: db2 or klmdb
    disable_pac: bool = True
    workers: int = 0               # krb5kdc -w
    batch_window_ms: int = 100
    batch_mode: str = ''           # empty: the server's default
    # The servers' [quota]; the default rates where it is empty. Tests log one user in more often
    # than people do.
    quota: dict = dataclasses.field(default_factory=lambda: {
        'principal_logins': 'unlimited', 'principal_failures': 'unlimited',
        'principal_reissues': 'unlimited'})
    map_size_gib: int = 1          # of each server's store: a million keys take 2
    databases: tuple = ()          # of P0, P1, P2: PostgreSQL's connection strings; empty: LMDB
    triples: int = 1               # machines of each party; several need databases
    metrics: tuple = ()            # of P0, P1, P2: ports on the loopback interface, or none
    extra_realm: dict = dataclasses.field(default_factory=dict)        # kdc.conf, [realms]
    extra_database: dict = dataclasses.field(default_factory=dict)     # kdc.conf, [dbmodules]
    extra_libdefaults: dict = dataclasses.field(default_factory=dict)  # krb5.conf
    extra_server: str = ''         # sections for mpc-server.toml
    security: str = ''             # of [engine]; empty: as the environment says (config_files)
    protocol: str = ''             # of [engine], forced; empty: the servers choose
    server_program: str = ''       # instead of mpc-server
    kdc_program: str = ''          # instead of krb5kdc
    kadmind_program: str = ''
    certificate_days: int = 0      # of the realm's certificates and its authority; 0: as mpc-ca does


@dataclasses.dataclass
class Ports:
    kdc: int
    kadmind: int
    kpasswd: int
    clients: tuple  # of P0, P1, P2, then of the next triple's: KDC and administrator
    peers: tuple    # the same: each other

    @staticmethod
    def counted_from(ports):
        end = 3 + (len(ports) - 3) // 2
        return Ports(ports[0], ports[1], ports[2], tuple(ports[3:end]), tuple(ports[end:]))

    @staticmethod
    def anywhere(triples=1):
        return Ports.counted_from(daemon.free_ports(3 + 6 * triples))

    def taken(self):
        every = (self.kdc, self.kadmind, self.kpasswd) + self.clients + self.peers
        return [port for port in every if not daemon.is_free(port)]


class Realm:
    """See the module's text. Nothing starts before create() or start(); `with` stops it."""

    def __init__(self, folder, options=None, ports=None, places=None):
        self.dir = pathlib.Path(folder).resolve()
        self.options = options or Options()
        self.ports = ports or Ports.anywhere(self.options.triples)
        self._places = places or {}
        self.name = self.options.realm
        self.log_dir = self.dir / 'log'
        self.run_dir = self.dir / 'run'
        self.kdc_dir = self.dir / 'kdc'
        self.stash = self.kdc_dir / 'stash'
        self.trace = None  # called with (command line, output) of each traced command
        self.env = self._environment()
        self.servers = self._server_daemons()
        self.kdc = self._daemon('krb5kdc', self._kdc_command(), 'kdc')
        self.kadmind = self._daemon('kadmind', [self.options.kadmind_program
                                                 or config_files.krb5_program('kadmind'), '-nofork'],
                                    'kdc')

    def place(self, name):
        return self._places.get(name, daemon.Place())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # Making and starting ------------------------------------------------------------------------

    def create(self, prepare=lambda: None):
        """A new realm with its servers running, its database made, krb5kdc and kadmind up.

        `prepare` may change its files before anything runs. Returns the realm."""
        self.create_servers(prepare)
        self.create_database()
        self.start_kdc()
        return self

    def create_servers(self, prepare=lambda: None):
        self.write_files()
        prepare()
        self.start_servers()
        self.admin('init-realm')
        if self.options.triples > 1:
            # One triple made it; the others' machines hear of it by their databases.
            daemon.wait_until(lambda: all(s.get('initialised') for s in self.server_status()), 5, 0.2)

    def write_files(self):
        self._make_folders()
        config_files.write_krb5(self)
        config_files.write_servers(self)

    def _make_folders(self):
        for folder in (self.dir, self.log_dir, self.run_dir, self.kdc_dir):
            folder.mkdir(parents=True, exist_ok=True)
        self.dir.chmod(0o700)

    def create_database(self):
        self.run('kdb5_util', 'create', '-s', '-P', MASTER_PASSWORD)

    def start_servers(self):
        """The first triple alone, in a new realm: its store keys are the other machines' too."""
        if self.options.triples > 1 and not (self.dir / 'p0-1/store.key').exists():
            for server, port in zip(self.servers[:3], self.ports.clients):
                server.start()
                self._wait_for_port(server, port)
            config_files.share_store_keys(self)
        for server in self.servers:
            if not server.is_running():
                server.start()
        self.wait_for_servers()

    def wait_for_servers(self):
        for party, server in enumerate(self.servers):
            self._wait_for_port(server, self.ports.clients[party])
        if not daemon.wait_until(self.servers_connected, START_PATIENCE, pause=0.1):
            raise RealmError('the servers do not reach each other:\n' + '\n'.join(
                server.log_tail(8) for server in self.servers))

    def servers_connected(self):
        return all(status.get('peers_connected') for status in self.server_status())

    def status(self):
        return json.loads(self.admin('status', '--json', check=False).stdout)

    def server_status(self):
        """What `mpc-admin status` says about each server, in their order."""
        try:
            return self.status()['servers']
        except (ValueError, KeyError):
            return [{} for _ in self.servers]

    def start_kdc(self):
        self.kdc.start()
        self.kadmind.start()
        self._wait_for_port(self.kdc, self.ports.kdc)
        self._wait_for_port(self.kadmind, self.ports.kadmind)

    def _wait_for_port(self, process, port):
        def is_up_or_dead():
            return not process.is_running() or process.listens_on(port)
        up = daemon.wait_until(is_up_or_dead, START_PATIENCE)
        if not up or not process.is_running():
            raise RealmError(f'{process.name} did not start. End of {process.log}:\n'
                             + process.log_tail())

    def restart_server(self, party):
        self.servers[party].stop()
        self.servers[party].start()

    def stop_kdc(self):
        self.kadmind.stop()
        self.kdc.stop()

    def stop(self):
        """Ends what runs; returns the names of what ran."""
        processes = [self.kadmind, self.kdc] + self.servers
        running = [process.name for process in processes if process.is_running()]
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.stop()
        return running

    def destroy(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    # Using --------------------------------------------------------------------------------------

    def run(self, *command, stdin='', check=True, env=None, timeout=120):
        """Runs one command in the realm's environment; stdout and stderr come together."""
        name, *arguments = map(str, command)
        path = config_files.krb5_program(name) if '/' not in name else name
        return self._call([name, *arguments], [path, *arguments], check, stderr=subprocess.STDOUT,
                          input=stdin, env={**self.env, **(env or {})}, timeout=timeout)

    def empty_store(self, party):
        """Of a party that does not run: what its machines have of a store, and its store key, are gone."""
        for name in self.machines()[party::3]:
            folder = self.dir / name
            shutil.rmtree(folder / 'data')
            (folder / 'data').mkdir(mode=0o700)
            (folder / 'store.key').unlink()

    def lose_disk(self, party):
        """The server comes back with an empty disk."""
        server = self.servers[party]
        server.stop()
        self.empty_store(party)
        server.start()
        assert daemon.wait_until(lambda: server.listens_on(self.ports.clients[party]), 30)

    def admin(self, *arguments, stdin='', check=True, timeout=120):
        """mpc-admin. Its stdout alone, so that JSON can be read; stderr goes after it."""
        argv = [config_files.mpc_program('mpc-admin'), '--config', self.dir / 'admin/admin.toml',
                *arguments]
        return self._call(['mpc-admin', *map(str, arguments)], argv, check, stderr=subprocess.PIPE,
                          input=stdin, env=self.env, timeout=timeout)

    def _call(self, shown, argv, check, **options):
        result = subprocess.run(self.place('client').argv(argv), stdout=subprocess.PIPE,
                                encoding='utf-8', errors='replace', **options)
        output = result.stdout + (result.stderr or '')
        if self.trace:
            self.trace(shown, output)
        if check and result.returncode:
            raise RealmError(f'{" ".join(shown)}: exit {result.returncode}\n{output}')
        return result

    def enroll(self, principal, password, *flags, check=True):
        return self.admin('enroll', principal, '--password-stdin', *flags, stdin=password + '\n',
                          check=check)

    def kadmin_local(self, query, check=True):
        """One request, given as arguments: kadmin.local's exit status then tells its result."""
        return self.run('kadmin.local', *shlex.split(query), check=check)

    def kadmin(self, query, principal, password, check=False):
        return self.run('kadmin', '-p', principal, '-w', password, '-q', query, check=check)

    def add_service(self, principal):
        """A service with a key of its own, of a standard type, that may leave as a keytab."""
        self.kadmin_local(f'addprinc -randkey -e aes256-cts:normal,aes128-cts:normal {principal}')

    def kinit(self, principal, password, *flags, ccache=None, check=True, env=None, timeout=60):
        return self.run('kinit', *flags, principal, stdin=password + '\n', check=check,
                        env={**self.with_ccache(ccache), **(env or {})}, timeout=timeout)

    def kvno(self, service, *flags, ccache=None, check=True, env=None):
        return self.run('kvno', *flags, service, check=check,
                        env={**self.with_ccache(ccache), **(env or {})})

    def klist(self, *flags, ccache=None, check=True):
        return self.run('klist', *flags, check=check, env=self.with_ccache(ccache))

    def krb5_conf_through(self, port):
        """The environment of a client that reaches krb5kdc through a relay at this port."""
        path = config_files.replace(self.dir / 'krb5.conf', f'kdc = 127.0.0.1:{self.ports.kdc}',
                                    f'kdc = 127.0.0.1:{port}', into=self.dir / 'krb5-relay.conf')
        return {'KRB5_CONFIG': str(path)}

    def with_ccache(self, ccache):
        return {'KRB5CCNAME': f'FILE:{self.dir / ccache}'} if ccache else {}

    def failed_attempts(self, name):
        """How often the KDC has counted a wrong password of this user."""
        text = self.kadmin_local(f'getprinc {name}').stdout
        return int(text.split('Failed password attempts:')[1].split()[0])

    def change_config(self, party, old, new):
        """In a server's configuration, which it has read already."""
        config_files.replace(self.dir / self.machines()[party] / 'mpc-server.toml', old, new)

    def dump(self, path):
        self.run('kdb5_util', 'dump', path)
        return path

    # Inside -------------------------------------------------------------------------------------

    def _environment(self):
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(('KRB5', 'LD_'))}
        return {
            **kept,
            'LC_ALL': 'C.UTF-8',
            'KRB5_CONFIG': str(self.dir / 'krb5.conf'),
            'KRB5_KDC_PROFILE': str(self.kdc_dir / 'kdc.conf'),
            'KRB5CCNAME': f'FILE:{self.dir / "ccache"}',
            'KRB5_KTNAME': f'FILE:{self.dir / "keytab"}',
            'LD_LIBRARY_PATH': config_files.krb5_library_path(),
            'PATH': os.pathsep.join(config_files.program_dirs() + [kept.get('PATH', '')]),
        }

    def _daemon(self, name, argv, place):
        return daemon.Daemon(name, argv, self.env, self.run_dir, self.log_dir, self.place(place))

    def machines(self):
        """Their names: the three of triple 0, of triple 1 and so on."""
        return [f'p{party}-{triple}' if triple else f'p{party}'
                for triple in range(self.options.triples) for party in range(3)]

    def _server_daemons(self):
        program = self.options.server_program or config_files.mpc_program('mpc-server')
        return [self._daemon(name, [program, '--config', self.dir / name / 'mpc-server.toml'], name)
                for name in self.machines()]

    def _kdc_command(self):
        workers = ['-w', self.options.workers] if self.options.workers else []
        program = self.options.kdc_program or config_files.krb5_program('krb5kdc')
        return [program, '-n', *workers]


class StockRealm(Realm):
    """The same with MIT's own database and no servers: what a KDC is without us."""

    def create(self):
        self.write_files()
        self.create_database()

    def _server_daemons(self):
        return []

    def write_files(self):
        self._make_folders()
        config_files.write_krb5(self, stock=True)
