# SPDX-License-Identifier: Apache-2.0
"""Python's gssapi binding (Debian's python3-gssapi on the system's libkrb5), by
gssapi_program.py."""

import pathlib
import subprocess

import adapter
import services

PROGRAM = pathlib.Path(__file__).with_name('gssapi_program.py')


class Gssapi(adapter.ProgramClient):
    name = 'Python gssapi'
    wrong_password_says = 'Preauthentication failed'
    why_not = {'renew': 'GSS-API has no call that renews',
               'armor': 'GSS-API has no call that sets an armor cache',
               'change_password': 'GSS-API has no call that changes a password'}

    def missing(self):
        found = subprocess.run([services.PYTHON, '-c', 'import gssapi'], stderr=subprocess.DEVNULL)
        return 'python3-gssapi' if found.returncode else ''

    def version(self):
        return services.debian_version('python3-gssapi')

    def command(self, case):
        config = case.lab.write_krb5_conf('gssapi.conf', case.transport, [case.enctype],
                                          case.folder)
        return [services.PYTHON, PROGRAM], {'KRB5_CONFIG': config,
                                            'KRB5CCNAME': f'FILE:{case.folder}/none'}
