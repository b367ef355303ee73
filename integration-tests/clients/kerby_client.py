# SPDX-License-Identifier: Apache-2.0
"""Apache Kerby's client (Maven Central), by kerby/KerbyLogin.java."""

import pathlib
import re
import shutil
import subprocess

import adapter
import client_lab as lab_module

SOURCE = pathlib.Path(__file__).parent / 'kerby'
LIBRARIES = lab_module.FILES / 'kerby/lib'
CLASSES = lab_module.FILES / 'kerby/classes'


class Kerby(adapter.ProgramClient):
    name = 'Apache Kerby'
    enctypes = (17, 18)
    why_no_enctype = "Kerby's list of enctypes ends with RFC 3962 and Camellia"
    wrong_password_says = 'KDC_ERR_PREAUTH_FAILED'
    why_not = {'armor': "Kerby's client has armored requests for PKINIT and tokens only",
               'change_password': "Kerby's client has no password change"}

    def missing(self):
        has_both = shutil.which('mvn') and shutil.which('javac')
        return '' if has_both else 'maven openjdk-17-jdk-headless'

    def version(self):
        return 'kerb-client ' + re.search(r'kerb-client</artifactId>\s*<version>([^<]+)',
                                          (SOURCE / 'pom.xml').read_text())[1]

    def prepare(self):
        """Maven fetches the library and its dependencies, once; the compiler does the rest."""
        CLASSES.mkdir(parents=True, exist_ok=True)
        if not list(LIBRARIES.glob('kerb-client*.jar')):
            subprocess.run(['mvn', '-q', '-B', '-f', SOURCE / 'pom.xml',
                            'dependency:copy-dependencies', f'-DoutputDirectory={LIBRARIES}'],
                           check=True, cwd=CLASSES)
        subprocess.run(['javac', '-cp', f'{LIBRARIES}/*', '-d', CLASSES,
                        SOURCE / 'KerbyLogin.java'], check=True)

    def command(self, case):
        return ['java', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-cp',
                f'{CLASSES}:{LIBRARIES}/*', 'KerbyLogin'], {}

    def ask(self, step, case, **more):
        config = case.lab.write_krb5_conf('kerby.conf', case.transport, [case.enctype], case.folder)
        return super().ask(step, case, config=str(config), **more)

    def accepted(self, case):
        return adapter.Client.accepted(self, case)
