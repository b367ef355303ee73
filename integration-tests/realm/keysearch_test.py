# SPDX-License-Identifier: Apache-2.0
"""The search finds what is there, in every form, and nothing else."""

import base64
import os

import keys
import keysearch

SECRET = bytes(range(200, 232))


def test_finds_every_form():
    search = keysearch.KeySearch([('it', SECRET)])
    forms = [SECRET, SECRET[:8], SECRET[24:], SECRET[::-1], SECRET.hex().encode(),
             SECRET.hex().upper().encode()]
    forms += [base64.b64encode(bytes(shift) + SECRET + b'tail') for shift in range(3)]
    forms += [base64.urlsafe_b64encode(bytes(shift) + SECRET + b'tail') for shift in range(3)]
    for form in forms:
        assert search.find(b'before ' + form + b' after') == ['it']


def test_finds_nothing_in_noise():
    search = keysearch.KeySearch(keys.secrets_of_password('alice@EXAMPLE.COM', 'a password'))
    assert search.find(os.urandom(1 << 20)) == []


def test_finds_what_enctypes_17_to_20_derive():
    """A state of an HMAC, or the middle of a round key of Ke, is found by its name."""
    principal, password = 'alice@EXAMPLE.COM', 'a password'
    search = keysearch.KeySearch(keys.secrets_of_password(principal, password))
    for enctype in (keys.AES256_CTS, keys.AES128_CTS, keys.AES256_SHA2, keys.AES128_SHA2):
        name = keys.NAMES[enctype]
        base = keys.string_to_key(enctype, password, keys.principal_salt(principal))
        held = keys.held_of_usage(enctype, base, 3)  # round keys | states
        round_keys = 11 if len(base) == 16 else 15
        states = 16 * round_keys
        for at, expected in ((16 * 7, f'{name} Ke(3) round key 7'),
                             (states, f'{name} state after Ki(3) ^ ipad')):
            noise = os.urandom(100) + held[at:at + 16] + os.urandom(100)
            assert search.find(noise) == [expected]
            assert search.find_raw(noise) == [expected]
        kc = keys.held_of_usage(enctype, base, 56)
        opad = kc[len(kc) // 2:][:8]
        assert search.find(opad) == [f'{name} state after Kc(56) ^ opad']


def test_files_and_memory(tmp_path):
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'sub/file').write_bytes(b'x' * 1000 + SECRET)
    found, size = keysearch.KeySearch([('it', SECRET)]).search_files([tmp_path])
    assert found == {str(tmp_path / 'sub/file'): ['it']} and size == 1032
    held = bytearray(SECRET)  # in this very process
    names, size = keysearch.KeySearch([('it', bytes(held))]).search_memory(os.getpid())
    assert names == ['it'] and size > 100000
