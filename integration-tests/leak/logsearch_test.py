# SPDX-License-Identifier: Apache-2.0
"""The search for secrets in logs finds what is there, in every form, and nothing else."""

import base64
import json
import os

import pytest

import logsearch

SECRET = bytes.fromhex('c3028e22f75c6e41009f41fd0a274bb18c5c5d8122e9d0770d2e09aa5cd0b3ff')


def c_escape(data):
    """As absl::CEscape and protobuf's debug strings: printable bytes as they are."""
    return ''.join(chr(byte) if 32 <= byte < 127 and byte not in b'"\'\\' else f'\\{byte:03o}'
                   for byte in data)


FORMS = {
    'raw': SECRET,
    'hex': SECRET.hex(),
    'HEX': SECRET.hex().upper(),
    'hex with spaces': SECRET.hex(' '),
    'hex with colons': SECRET.hex(':').upper(),
    'a dump as gRPC prints it': SECRET.hex(' ') + " '....\".nA'",
    'a list of C': ', '.join(f'0x{byte:02x}' for byte in SECRET),
    '\\x': ''.join(f'\\x{byte:02x}' for byte in SECRET),
    'octal': ''.join(f'\\{byte:03o}' for byte in SECRET),
    'C literal': c_escape(SECRET),
    'Python literal': repr(SECRET),
    'JSON': json.dumps(SECRET.decode('latin-1')),
    'base64': base64.b64encode(SECRET),
    'base64 inside': base64.b64encode(b'a' + SECRET + b'zz'),
    'base64, urlsafe': base64.urlsafe_b64encode(SECRET),
    'backwards': SECRET[::-1],
    'a third of it': SECRET[8:16].hex(),
    'its end': SECRET[-8:],
}


@pytest.mark.parametrize('form', FORMS)
def test_finds_every_form(form):
    text = FORMS[form]
    text = text.encode() if isinstance(text, str) else text
    log = b'2026-11-21 info started\n2026-11-21 debug job 17: ' + text + b' done\n'
    assert logsearch.LogSearch([('it', SECRET)]).find(log) == ['it']


def test_finds_a_password_in_a_command_line():
    search = logsearch.LogSearch([('password', b'short')])
    assert search.find(b'argv: kadmin -w short -q') == ['password']


def test_finds_nothing_in_noise():
    search = logsearch.LogSearch([('it', SECRET)])
    noise = os.urandom(1 << 16)
    assert search.find(noise + noise.hex().encode() + base64.b64encode(noise)) == []


def test_names_the_file(tmp_path):
    (tmp_path / 'clean.log').write_text('nothing here\n')
    (tmp_path / 'leaky.log').write_text(f'key={SECRET.hex()}\n')
    found = logsearch.LogSearch([('it', SECRET)]).find_in_files(sorted(tmp_path.iterdir()))
    assert found == {str(tmp_path / 'leaky.log'): ['it']}
