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


def test_files_and_memory(tmp_path):
    (tmp_path / 'sub').mkdir()
    (tmp_path / 'sub/file').write_bytes(b'x' * 1000 + SECRET)
    found, size = keysearch.KeySearch([('it', SECRET)]).search_files([tmp_path])
    assert found == {str(tmp_path / 'sub/file'): ['it']} and size == 1032
    held = bytearray(SECRET)  # in this very process
    names, size = keysearch.KeySearch([('it', bytes(held))]).search_memory(os.getpid())
    assert names == ['it'] and size > 100000
