# SPDX-License-Identifier: Apache-2.0
"""The few DER types of RFC 4120 that a ticket is made of."""

import time


def wrap(tag, *contents):
    body = b''.join(contents)
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    size = len(body).to_bytes(-(-len(body).bit_length() // 8), 'big')
    return bytes([tag, 0x80 | len(size)]) + size + body


def elements(data):
    """What stands one after the other in `data`: pairs of a tag and its contents."""
    found = []
    while data:
        size, start = data[1], 2
        if size >= 0x80:
            start += size - 0x80
            size = int.from_bytes(data[2:start], 'big')
        found.append((data[0], data[start:start + size]))
        data = data[start + size:]
    return found


def sequence(*parts):
    return wrap(0x30, *parts)


def field(number, *contents):
    return wrap(0xA0 | number, *contents)


def application(number, *contents):
    return wrap(0x60 | number, *contents)


def integer(value):
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return wrap(0x02, value.to_bytes(size, 'big', signed=True))


def octets(data):
    return wrap(0x04, data)


def flags(value):
    """A BIT STRING of 32 bits."""
    return wrap(0x03, b'\0', value.to_bytes(4, 'big'))


def text(value):
    return wrap(0x1B, value.encode())


def kerberos_time(seconds):
    return wrap(0x18, time.strftime('%Y%m%d%H%M%SZ', time.gmtime(seconds)).encode())


def name(principal):
    """PrincipalName of `a/b@REALM`, NT-PRINCIPAL or, for several components, NT-SRV-INST."""
    components = principal.split('@')[0].split('/')
    kind = 1 if len(components) == 1 else 2
    return sequence(field(0, integer(kind)), field(1, sequence(*map(text, components))))
