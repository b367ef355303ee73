# SPDX-License-Identifier: Apache-2.0
"""A service by python3-gssapi: a base64 GSS token comes on stdin, the client's name goes to
stdout."""

import base64
import sys

import gssapi

context = gssapi.SecurityContext(usage='accept', creds=gssapi.Credentials(usage='accept'))
context.step(base64.b64decode(sys.stdin.read()))
print(f'accepted {context.initiator_name}')
