# SPDX-License-Identifier: Apache-2.0
"""Programs that use Kerberos, end to end: a protected service, sshd, apache2 with curl, SSSD.
Each is a context manager and a list of checks; Debian's programs, loopback ports of ours,
configuration below the lab's folder."""

import contextlib
import os
import pathlib
import shutil
import tempfile

import judge
import client_lab as lab_module
import mit
import report
import services
from namespace import Namespace, accounts
from client_lab import daemon  # of integration-tests/realm

SSHD = '/usr/sbin/sshd'
APACHE = '/usr/sbin/apache2'
APACHE_MODULES = '/usr/lib/apache2/modules'
PAGE = 'a page for those who have a ticket\n'


class Broken(Exception):
    """A daemon that did not come up; the text says which, and why."""


def run_all(lab, result, progress):
    """A report.Application for each check of each program."""
    import sssd
    found = []
    programs_and_checks = {
        'protected services': ([mit.KINIT], service_checks),
        'sshd': ([SSHD], ssh_checks),
        'apache2 and curl': ([APACHE], http_checks),
        'SSSD': ([sssd.SSSD, sssd.PAMTESTER], sssd.checks)}
    for name, (programs, checks) in programs_and_checks.items():
        missing = [program for program in programs if not os.path.exists(program)]
        if missing or os.geteuid():
            result.absent[name] = ' '.join(missing) or 'root, which it needs,'
            continue
        try:
            for what, answer in checks(lab):
                verdict = judge.YES if answer.ok else judge.NO
                found.append(report.Application(name, what, verdict, str(answer)))
                progress(f'{name}: {what}: {"yes" if answer.ok else "FAILED: " + str(answer)}')
        except Broken as broken:
            found.append(report.Application(name, 'starts', judge.NO, str(broken)))
            progress(f'{name}: {broken}')
    return found


def wait_for_port(process, port, log):
    """Until the daemon listens; Broken with the end of its log when it does not."""
    up = daemon.wait_until(lambda: process.poll() is not None or _is_listening(port), 20)
    if not up or process.poll() is not None:
        raise Broken(f'did not start: {pathlib.Path(log).read_text(errors="replace")[-400:]}')


def _is_listening(port):
    return port in daemon._listening_ports(os.getpid())


def but_not(answer, what):
    """The opposite of an answer: for what must fail."""
    return lab_module.Answer(not answer.ok, answer.text if not answer.ok else f'{what} was let in')


def tickets(lab, user, enctype):
    """A case whose ccache has a TGT, got by Debian's kinit under one enctype."""
    case = lab.case(lab.dir / f'application-{user}-{enctype}', user, enctype, 'tcp')
    mark = lab.mark()
    done = mit.Mit().login(case)
    if not done.ok or lab.login_enctypes(mark, user) != [enctype]:
        raise Broken(f'{user} has no ticket under enctype {enctype}: {done}')
    return case


# Services whose keys are shared -----------------------------------------------------------------

def service_checks(lab):
    """A ticket under a protected service's key: encrypted on shares, opened by its host."""
    user = lab.add_user()
    case = tickets(lab, user, 18)
    for enctype, case.service in lab_module.PROTECTED_SERVICES.items():
        lab.add_password_service(case.service, enctype)
        mark = lab.mark()
        done = mit.Mit().service_ticket(case)
        if done.ok:
            done = services.accept_ccache(case, case.folder / 'ccache')
        tickets_seen = [one.ticket for one in lab.issued(mark, user)]
        if tickets_seen != [enctype]:
            done = lab_module.Answer(False, f'{done}; tickets under {tickets_seen}')
        yield f'gss-server with a keytab accepts a ticket under a protected key of {enctype}', done


# ssh by GSSAPI ----------------------------------------------------------------------------------

SSHD_CONFIG = '''Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication no
GSSAPIAuthentication yes
GSSAPIStrictAcceptorCheck no
LogLevel VERBOSE
'''


@contextlib.contextmanager
def sshd(lab, users):
    folder = pathlib.Path(tempfile.mkdtemp(prefix='mpckdc-sshd-'))
    folder.chmod(0o755)
    port, log = daemon.free_ports(1)[0], lab.dir / 'sshd.log'
    lab_module.run_stock(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', folder / 'host_key'])
    (folder / 'sshd_config').write_text(SSHD_CONFIG.format(port=port, folder=folder))
    pathlib.Path('/run/sshd').mkdir(exist_ok=True)  # what Debian's init script does
    case = lab.case(folder, users[0], 18, 'tcp')
    server = Namespace([SSHD, '-D', '-e', '-f', folder / 'sshd_config'], accounts(folder, users),
                       services.service_environment(case), log)
    try:
        wait_for_port(server.process, port, log)
        yield port
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def ssh(case, port, account, ccache='ccache'):
    env = {**mit.Mit().env(case), 'KRB5CCNAME': f'FILE:{case.folder / ccache}'}
    done = case.run(
        'ssh', '-F', 'none', '-p', port, '-o', 'BatchMode=yes', '-o', 'GSSAPIAuthentication=yes',
        '-o', 'PreferredAuthentications=gssapi-with-mic', '-o', 'StrictHostKeyChecking=no',
        '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR',
        f'{account}@localhost', 'id -un', env=env)
    done.ok = done.ok and done.text.strip() == account
    return done


def ssh_checks(lab):
    user, other = lab.add_user(), lab.add_user()
    with sshd(lab, [user, other]) as port:
        for enctype in lab_module.ENCTYPES:
            case = tickets(lab, user, enctype)
            yield f'ssh by GSSAPI after kinit under {enctype}', ssh(case, port, user)
        yield 'without a ticket it is refused', but_not(ssh(case, port, user, 'none'), 'nobody')
        yield "another's account is refused", but_not(ssh(case, port, other), user)


# HTTP by SPNEGO ---------------------------------------------------------------------------------

APACHE_CONFIG = '''ServerName localhost
ServerRoot {folder}
PidFile {folder}/pid
Listen 127.0.0.1:{port}
User www-data
Group www-data
{modules}
ErrorLog {folder}/error.log
LogFormat "%u %s" short
CustomLog {folder}/access.log short
DocumentRoot {folder}/pages
<Directory {folder}/pages>
    AuthType GSSAPI
    AuthName tickets
    GssapiCredStore keytab:{folder}/keytab
    GssapiAllowedMech krb5
    Require valid-user
</Directory>
'''


@contextlib.contextmanager
def apache(lab):
    """apache2 with mod_auth_gssapi and one page. Below /tmp: www-data has to reach its keytab."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix='mpckdc-apache-'))
    folder.chmod(0o755)
    port = daemon.free_ports(1)[0]
    keytab = lab.keytabs.get('HTTP/localhost') or lab.add_service('HTTP/localhost')
    shutil.copy(keytab, folder / 'keytab')
    shutil.chown(folder / 'keytab', 'www-data')
    (folder / 'pages').mkdir()
    (folder / 'pages/index.html').write_text(PAGE)
    names = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'auth_gssapi', 'dir']
    modules = '\n'.join(f'LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so'
                        for name in names)
    (folder / 'apache.conf').write_text(
        APACHE_CONFIG.format(folder=folder, port=port, modules=modules))
    case = lab.case(folder / 'case', 'nobody', 18, 'tcp', service='HTTP/localhost')
    krb5_conf = shutil.copy(services.service_environment(case)['KRB5_CONFIG'], folder / 'krb5.conf')
    server = Namespace([APACHE, '-D', 'FOREGROUND', '-f', folder / 'apache.conf'], {},
                       {'KRB5_CONFIG': krb5_conf}, lab.dir / 'apache.log')
    try:
        wait_for_port(server.process, port, lab.dir / 'apache.log')
        yield port, folder / 'access.log'
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def curl(case, port, ccache='ccache'):
    env = {**mit.Mit().env(case), 'KRB5CCNAME': f'FILE:{case.folder / ccache}'}
    done = case.run('curl', '-s', '-S', '--fail', '--negotiate', '-u', ':',
                    f'http://localhost:{port}/index.html', env=env)
    done.ok = done.ok and PAGE in done.text
    return done


def http_checks(lab):
    user = lab.add_user()
    with apache(lab) as (port, access):
        for enctype in lab_module.ENCTYPES:
            case = tickets(lab, user, enctype)
            done = curl(case, port)
            done.ok = done.ok and f'{case.principal} 200' in access.read_text()
            yield f'curl --negotiate after kinit under {enctype}', done
        yield 'without a ticket it is refused', but_not(curl(case, port, 'none'), 'nobody')
