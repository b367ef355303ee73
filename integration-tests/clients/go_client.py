# SPDX-License-Identifier: Apache-2.0
"""Go: gokrb5, by go/main.go."""

import os
import pathlib
import re
import shutil
import subprocess

import adapter
import client_lab as lab_module

SOURCE = pathlib.Path(__file__).parent / 'go'
PROGRAM = lab_module.FILES / 'go/login'
GO = shutil.which('go') or shutil.which('go', path='/usr/local/go/bin')


class Go(adapter.ProgramClient):
    name = 'Go'
    wrong_password_says = 'KDC_ERR_PREAUTH_FAILED'
    why_not = {'armor': 'gokrb5 knows no FAST armor'}

    def missing(self):
        return '' if GO else 'golang-go'

    def version(self):
        module = re.search(r'gokrb5/v8 (\S+)', (SOURCE / 'go.mod').read_text())[1]
        compiler = subprocess.run([GO, 'env', 'GOVERSION'], stdout=subprocess.PIPE,
                                  encoding='utf-8', check=True).stdout.strip()
        return f'gokrb5 {module} ({compiler})'

    def prepare(self):
        PROGRAM.parent.mkdir(parents=True, exist_ok=True)
        # A compiled package needs nothing from outside when its modules are in the module cache.
        subprocess.run([GO, 'build', '-o', PROGRAM, '.'], cwd=SOURCE, check=True,
                       env={**os.environ, 'GOFLAGS': '-mod=readonly'})

    def command(self, case):
        return [PROGRAM], {}

    def ask(self, step, case, **more):
        short = {'ticket_lifetime': '6s'} if step == 'renew' else {}
        config = case.lab.write_krb5_conf(
            f'go-{step}.conf', case.transport, [case.enctype], case.folder,
            libdefaults={'renew_lifetime': '2d', **short})
        return super().ask(step, case, config=str(config), **more)

    def change_password(self, case, new):
        return self.ask('change_password', case, new=new)
