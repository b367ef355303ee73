# SPDX-License-Identifier: Apache-2.0
"""The gssapi binding of Python, asked as adapter.py's ProgramClient says."""

import base64
import json
import sys

import gssapi
import gssapi.raw

KRB5 = gssapi.MechType.kerberos


def credentials(order):
    name = gssapi.Name(f'{order["user"]}@{order["realm"]}', gssapi.NameType.kerberos_principal)
    if order['step'] == 'keytab_login':
        return gssapi.Credentials(name=name, usage='initiate', mechs=[KRB5], store={
            'client_keytab': order['keytab'], 'ccache': f'FILE:{order["ccache"]}-keytab'})
    acquired = gssapi.raw.acquire_cred_with_password(
        name, order['password'].encode(), mechs=[KRB5], usage='initiate')
    return gssapi.Credentials(base=acquired.creds)


def token(order, creds):
    service = gssapi.Name(order['service'].replace('/', '@'), gssapi.NameType.hostbased_service)
    context = gssapi.SecurityContext(name=service, creds=creds, mech=KRB5, usage='initiate')
    return base64.b64encode(context.step()).decode()


def main():
    order = json.load(sys.stdin)
    answer = {'ok': True}
    try:
        creds = credentials(order)
        answer['text'] = f'{creds.lifetime} seconds'
        if order['step'] == 'service_ticket':
            answer['token'] = token(order, creds)
    except gssapi.exceptions.GSSError as error:
        answer = {'ok': False, 'text': str(error)}
    print(json.dumps(answer))


main()
