# SPDX-License-Identifier: Apache-2.0
"""Every secret of a test realm that somebody outside its processes can know."""

import re
import subprocess

import keys
import storefile
import traffic

USER_USAGES = {'pre-auth': 1, 'the AS reply': 3, 'the AS-REQ checksum': 56}
TICKET_USAGES = {'a ticket': 2, 'a PAC checksum': 17}


def shares_of(store, party):
    """One server's shares as they are stored: both components of every block."""
    for record in store.values():
        who = f'P{party}\'s share of {record.principal}\'s'
        for x, a in record.base:
            yield f'{who} base key', x + a
        for usage, blocks in record.usages.items():
            for x, a in blocks:
                yield f'{who} usage {usage}: round keys, H or states of an HMAC', x + a


def sample_of_shares(store, party):
    """A few blocks of every key: enough to see whether records lie about in a process's memory."""
    for record in store.values():
        who = f'P{party}\'s share of {record.principal}\'s'
        yield f'{who} base key', b''.join(record.base[0])
        for usage, blocks in record.usages.items():
            yield f'{who} usage {usage}, first block', b''.join(blocks[0])
            yield f'{who} usage {usage}, last block', b''.join(blocks[-1])


def store_keys(live):
    for party in range(3):
        for epoch, key in storefile.read_store_keys(live.dir / f'p{party}/store.key').items():
            yield f'store key of P{party}, epoch {epoch}', key


def tls_private_keys(live):
    """The secret number of each private key; the rest of its file is public."""
    for path in sorted((live.dir / 'ca').glob('*.key')):
        text = subprocess.run(['openssl', 'pkey', '-in', path, '-noout', '-text'], check=True,
                              stdout=subprocess.PIPE, encoding='ascii').stdout
        digits = re.search(r'priv:\s*([0-9a-f:\s]+)', text)[1]
        yield f'TLS key {path.name}', bytes.fromhex(re.sub(r'[^0-9a-f]', '', digits))


def usage_keys(live, all_stores, principal, passwords):
    """{name: Kg} of what seals the messages of a user's logins."""
    found = {}
    for enctype, base in storefile.joined_base_keys(all_stores, f'krbtgt/{live.name}@{live.name}'):
        for name, usage in TICKET_USAGES.items():
            found[f'{name} ({keys.NAMES[enctype]})'] = keys.usage_key(base, usage)
    for number, password in enumerate(passwords):
        for enctype in (keys.AES256_GCM, keys.AES128_GCM):
            base = keys.string_to_key(enctype, password,
                                      keys.principal_salt(f'{principal}@{live.name}'))
            for name, usage in USER_USAGES.items():
                label = f'{name} (password {number}, {keys.NAMES[enctype]})'
                found[label] = keys.usage_key(base, usage)
    return found


def secrets_of_logins(live, all_stores, user, passwords, datagrams):
    """What no machine may keep: keys, passwords, keystream, timestamps, session keys."""
    found = storefile.secrets_of_krbtgt(live, all_stores)
    for password in passwords:
        found += keys.secrets_of_password(f'{user}@{live.name}', password)
    return found + traffic.secrets_of_traffic(datagrams,
                                              usage_keys(live, all_stores, user, passwords))


def all_secrets(live, all_stores, user, passwords, datagrams):
    """The same and what some machine keeps but no log may show."""
    found = secrets_of_logins(live, all_stores, user, passwords, datagrams)
    for party, store in enumerate(all_stores):
        found += shares_of(store, party)
    return found + list(store_keys(live)) + list(tls_private_keys(live))
