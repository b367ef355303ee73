# SPDX-License-Identifier: Apache-2.0
"""Java: the JDK's Krb5LoginModule and JGSS, by java/Login.java."""

import pathlib
import re
import shutil
import subprocess

import adapter
import client_lab as lab_module

SOURCE = pathlib.Path(__file__).parent / 'java/Login.java'
CLASSES = lab_module.FILES / 'java'


class Java(adapter.ProgramClient):
    name = 'Java'
    wrong_password_says = 'Pre-authentication information was invalid (24)'
    why_not = {'armor': "the JDK's Kerberos knows no FAST",
               'change_password': "the JDK's Kerberos has no password change"}

    def missing(self):
        return '' if shutil.which('javac') else 'openjdk-17-jdk-headless'

    def version(self):
        said = subprocess.run(['java', '-version'], stderr=subprocess.PIPE, encoding='utf-8',
                              check=True)
        return 'OpenJDK ' + re.search(r'version "([^"]+)"', said.stderr)[1]

    def prepare(self):
        CLASSES.mkdir(parents=True, exist_ok=True)
        subprocess.run(['javac', '-Xlint:-options', '-d', CLASSES, SOURCE], check=True)

    def command(self, case):
        config = case.lab.write_krb5_conf('java.conf', case.transport, [case.enctype], case.folder,
                                          libdefaults={'renew_lifetime': '2d'})
        # One processor's worth of compiler threads: a login is short.
        return ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto',
                f'-Djava.security.krb5.conf={config}', '-cp', CLASSES, 'Login'], {}
