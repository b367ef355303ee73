# SPDX-License-Identifier: Apache-2.0
"""Stock services that judge tickets: gss-server of krb5-gss-samples, and a python3-gssapi
acceptor."""

import os
import pathlib
import subprocess

import client_lab as lab_module
from client_lab import daemon  # of integration-tests/realm

ACCEPT_TOKEN = pathlib.Path(__file__).with_name('accept_token.py')
PYTHON = '/usr/bin/python3'  # Debian's, which sees Debian's python3-gssapi
MESSAGE = 'a message under the session key'


def debian_version(package):
    """The package's name and version."""
    return package + ' ' + subprocess.run(
        ['dpkg-query', '-W', '-f', '${Version}', package], stdout=subprocess.PIPE,
        encoding='utf-8', check=True).stdout


def gss_server():
    """Whether krb5-gss-samples is installed: `make clients` needs it, `make test` does without."""
    return os.path.exists('/usr/bin/gss-server')


def service_environment(case):
    """The service's host: its own keytab, and no KDC that it could ask."""
    return {'KRB5_CONFIG': case.lab.write_krb5_conf('service.conf', 'tcp', kdc=False),
            'KRB5_KTNAME': f'FILE:{case.lab.keytabs[case.service]}',
            'KRB5RCACHETYPE': 'none', 'KRB5RCACHENAME': 'none:'}


def accept_token(case, token):
    """A GSS token that a client made, shown to python3-gssapi with the service's keytab."""
    done = lab_module.run_stock([PYTHON, ACCEPT_TOKEN], stdin=token, env=service_environment(case))
    return _judged(case, done)


def accept_ccache(case, ccache):
    """gss-client with the tickets that a client left in its cache, and without any KDC, at
    gss-server.

    The message that it sends is wrapped under the session key and its MIC comes back."""
    port = daemon.free_ports(1)[0]
    env = service_environment(case)
    service, host = case.service.split('/')
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(('KRB5', 'LD_', 'MPC'))}
    server = subprocess.Popen(
        ['/usr/bin/gss-server', '-port', str(port), '-once', '-verbose', f'{service}@{host}'],
        env={**clean, **{name: str(value) for name, value in env.items()}},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding='utf-8', errors='replace')
    try:
        daemon.wait_until(lambda: port in daemon._listening_ports(server.pid), 10)
        client = lab_module.run_stock(
            ['/usr/bin/gss-client', '-port', port, host, f'{service}@{host}', MESSAGE],
            env={**env, 'KRB5CCNAME': f'FILE:{ccache}'})
        said, _ = server.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        server.kill()
        said = server.communicate()[0]
    client.text += said
    client.ok = client.ok and 'Signature verified' in client.text and MESSAGE in said
    return _judged(case, client)


def _judged(case, answer):
    """Accepted means: accepted as this user."""
    answer.ok = answer.ok and case.principal in answer.text
    return answer
