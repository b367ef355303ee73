# SPDX-License-Identifier: Apache-2.0
"""The published vector of XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha, A.3)."""

import xchacha

TEXT = (b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
        b"future, sunscreen would be it.")
SEALED = bytes.fromhex(
    'bd6d179d3e83d43b9576579493c0e939572a1700252bfaccbed2902c21396cbb'
    '731c7f1b0b4aa6440bf3a82f4eda7e39ae64c6708c54c216cb96b72e1213b452'
    '2f8c9ba40db5d945b11b69b982c1bb9e3f3fac2bc369488f76b2383565d3fff9'
    '21f9664c97637da9768812f615c68b13b52e'
    'c0875924c1c7987947deafd8780acf49')
KEY, NONCE = bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58))
ADDITIONAL = bytes.fromhex('50515253c0c1c2c3c4c5c6c7')


def test_opens_the_vector():
    assert xchacha.xchacha20poly1305_open(KEY, NONCE, SEALED, ADDITIONAL) == TEXT


def test_refuses_every_change():
    for sealed, additional in ((SEALED[:-1] + b'\0', ADDITIONAL), (b'\0' + SEALED[1:], ADDITIONAL),
                               (SEALED, ADDITIONAL[:-1])):
        assert xchacha.xchacha20poly1305_open(KEY, NONCE, sealed, additional) is None
