# SPDX-License-Identifier: Apache-2.0
"""Heimdal's clients: kinit, kgetcred, kpasswd of Debian's heimdal-clients.

The package cannot be installed beside krb5-user, so it is unpacked below build/clients; its
libraries are installed and are not in anybody's way.
"""

import glob
import os
import pty
import re
import select
import subprocess
import time

import adapter
import client_lab as lab_module

BIN = lab_module.FILES / 'debs/usr/bin'


class Heimdal(adapter.Client):
    name = 'Heimdal'
    wrong_password_says = 'Password incorrect'

    def missing(self):
        return '' if glob.glob('/usr/lib/*/libkadm5clnt.so.7') else 'libkadm5clnt7-heimdal'

    def prepare(self):
        if os.access(BIN / 'kinit.heimdal', os.X_OK):
            return
        folder = BIN.parents[1]
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(['apt-get', '-q', '-o', 'APT::Sandbox::User=root', 'download',
                        'heimdal-clients'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for package in folder.glob('heimdal-clients_*.deb'):
            subprocess.run(['dpkg-deb', '-x', package, folder], check=True)

    def version(self):
        said = lab_module.run_stock([BIN / 'kinit.heimdal', '--version']).text
        return re.search(r'\((.*)\)', said)[1]

    def env(self, case, ccache='ccache', transport=None):
        transport = transport or case.transport
        name = lab_module.ENCTYPES[case.enctype]
        config = case.lab.write_krb5_conf(
            'heimdal.conf', transport, None, case.folder, endpoint=transport + '/127.0.0.1:{port}',
            libdefaults={'default_etypes': name, 'default_as_etypes': name,
                         'default_tgs_etypes': name})
        return {'KRB5_CONFIG': config, 'KRB5CCNAME': f'FILE:{case.folder / ccache}'}

    def kinit(self, case, *flags, password=None, ccache='ccache', transport=None):
        if password is not None:
            flags = (*flags, f'--password-file={case.file("password", password)}')
        return case.run(BIN / 'kinit.heimdal', *flags, case.principal,
                        env=self.env(case, ccache, transport))

    def login(self, case):
        return self.kinit(case, '--renewable', '-r', '2d', password=case.password)

    def wrong_password(self, case):
        return self.kinit(case, password=case.password + ' no', ccache='none')

    def service_ticket(self, case):
        return case.run(BIN / 'kgetcred', case.service, env=self.env(case))

    def renew(self, case):
        return case.run(BIN / 'kinit.heimdal', '-R', env=self.env(case))

    def keytab_login(self, case):
        """It asks for every enctype that its keytab has, whatever its configuration says."""
        return self.kinit(case, '-k', '-t', f'FILE:{case.keytab_of_enctype}',
                          ccache='keytab-ccache')

    def armor(self, case):
        """Heimdal 7.8 asks for the armor ticket in a way that MIT's KDC drops ("Realm not local to
        KDC" in its log). By UDP it would wait half a minute for the answer, so this is always by
        TCP."""
        return self.kinit(case, f'--fast-armor-cache=FILE:{case.folder / "ccache"}',
                          password=case.password, ccache='armored', transport='tcp')

    def change_password(self, case, new):
        """It asks at its terminal, nowhere else."""
        answers = [case.password, new, new]
        return at_terminal([BIN / 'kpasswd.heimdal', case.principal], answers,
                           self.env(case, 'none'))


def at_terminal(argv, answers, env):
    """Runs a program at a terminal of its own and answers its prompts, each ended by a colon."""
    argv = [str(part) for part in argv]
    pid, terminal = pty.fork()
    if not pid:
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(('KRB5', 'LD_'))}
        os.execve(argv[0], argv, {**clean, **{name: str(value) for name, value in env.items()}})
    said, answers = '', list(answers)
    deadline = time.monotonic() + lab_module.PATIENCE
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 1)[0]:
            continue
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            break  # its end of the terminal is closed
        if not piece:
            break
        said += piece.decode(errors='replace')
        if said.rstrip(' ').endswith(':') and answers:
            os.write(terminal, answers.pop(0).encode() + b'\n')
            said += '\n'
    os.close(terminal)
    return lab_module.Answer(_end(pid) == 0, said)


def _end(pid):
    """The exit status of our child; it is ended if it does not end by itself."""
    for _ in range(50):
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return -9
