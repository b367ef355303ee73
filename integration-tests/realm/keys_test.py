# SPDX-License-Identifier: Apache-2.0
"""The independent key derivation against published vectors."""

import hashlib
import hmac
import json
import os
import pathlib

import pytest

import hash_states
import keys


def test_aes_fips_197():
    block = bytes.fromhex('00112233445566778899aabbccddeeff')
    for size, cipher in ((16, '69c4e0d86a7b0430d8cdb78070b4c55a'),
                         (32, '8ea2b7ca516745bfeafc49904b496089')):
        round_keys = keys.aes_round_keys(bytes(range(size)))
        assert keys.aes_encrypt(round_keys, block).hex() == cipher
        assert keys.aes_decrypt(round_keys, bytes.fromhex(cipher)) == block


def test_n_fold_rfc_3961():
    assert keys.n_fold(b'012345', 8).hex() == 'be072631276b1955'
    assert keys.n_fold(b'password', 7).hex() == '78a07b6caf85fa'
    assert keys.n_fold(b'kerberos', 16).hex() == '6b65726265726f737b9b5b2b93132b93'
    assert keys.n_fold(b'Q', 21).hex() == '518a54a2' '15a8452a' '518a54a2' '15a8452a' '518a54a2' '15'


@pytest.mark.parametrize('enctype, salt, iterations, key', [
    (keys.AES128_CTS, '', 1200, '4c01cd46d632d01e6dbe230a01ed642a'),
    (keys.AES256_CTS, '', 1200, '55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a'),
    (keys.AES128_SHA2, '10df9dd783e5bc8acea1730e74355f61', None,
     '089bca48b105ea6ea77ca5d2f39dc5e7'),
    (keys.AES256_SHA2, '10df9dd783e5bc8acea1730e74355f61', 32768,
     '45bd806dbf6a833a9cffc1c94589a222367a79bc21c413718906e9f578a78467'),
])
def test_string_to_key_rfc_3962_and_8009(enctype, salt, iterations, key):
    salt = bytes.fromhex(salt) + b'ATHENA.MIT.EDUraeburn'
    assert keys.string_to_key(enctype, 'password', salt, iterations).hex() == key


@pytest.mark.parametrize('enctype, base, kc, ke, ki', [
    (keys.AES128_CTS, '42263c6e89f4fc28b8df68ee09799f15', '34280a382bc92769b2da2f9ef066854b',
     '5b14fc4e250e14ddf9dccf1af6674f53', '4ed31063621684f09ae8d89991af3e8f'),
    (keys.AES128_SHA2, '3705d96080c17728a0e800eab6e0d23c', 'b31a018a48f54776f403e9a396325dc3',
     '9b197dd1e8c5609d6e67c3e37c62c72e', '9fda0e56ab2d85e1569a688696c26a6c'),
    (keys.AES256_SHA2, '6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52',
     'ef5718be86cc84963d8bbb5031e9f5c4ba41f28faf69e73d',
     '56ab22bee63d82d7bc5227f6773f8ea7a5eb1c825160c38312980c442e5c7e49',
     '69b16514e3cd8e56b82010d5c73012b622c4d00ffc23ed1f'),
])
def test_derived_keys(enctype, base, kc, ke, ki):
    """RFC 8009, appendix A; for 17 the vectors of MIT krb5's own tests."""
    base = bytes.fromhex(base)
    assert [keys.subkey(enctype, base, 2, kind).hex() for kind in (keys.KC, keys.KE, keys.KI)] \
        == [kc, ke, ki]


@pytest.mark.parametrize('name', ['sha1', 'sha256', 'sha384'])
def test_hash_states(name):
    """A message that fits in one block with its padding, and an HMAC finished from its two states."""
    function = hash_states.HASHES[name]
    size, word = function.block_bytes, function.bits // 8

    def padded(text, before):
        text_bits = 8 * (before + len(text))
        zeros = -(len(text) + 1 + 2 * word) % size
        return text + b'\x80' + bytes(zeros) + text_bits.to_bytes(2 * word, 'big')

    def go_on(state, text):
        words = [int.from_bytes(state[i:i + word], 'big') for i in range(0, len(state), word)]
        text = padded(text, size)
        for at in range(0, len(text), size):
            words = function.compress(words, text[at:at + size])
        return b''.join(w.to_bytes(word, 'big') for w in words)[:digest_size]

    digest_size = hashlib.new(name).digest_size
    assert hash_states.state_after(name, padded(b'abc', 0))[:digest_size] \
        == hashlib.new(name, b'abc').digest()
    for length in (0, 1, 55, 64, 200):
        key, text = os.urandom(16), os.urandom(length)
        inner, outer = hash_states.hmac_states(name, key)
        assert go_on(outer, go_on(inner, text)) == hmac.new(key, text, name).digest()


def test_secrets_cover_what_a_server_holds():
    """Whatever a record has of a usage is a secret that the search knows, piece by piece."""
    for enctype in keys.ALL:
        base = os.urandom(keys.KEY_BYTES[enctype])
        for usages in ((1, 3, 56), (2, 17)):
            known = b'|'.join(secret.ljust(-(-len(secret) // 16) * 16, b'\0')
                              for _, secret in keys.secrets_of_base_key(enctype, base, usages))
            for usage in usages:
                held = keys.held_of_usage(enctype, base, usage)
                assert all(held[at:at + 16] in known for at in range(0, len(held), 16))


def test_secrets_of_a_password_are_of_every_enctype():
    found = dict(keys.secrets_of_password('alice@EXAMPLE.COM', 'a password'))
    secrets = set(found.values())
    for enctype in keys.ALL:
        base = keys.string_to_key(enctype, 'a password', 'EXAMPLE.COMalice')
        assert base in secrets
        if enctype > 0:
            for kind in (keys.KC, keys.KE, keys.KI):
                assert keys.subkey(enctype, base, 3, kind) in secrets


def test_cts_rfc_3962():
    key = b'chicken teriyaki'
    text = b'I would like the General Gau\'s Chicken, please, and wonton soup.'
    ciphers = {
        17: 'c6353568f2bf8cb4d8a580362da7ff7f97',
        31: 'fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5',
        32: '39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584',
        47: '97687268d6ecccc0c07b25e25ecfe584b3fffd940c16a18c1b5549d2f838029e'
            '39312523a78662d5be7fcbcc98ebf5',
    }
    for size, cipher in ciphers.items():
        assert keys._cts_decrypt(key, bytes.fromhex(cipher)) == text[:size]


def test_h_of_sp_800_38d():
    assert keys.hash_key(bytes(16)).hex() == '66e94bd4ef8a2c3b884cfa59ca342b2e'


def test_the_projects_own_vectors():
    path = pathlib.Path(__file__).resolve().parents[2] / 'proto/testdata/gcm_enctype_vectors.json'
    vectors = json.loads(path.read_text())
    assert vectors['usage_keys'] and vectors['string_to_key']
    for vector in vectors['usage_keys']:
        key = keys.usage_key(bytes.fromhex(vector['base']), vector['usage'])
        assert key.hex() == vector['key']
        assert keys.hash_key(key).hex() == vector['h']
    for vector in vectors['string_to_key']:
        made = keys.string_to_key(vector['enctype'], bytes.fromhex(vector['password']),
                                  bytes.fromhex(vector['salt']), vector['iterations'])
        assert made.hex() == vector['key']
