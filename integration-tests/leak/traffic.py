# SPDX-License-Identifier: Apache-2.0
"""What a login is on the wire, and what its bytes are to someone who has the keys.

A UdpRelay stands between a client and krb5kdc and keeps every datagram. With the user's and
krbtgt's keys (known to the test alone: from the password, and joined from two servers' stores) the
keystream of each message is computed again, as no machine of the realm may keep it.
"""

import re

import gcm
import keys

ZERO = len(gcm.ZERO_BLOCK)
NONCE, HEADER, TAG = 12, 33, 16
SHORTEST = NONCE + 1 + ZERO + TAG
# EncryptedData (RFC 4120) of one of our enctypes, or of 18, which is a TGT's label: [0] etype,
# [1] kvno if there is one, [2] cipher.
_ENCRYPTED = re.compile(rb'(?:\xa0\x04\x02\x02\xa2[\x3e\x3f]|\xa0\x03\x02\x01\x12)'
                        rb'(?:\xa1.\x02(?:\x01.|\x02..|\x04....))?\xa2', re.S)
# EncryptionKey: [0] type 17 or 18, [1] contents.
_SESSION_KEY = re.compile(rb'\xa0\x03\x02\x01[\x11\x12]\xa1'
                          rb'(?:\x12\x04\x10(.{16})|\x22\x04\x20(.{32}))', re.S)


def _der_length(data, at):
    """(length, where the contents begin)."""
    first = data[at]
    if first < 0x80:
        return first, at + 1
    size = first & 0x7F
    return int.from_bytes(data[at + 1:at + 1 + size], 'big'), at + 1 + size


def sealed_messages(datagram):
    """Every message of our enctypes in a datagram: nonce | header length | header | text | tag."""
    for match in _ENCRYPTED.finditer(datagram):
        _, at = _der_length(datagram, match.end())
        if datagram[at] == 0x04:
            length, at = _der_length(datagram, at + 1)
            message = datagram[at:at + length]
            if len(message) >= SHORTEST and message[NONCE] in (0, HEADER):
                yield message


def sealed_text(message):
    """Ciphertext and tag: what no log has a reason to show. Nonce and header are public facts."""
    _, _, ciphertext, tag = gcm.split(message)
    return ciphertext + tag


def open_message(message, usage_key):
    """(keystream, plaintext), or None if the key is not that of the message."""
    nonce, _, ciphertext, _ = gcm.split(message)
    stream = gcm.keystream(keys.aes_round_keys(usage_key), nonce, len(ciphertext))
    plain = gcm.xor(stream, ciphertext)
    return (stream, plain[ZERO:]) if plain[:ZERO] == gcm.ZERO_BLOCK else None


def secrets_of_traffic(datagrams, usage_keys):
    """[(name, bytes)]: keystream of each recorded message, plaintext of pre-authentications,
    session keys. `usage_keys` is {name: Kg}; names that begin with "pre-auth" are of usage 1."""
    found = []
    for message in (m for datagram in datagrams for m in sealed_messages(datagram)):
        for name, key in usage_keys.items():
            opened = open_message(message, key)
            if opened is None:
                continue
            stream, plain = opened
            # That of the 16 zero bytes is their ciphertext: public.
            found.append((f'keystream of {name}', stream[ZERO:]))
            if name.startswith('pre-auth'):
                found.append((f'plaintext of {name}', plain))
            for match in _SESSION_KEY.finditer(plain):
                found.append((f'session key in {name}', match[1] or match[2]))
    return found
