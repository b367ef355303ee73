# SPDX-License-Identifier: Apache-2.0
"""A daemon that believes that a few of the machine's files are others: in a mount namespace of its
own.

sshd and SSSD want accounts in /etc/passwd and files at fixed places. They get them there, and
nothing of the machine itself changes. Needs root.
"""

import os
import pathlib
import subprocess

import client_lab as lab_module

ACCOUNT_ID = 64999  # of the account that logs in; nobody's on Debian


class Namespace:
    """Starts one daemon; `files` says what lies over what: {path of the machine: our file or
    folder}."""

    def __init__(self, argv, files, env, log):
        lines = [f'mount --bind {ours} {path}' for path, ours in files.items()]
        command = ' && '.join(lines + ['exec ' + ' '.join(str(part) for part in argv)])
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(('KRB5', 'LD_', 'MPC'))}
        self._log = open(log, 'wb')
        self.process = subprocess.Popen(
            ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', command],
            env={**clean, **{name: str(value) for name, value in env.items()}},
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, start_new_session=True)

    def run(self, *argv, stdin='', env=None):
        """A command that sees the same files."""
        return lab_module.run_stock(
            ['nsenter', '-t', self.process.pid, '-m', '--', *argv], stdin=stdin, env=env)

    def is_running(self):
        return self.process.poll() is None

    def stop(self):
        if self.is_running():
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()


def accounts(folder, names):
    """passwd and shadow as the machine has them, with accounts that have no password of their
    own."""
    folder = pathlib.Path(folder)
    home = folder / 'home'
    home.mkdir(exist_ok=True)
    home.chmod(0o755)
    os.chown(home, ACCOUNT_ID, 65534)
    made = {}
    for path, line in (('/etc/passwd', '{name}:x:{id}:65534::{home}:/bin/sh'),
                       ('/etc/shadow', '{name}:*:19000:0:99999:7:::')):
        text = pathlib.Path(path).read_text()
        lines = [line.format(name=name, id=ACCOUNT_ID + number, home=home)
                 for number, name in enumerate(names)]
        copy = folder / pathlib.Path(path).name
        copy.write_text(text.rstrip('\n') + '\n' + '\n'.join(lines) + '\n')
        copy.chmod(0o644 if path == '/etc/passwd' else 0o600)
        made[path] = copy
    return made
