# SPDX-License-Identifier: Apache-2.0
"""The independent key derivation against published vectors."""

import json
import pathlib

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


def test_string_to_key_rfc_3962():
    salt = 'ATHENA.MIT.EDUraeburn'
    assert (keys.string_to_key(keys.AES128_CTS, 'password', salt, 1200).hex()
            == '4c01cd46d632d01e6dbe230a01ed642a')
    assert (keys.string_to_key(keys.AES256_CTS, 'password', salt, 1200).hex()
            == '55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a')


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
