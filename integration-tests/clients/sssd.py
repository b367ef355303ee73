# SPDX-License-Identifier: Apache-2.0
"""SSSD's krb5 provider: users log in by PAM with their password, with the KDC there and without it.

sssd runs in the foreground in a mount namespace of its own, where /etc/sssd, /var/lib/sss and
/etc/passwd are ours; pamtester is the program at whose prompt the password is typed.
"""

import contextlib
import pathlib
import shutil
import tempfile

import applications
import client_lab as lab_module
from namespace import Namespace, accounts
from client_lab import daemon  # of integration-tests/realm

SSSD = '/usr/sbin/sssd'
PAMTESTER = '/usr/bin/pamtester'
SERVICE = 'mpckdc-test'  # the name of the PAM service
CONFIG = '''[sssd]
services = nss, pam
domains = test

[domain/test]
id_provider = proxy
proxy_lib_name = files
auth_provider = krb5
chpass_provider = krb5
krb5_realm = {realm}
krb5_server = 127.0.0.1:{port}
krb5_kpasswd = 127.0.0.1:{kpasswd}
krb5_validate = true
krb5_keytab = {folder}/keytab
krb5_ccname_template = FILE:{folder}/home/krb5cc_%U
krb5_renewable_lifetime = 2d
krb5_use_kdcinfo = false
krb5_auth_timeout = 15
cache_credentials = true
{more}'''
# Armor by the host's own ticket; without it SSSD does not log anybody in.
FAST = f'krb5_use_fast = demand\nkrb5_fast_principal = {lab_module.SERVICE}\n'


def machine_files(folder, lab, users, more):
    """What lies over the machine's files."""
    made = accounts(folder, users)
    for name in ('etc-sssd', 'var-lib-sss', 'run-sssd'):
        (folder / name).mkdir(mode=0o755)
    for name in ('db', 'mc', 'pipes/private', 'pubconf/krb5.include.d', 'secrets', 'gpo_cache',
                 'deskprofile'):
        (folder / 'var-lib-sss' / name).mkdir(parents=True)
    (folder / 'var-lib-sss/db').chmod(0o700)
    config = folder / 'etc-sssd/sssd.conf'
    config.write_text(CONFIG.format(realm=lab.realm.name, port=lab.ports['tcp'], folder=folder,
                                    kpasswd=lab.realm.ports.kpasswd, more=more))
    config.chmod(0o600)
    shutil.copytree('/etc/pam.d', folder / 'pam.d')
    (folder / 'pam.d' / SERVICE).write_text(
        'auth required pam_sss.so\naccount required pam_sss.so\n')
    (folder / 'nsswitch.conf').write_text(
        'passwd: files sss\ngroup: files sss\nshadow: files sss\n')
    return {**made, '/etc/sssd': folder / 'etc-sssd', '/var/lib/sss': folder / 'var-lib-sss',
            '/etc/pam.d': folder / 'pam.d', '/etc/nsswitch.conf': folder / 'nsswitch.conf'}


@contextlib.contextmanager
def running(lab, users, enctype, more=''):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='mpckdc-sssd-'))
    folder.chmod(0o755)
    shutil.copy(lab.keytabs[lab_module.SERVICE], folder / 'keytab')
    # The login alone is restricted: the host's ticket is under whatever key the KDC likes best.
    config = lab.write_krb5_conf('krb5.conf', 'tcp', None, folder, libdefaults={
        'default_tkt_enctypes': lab_module.ENCTYPES[enctype]})
    log = lab.dir / 'sssd.log'
    server = Namespace([SSSD, '-i', '-d', '2', '--logger=stderr'],
                       machine_files(folder, lab, users, more), {'KRB5_CONFIG': config}, log)
    socket = folder / 'var-lib-sss/pipes/pam'
    try:
        if not daemon.wait_until(lambda: socket.exists() or not server.is_running(), 30) \
                or not server.is_running():
            raise applications.Broken(f'did not start: {log.read_text(errors="replace")[-400:]}')
        # The PAM responder is there before its back end, and would call that offline.
        if not daemon.wait_until(lambda: knows(server, users[0]), 30, pause=0.2):
            raise applications.Broken(f'SSSD does not know {users[0]}')
        yield server, folder
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def knows(server, user):
    return user in server.run('getent', '-s', 'sss', 'passwd', user).text


def log_in(server, user, password):
    done = server.run(PAMTESTER, SERVICE, user, 'authenticate', stdin=password + '\n')
    done.ok = done.ok and 'successfully authenticated' in done.text
    return done


def refused(server, user):
    """A wrong password, which must be called one: a broken SSSD says something else."""
    done = log_in(server, user, 'no')
    done.ok = not done.ok and 'Authentication failure' in done.text
    return done


def checks(lab):
    for enctype in lab_module.ENCTYPES:
        user = lab.add_user()
        with running(lab, [user], enctype) as (server, _):
            mark = lab.mark()
            first = log_in(server, user, lab_module.PASSWORD)
            first.ok = first.ok and lab.login_enctypes(mark, user) == [enctype]
            yield f'login under {enctype}, ticket validated with the host key', first
            yield f'a wrong password under {enctype} is refused', refused(server, user)
            if enctype == 18:
                yield from offline(lab, server, user)
    user = lab.add_user()
    with running(lab, [user], 18, FAST) as (server, _):
        yield ('login behind armor (krb5_use_fast = demand)',
               log_in(server, user, lab_module.PASSWORD))
        yield 'a wrong password behind armor is refused', refused(server, user)


def offline(lab, server, user):
    """The KDC goes away: the cached password still counts, another does not; then it comes back."""
    lab.realm.kdc.stop()
    try:
        yield 'offline, the cached password is accepted', log_in(server, user, lab_module.PASSWORD)
        yield 'offline, a wrong password is refused', refused(server, user)
    finally:
        lab.realm.kdc.start()
        lab.realm._wait_for_port(lab.realm.kdc, lab.realm.ports.kdc)
