# SPDX-License-Identifier: Apache-2.0
"""A realm as stock clients see it, and what they are given: a user, a service, a keytab.

Users have keys of enctypes 17 to 20. Four kinds of realm:

    protected   users' keys and krbtgt are shared among the three servers
    imported    the same, but each user was one of MIT's own realm until mpc-admin import-realm
    local       users' keys are the KDC's own; krbtgt is protected
    stock       MIT's krb5kdc without us: what a client can do at all

The KDC has three doors: one that speaks UDP and TCP, one for UDP alone and one for TCP alone, so
that a client that gets an answer has used the transport that it was to use.

The proof of an enctype is the KDC's own log: `ISSUE ... {rep=aes256-cts-hmac-sha1-96(18), ...}`.
"""

import dataclasses
import itertools
import os
import pathlib
import re
import subprocess
import sys

for _part in ('intruder', 'storm', 'realm'):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / _part))

import config_files  # noqa: E402
import daemon  # noqa: E402
import old_realm  # noqa: E402
import realm as realm_module  # noqa: E402
import storm_realms  # noqa: E402

ENCTYPES = {17: 'aes128-cts-hmac-sha1-96', 18: 'aes256-cts-hmac-sha1-96',
            19: 'aes128-cts-hmac-sha256-128', 20: 'aes256-cts-hmac-sha384-192'}
STANDARD = [ENCTYPES[number] for number in (18, 17, 20, 19)]
KINDS = ('protected', 'imported', 'local', 'stock')
DEFAULT_USERS = 'protected'
TRANSPORTS = ('udp', 'tcp')
PATIENCE = 60                   # seconds that one command of a client may take
SERVICE_HOST = 'localhost'
SERVICE = f'host/{SERVICE_HOST}'
# Services whose keys are shared, each of one enctype.
PROTECTED_SERVICES = {17: f'nfs/{SERVICE_HOST}', 18: f'ldap/{SERVICE_HOST}',
                      19: f'cifs/{SERVICE_HOST}', 20: f'imap/{SERVICE_HOST}'}
PASSWORD = 'a stock password'
USERS = 'person'                # names begin so: mpc_local's pattern in a realm of local users
FILES = pathlib.Path(os.environ.get('MPCKDC_CLIENTS', config_files.BUILD / 'clients'))
LOGIN = re.compile(r' (AS_REQ|TGS_REQ) .*?: ([A-Z_]+): authtime \d+, '
                   r'etypes \{rep=[^(]*\((-?\d+)\), tkt=[^(]*\((-?\d+)\)[^}]*\}, (\S+) for ([^\s,]+)')


class LabError(Exception):
    """The lab itself is broken; no client is to blame."""


@dataclasses.dataclass
class Issued:
    """A line of the KDC's log about a ticket that it has issued."""
    request: str  # AS_REQ or TGS_REQ
    reply: int    # enctype of the reply's encrypted part
    ticket: int   # and of the ticket's
    service: str


@dataclasses.dataclass
class Answer:
    """What a client did: whether it says that it succeeded, and what it printed."""
    ok: bool
    text: str = ''
    token: str = ''  # a GSS token for the service, base64

    def __str__(self):
        lines = [line for line in self.text.strip().splitlines() if line.strip()]
        return lines[-1].strip()[:200] if lines else ''


@dataclasses.dataclass
class Case:
    """One client, one enctype, one transport: everything that the client may need to know."""
    lab: 'Lab'
    folder: pathlib.Path  # its configuration, its caches
    user: str
    enctype: int
    transport: str
    password: str = PASSWORD
    service: str = SERVICE

    @property
    def realm(self):
        return self.lab.realm.name

    @property
    def principal(self):
        return f'{self.user}@{self.realm}'

    @property
    def keytab(self):
        return self.lab.keytabs[self.user]

    @property
    def keytab_of_enctype(self):
        """For clients that ask for every enctype that their keytab has."""
        return self.lab.dir / f'{self.user}.{self.enctype}.keytab'

    @property
    def port(self):
        return self.lab.ports[self.transport]

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *argv, stdin='', env=None, timeout=PATIENCE):
        return run_stock(argv, stdin=stdin, env=env, timeout=timeout)


def run_stock(argv, stdin='', env=None, timeout=PATIENCE):
    """A stock program in an environment without ours: system libraries, no KRB5_* but the given."""
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(('KRB5', 'LD_', 'MPC'))}
    try:
        done = subprocess.run(
            [str(part) for part in argv], input=stdin, timeout=timeout, encoding='utf-8',
            errors='replace', stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**clean, 'LC_ALL': 'C.UTF-8', **{k: str(v) for k, v in (env or {}).items()}})
    except subprocess.TimeoutExpired as expired:
        text = (expired.stdout or b'').decode(errors='replace')
        return Answer(False, f'{text}\nno end after {timeout} s')
    return Answer(done.returncode == 0, done.stdout)


class StockRealm(storm_realms.StockRealm):
    """MIT's krb5kdc and kadmind of krb5-patches/build.sh --stock; without it the patched ones,
    which with db2 and no provider do as stock does."""

    def __init__(self, folder, options, ports):
        super().__init__(folder, options, storm_realms.stock_build())
        self.ports = ports
        sbin = self.install / 'sbin' if self.install else config_files.KRB5 / 'sbin'
        self.kadmind = self._daemon('kadmind', [sbin / 'kadmind', '-nofork'], 'kdc')

    def start_kdc(self):
        realm_module.Realm.start_kdc(self)


class Lab:
    def __init__(self, folder, kind='protected', pac=False, protocol=''):
        """`protocol`: what our servers force for users' keys, "replicated" or "garbled"; empty: they
        choose."""
        assert kind in KINDS
        self.dir = pathlib.Path(folder).resolve()
        self.kind = kind
        self.keytabs = {}
        self._names = itertools.count(1)
        main, udp, tcp = daemon.free_ports(3)
        self.ports = {'udp': udp, 'tcp': tcp}
        self.impacket_address = _address_for_port_88(main)
        ports = realm_module.Ports.anywhere()
        ports.kdc = main
        make = StockRealm if kind == 'stock' else realm_module.Realm
        self.realm = make(self.dir / 'realm', self._options(main, pac, protocol), ports=ports)

    def _options(self, main, pac, protocol):
        tcp = [f'127.0.0.1:{main}', f'127.0.0.1:{self.ports["tcp"]}']
        tcp += [f'{self.impacket_address}:88'] if self.impacket_address else []
        database = {} if self.kind == 'stock' else {
            'mpc_timeout': '10s',  # other tests share the machine
            'mpc_service_logins': True, 'mpc_protect': list(PROTECTED_SERVICES.values())}
        if self.kind == 'local':
            database['mpc_local'] = f'{USERS}*'
        return realm_module.Options(
            disable_pac=not pac, batch_window_ms=20, protocol=protocol, extra_database=database,
            extra_realm={
                'kdc_listen': f'127.0.0.1:{main} 127.0.0.1:{self.ports["udp"]}',
                'kdc_tcp_listen': ' '.join(tcp)})

    @property
    def protected(self):
        return self.kind in ('protected', 'imported')

    # Making -------------------------------------------------------------------------------------

    def start(self):
        live = self.realm
        if self.kind == 'stock':
            live.write_files()
        else:
            live.create_servers()
        live.create_database()
        self._let_new_keys_be_standard()
        if self.kind == 'imported':
            self.old = old_realm.OldRealm(live, name='old')
            self.old.run('kdb5_util', 'create', '-s', '-P', self.old.master)
        live.start_kdc()
        self.add_service(SERVICE)
        return self

    def stop(self):
        self.realm.stop()

    def keysalts(self):
        """What a user's password becomes. A local key needs none of ours."""
        ours = ['aes256-gcm', 'aes128-gcm'] if self.protected else []
        return ' '.join(f'{name}:normal' for name in ours + STANDARD)

    def _let_new_keys_be_standard(self):
        """From here on; kdb5_util has just made krbtgt with the types that are ours."""
        path = self.realm.kdc_dir / 'kdc.conf'
        lines = path.read_text().splitlines()
        lines = [f'        supported_enctypes = {self.keysalts()}'
                 if 'supported_enctypes' in line else line for line in lines]
        path.write_text('\n'.join(lines) + '\n')

    def add_service(self, principal, keysalts=None):
        """A service with local keys of 17 to 20 and its keytab, like any host's."""
        keysalts = keysalts or ','.join(f'{name}:normal' for name in STANDARD)
        live = self.realm
        live.kadmin_local(f'addprinc -randkey -e {keysalts} {principal}')
        self.keytabs[principal] = self.dir / (principal.replace('/', '.') + '.keytab')
        live.kadmin_local(f'ktadd -norandkey -k {self.keytabs[principal]} {principal}')
        return self.keytabs[principal]

    def add_password_service(self, principal, enctype, password=PASSWORD):
        """A service whose key, of one enctype, comes from a password that its host knows as well.

        Those of PROTECTED_SERVICES are protected in every realm of ours."""
        live = self.realm
        live.kadmin_local(f'addprinc -e {ENCTYPES[enctype]}:normal -pw "{password}" {principal}')
        live.kadmin_local(f'setstr {principal} session_enctypes {",".join(STANDARD)}')
        self.keytabs[principal] = self.dir / (principal.replace('/', '.') + '.keytab')
        self._write_keytabs(principal, password, {self.keytabs[principal]: [ENCTYPES[enctype]]})

    def add_user(self, password=PASSWORD, name=None):
        name = name or f'{USERS}{next(self._names)}'
        if self.kind == 'imported':
            self._import_user(password, name)
        else:
            self.realm.kadmin_local(
                f'addprinc -e {self.keysalts().replace(" ", ",")} +requires_preauth '
                f'-pw "{password}" {name}')
        self.keytabs[name] = self.dir / f'{name}.keytab'
        self._write_keytabs(name, password, {self.keytabs[name]: STANDARD, **{
            self.dir / f'{name}.{number}.keytab': [enctype]
            for number, enctype in ENCTYPES.items()}})
        return name

    def _import_user(self, password, name):
        """From a database of MIT's own, which has the password's keys and nothing of ours."""
        salts = ','.join(f'{enctype}:normal' for enctype in STANDARD)
        self.old.local(f'addprinc -e {salts} +requires_preauth -pw "{password}" {name}')
        self.realm.admin('import-realm', '--source', self.old.profile, name)

    def _write_keytabs(self, name, password, wanted):
        """As an administrator makes them from a known password, with Debian's ktutil. `wanted`: the
        enctypes of each path."""
        orders = ''
        for path, enctypes in wanted.items():
            orders += ''.join(f'addent -password -p {name}@{self.realm.name} -k 1 -e {enctype}\n'
                              f'{password}\n' for enctype in enctypes) + f'wkt {path}\nclear\n'
        made = run_stock(['/usr/bin/ktutil'], stdin=f'{orders}quit\n',
                         env={'KRB5_CONFIG': self.write_krb5_conf('ktutil.conf', 'tcp')})
        if not all(path.exists() for path in wanted):
            raise LabError(f'ktutil did not write {self.keytabs[name]}:\n{made.text}')

    def case(self, folder, user, enctype, transport, **more):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        return Case(self, folder, user, enctype, transport, **more)

    # What clients and services read ---------------------------------------------------------------

    def write_krb5_conf(self, name, transport, enctypes=None, folder=None, libdefaults=None,
                        endpoint='127.0.0.1:{port}', kdc=True):
        """krb5.conf for a client that is to use one transport and, perhaps, certain enctypes."""
        defaults = {'default_realm': self.realm.name, 'dns_lookup_kdc': False,
                    'dns_lookup_realm': False, 'dns_canonicalize_hostname': False, 'rdns': False,
                    'udp_preference_limit': 1 if transport == 'tcp' else 32700}
        if enctypes:
            names = ' '.join(ENCTYPES[number] for number in enctypes)
            defaults.update({relation: names for relation in (
                'permitted_enctypes', 'default_tkt_enctypes', 'default_tgs_enctypes')})
        defaults.update(libdefaults or {})
        ports = self.realm.ports
        servers = {'kdc': endpoint.format(port=self.ports[transport]),
                   'admin_server': f'127.0.0.1:{ports.kadmind}',
                   'kpasswd_server': f'127.0.0.1:{ports.kpasswd}'} if kdc else {
                       'kdc': '127.0.0.1:1'}
        path = pathlib.Path(folder or self.dir) / name
        path.write_text(config_files.profile({
            'libdefaults': defaults, 'realms': {self.realm.name: servers},
            'domain_realm': {SERVICE_HOST: self.realm.name}}))
        return path

    # Proof ----------------------------------------------------------------------------------------

    def mark(self):
        """Where the KDC's log ends now."""
        return self._log().stat().st_size if self._log().exists() else 0

    def issued(self, mark, user):
        """An Issued for each ticket that a user got since."""
        with open(self._log(), encoding='utf-8', errors='replace') as log:
            log.seek(mark)
            found = [LOGIN.search(line) for line in log]
        return [Issued(hit[1], int(hit[3]), int(hit[4]), hit[6]) for hit in found
                if hit and hit[2] == 'ISSUE' and hit[5] == f'{user}@{self.realm.name}']

    def login_enctypes(self, mark, user):
        """The enctypes of the AS replies that a user got since."""
        return [one.reply for one in self.issued(mark, user) if one.request == 'AS_REQ']

    def _log(self):
        return self.realm.log_dir / 'kdc.log'


def _address_for_port_88(seed):
    """An address of the loopback network whose port 88 we may have: impacket asks no other port."""
    address = f'127.88.{seed >> 8 & 255}.{seed & 255}'
    import socket
    with socket.socket() as probe:
        try:
            probe.bind((address, 88))
        except OSError:
            return ''
    return address
