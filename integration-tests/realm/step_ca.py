# SPDX-License-Identifier: Apache-2.0
"""smallstep's step-ca as the realm's certificate authority, from the sources that the Go module proxy serves.

Nothing but Go is needed: both programs are built once, below build/step (some minutes on two cores)."""

import os
import pathlib
import shutil
import socket
import subprocess

import config_files
import daemon

PROGRAMS = pathlib.Path(os.environ.get('MPCKDC_STEP', config_files.BUILD / 'step'))
# Of one version of smallstep's; go.sum's place is taken by Go's checksum database.
SOURCES = {'step-ca': 'github.com/smallstep/certificates/cmd/step-ca@v0.30.2',
           'step': 'github.com/smallstep/cli/cmd/step@v0.30.2'}
ROLES = {'peers': 'peer', 'kdcs': 'kdc', 'admins': 'admin'}


def why_not():
    """Empty, or why it cannot be built here."""
    if all((PROGRAMS / name).exists() for name in SOURCES):
        return ''
    if shutil.which('go') is None:
        return 'step-ca is not built, and there is no Go to build it'
    for name, source in SOURCES.items():
        if (PROGRAMS / name).exists():
            continue
        done = subprocess.run(['go', 'install', source], capture_output=True, encoding='utf-8',
                              env={**os.environ, 'GOBIN': str(PROGRAMS), 'CGO_ENABLED': '0'})
        if done.returncode:
            return f'Go does not build {source}: {done.stderr[-400:]}'
    return ''


class StepCa:
    """An authority in a folder of its own, with a provisioner for each role, as deploy/ca/README.md makes it."""

    def __init__(self, folder, realm_name='EXAMPLE.COM'):
        self.dir, self.realm_name = folder, realm_name
        self.port = daemon.free_ports(1)[0]
        self.url = f'https://127.0.0.1:{self.port}'
        self.process = None
        folder.mkdir()
        self.env = {**os.environ, 'STEPPATH': str(folder / 'step'), 'HOME': str(folder)}
        for name in (*ROLES, 'ca'):
            (folder / f'{name}.password').write_text(f'the password of {name}')

    def step(self, *arguments, check=True):
        done = subprocess.run([PROGRAMS / 'step', *map(str, arguments)], env=self.env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', timeout=60)
        assert not check or done.returncode == 0, f'step {arguments}: {done.stdout}'
        return done

    def create(self):
        self.step('ca', 'init', '--deployment-type', 'standalone', '--name', 'EXAMPLE', '--dns', '127.0.0.1',
                  '--address', f'127.0.0.1:{self.port}', '--provisioner', 'peers',
                  '--password-file', self.dir / 'ca.password', '--provisioner-password-file',
                  self.dir / 'peers.password')
        template = (config_files.REPOSITORY / 'deploy/ca/step-ca.tpl').read_text()
        for provisioner, role in ROLES.items():
            file = self.dir / f'{provisioner}.tpl'
            file.write_text(template.replace('ROLE', role).replace('EXAMPLE.COM', self.realm_name))
            what = ['update', provisioner] if provisioner == 'peers' else [
                'add', provisioner, '--type', 'JWK', '--create', '--password-file',
                self.dir / f'{provisioner}.password']
            # Short ones are for the test.
            self.step('ca', 'provisioner', *what, '--x509-template', file, '--x509-max-dur', '2160h',
                      '--x509-default-dur', '2160h', '--x509-min-dur', '5s', '--ca-config', self.config)
        return self

    @property
    def config(self):
        return self.dir / 'step/config/ca.json'

    def start(self):
        log = open(self.dir / 'step-ca.log', 'w')
        self.process = subprocess.Popen([PROGRAMS / 'step-ca', self.config, '--password-file',
                                         self.dir / 'ca.password'], env=self.env, stdout=log, stderr=log)
        assert daemon.wait_until(self._listens, 30), (self.dir / 'step-ca.log').read_text()
        return self

    def _listens(self):
        with socket.socket() as s:
            return s.connect_ex(('127.0.0.1', self.port)) == 0

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(20)
            self.process = None

    def authority(self):
        """What goes into `ca`: the root, and the certificate between it and those that it issues."""
        certs = self.dir / 'step/certs'
        return (certs / 'root_ca.crt').read_text() + (certs / 'intermediate_ca.crt').read_text()

    def reach(self):
        return ['--ca-url', self.url, '--root', self.dir / 'step/certs/root_ca.crt']

    def certificate(self, provisioner, name, pem, key, *names, check=True, options=()):
        sans = [word for each in names for word in ('--san', each)]
        return self.step('ca', 'certificate', name, pem, key, '--force', '--provisioner', provisioner,
                         '--provisioner-password-file', self.dir / f'{provisioner}.password', *sans, *options,
                         *self.reach(), check=check)

    def renew(self, pem, key, rekey=False):
        return self.step('ca', 'rekey' if rekey else 'renew', '--force', *self.reach(), pem, key)
