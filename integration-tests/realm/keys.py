# SPDX-License-Identifier: Apache-2.0
"""What a password turns into: base keys, derived keys, round keys, H, states of HMACs.

A second, independent implementation in plain Python of what the C and C++ code computes (RFC 3961,
RFC 3962, RFC 8009, mpc-server/doc/enctype.md). The demo and the tests use it to know which bytes must not be
found anywhere. It is slow, not constant-time, and never part of a running realm.
"""

import hashlib
import hmac

import hash_states

AES128_CTS, AES256_CTS = 17, 18
AES128_SHA2, AES256_SHA2 = 19, 20
AES128_GCM, AES256_GCM = -24001, -24002
ALL = (AES256_GCM, AES128_GCM, AES256_CTS, AES128_CTS, AES256_SHA2, AES128_SHA2)
KEY_BYTES = {AES128_CTS: 16, AES256_CTS: 32, AES128_SHA2: 16, AES256_SHA2: 32, AES128_GCM: 16,
             AES256_GCM: 32}
NAMES = {
    AES128_CTS: 'aes128-cts',
    AES256_CTS: 'aes256-cts',
    AES128_SHA2: 'aes128-sha2',
    AES256_SHA2: 'aes256-sha2',
    AES128_GCM: 'aes128-gcm',
    AES256_GCM: 'aes256-gcm',
}
# RFC 8009: the name in the salt, the hash, bytes of Ki and Kc.
_RFC_8009 = {
    AES128_SHA2: (b'aes128-cts-hmac-sha256-128', 'sha256', 16),
    AES256_SHA2: (b'aes256-cts-hmac-sha384-192', 'sha384', 24),
}
_CTS_OF_GCM = {AES128_GCM: AES128_CTS, AES256_GCM: AES256_CTS}
KC, KE, KI = 0x99, 0xAA, 0x55  # last bytes of the constants that derive them
ENCRYPTION_USAGES = (1, 2, 3)
GCM_CONSTANT = 0x47  # last byte of the constant that derives a GCM usage key


# AES (FIPS 197) ---------------------------------------------------------------------------------

def _times2(byte):
    return ((byte << 1) ^ 0x1B) & 0xFF if byte & 0x80 else byte << 1


def _make_sbox():
    # Walks the multiplicative group by its generator 3: power and its inverse in step.
    sbox = [0x63] * 256
    power, inverse = 1, 1
    for _ in range(255):
        power ^= _times2(power)
        for shift in (1, 2, 4):
            inverse ^= inverse << shift & 0xFF
        if inverse & 0x80:
            inverse ^= 0x09
        rotated = inverse * 0x101
        bits = (inverse ^ rotated >> 7 ^ rotated >> 6 ^ rotated >> 5 ^ rotated >> 4) & 0xFF
        sbox[power] = bits ^ 0x63
    return sbox


SBOX = _make_sbox()
INVERSE_SBOX = [SBOX.index(value) for value in range(256)]


def _xor(left, right):
    return bytes(a ^ b for a, b in zip(left, right))


def aes_round_keys(key):
    """The 11 or 15 round keys of 16 bytes; the first ones are the key itself."""
    words = [key[i:i + 4] for i in range(0, len(key), 4)]
    per_key = len(words)
    constant = 1
    while len(words) < 4 * (per_key + 7):
        word = words[-1]
        if len(words) % per_key == 0:
            word = bytes(SBOX[b] for b in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = _times2(constant)
        elif per_key == 8 and len(words) % 8 == 4:
            word = bytes(SBOX[b] for b in word)
        words.append(_xor(word, words[-per_key]))
    return [b''.join(words[i:i + 4]) for i in range(0, len(words), 4)]


def _mix_columns(state):
    mixed = bytearray()
    for column in (state[i:i + 4] for i in range(0, 16, 4)):
        total = column[0] ^ column[1] ^ column[2] ^ column[3]
        mixed += bytes(column[i] ^ total ^ _times2(column[i] ^ column[(i + 1) % 4])
                       for i in range(4))
    return bytes(mixed)


def aes_encrypt(round_keys, block):
    state = _xor(block, round_keys[0])
    for number, round_key in enumerate(round_keys[1:], 1):
        state = bytes(SBOX[state[(i + 4 * (i % 4)) % 16]] for i in range(16))
        if number + 1 < len(round_keys):
            state = _mix_columns(state)
        state = _xor(state, round_key)
    return state


def aes_decrypt(round_keys, block):
    state = _xor(block, round_keys[-1])
    for number in range(len(round_keys) - 2, -1, -1):
        state = bytes(INVERSE_SBOX[state[(i - 4 * (i % 4)) % 16]] for i in range(16))
        state = _xor(state, round_keys[number])
        if number:  # MixColumns has order 4, so three more turns undo one
            state = _mix_columns(_mix_columns(_mix_columns(state)))
    return state


# RFC 3961 and 3962 ------------------------------------------------------------------------------

def n_fold(data, size):
    """RFC 3961, 5.1: copies of data, each rotated right by 13 bits more, added in ones' complement."""
    bits = 8 * len(data)
    value = int.from_bytes(data, 'big')
    repeated = b''
    copy = 0
    while not repeated or len(repeated) % size:
        turn = 13 * copy % bits
        rotated = (value >> turn | value << (bits - turn)) & ((1 << bits) - 1)
        repeated += rotated.to_bytes(len(data), 'big')
        copy += 1
    modulus = (1 << 8 * size) - 1
    total = sum(int.from_bytes(repeated[i:i + size], 'big')
                for i in range(0, len(repeated), size)) % modulus
    return total.to_bytes(size, 'big')


def derive_key(base, constant):
    """DK of RFC 3961 for AES: random-to-key is the identity."""
    round_keys = aes_round_keys(base)
    block = constant if len(constant) == 16 else n_fold(constant, 16)
    output = b''
    while len(output) < len(base):
        block = aes_encrypt(round_keys, block)
        output += block
    return output[:len(base)]


def kdf_hmac_sha2(hash_name, key, label, size):
    """RFC 8009, 3, without a context."""
    text = (1).to_bytes(4, 'big') + label + b'\0' + (8 * size).to_bytes(4, 'big')
    return hmac.new(key, text, hash_name).digest()[:size]


def string_to_key(enctype, password, salt, iterations=None):
    """password and salt: str or bytes."""
    password, salt = (text.encode() if isinstance(text, str) else text for text in (password, salt))
    size = KEY_BYTES[enctype]
    if enctype not in _RFC_8009:
        secret = hashlib.pbkdf2_hmac('sha1', password, salt, iterations or 4096, size)
        return derive_key(secret, b'kerberos')
    name, hash_name, _ = _RFC_8009[enctype]
    secret = hashlib.pbkdf2_hmac(hash_name, password, name + b'\0' + salt, iterations or 32768, size)
    return kdf_hmac_sha2(hash_name, secret, b'kerberos', size)


def subkey(enctype, base, usage, kind):
    """Kc, Ke or Ki of enctypes 17 to 20."""
    if enctype not in _RFC_8009:
        return usage_key(base, usage, kind)
    _, hash_name, mac_bytes = _RFC_8009[enctype]
    return kdf_hmac_sha2(hash_name, base, usage.to_bytes(4, 'big') + bytes([kind]),
                         KEY_BYTES[enctype] if kind == KE else mac_bytes)


def hash_of(enctype):
    return _RFC_8009[enctype][1] if enctype in _RFC_8009 else 'sha1'


def usage_key(base, usage, last_byte=GCM_CONSTANT):
    return derive_key(base, usage.to_bytes(4, 'big') + bytes([last_byte]))


def hash_key(key):
    """H of GCM: the zero block encrypted."""
    return aes_encrypt(aes_round_keys(key), bytes(16))


# Enctypes 17 and 18, to open what a master key seals ----------------------------------------------

def _cts_decrypt(key, data):
    """CBC with ciphertext stealing and a zero IV (RFC 3962, 5)."""
    round_keys = aes_round_keys(key)
    if len(data) <= 16:
        return aes_decrypt(round_keys, data)
    tail = (len(data) - 1) % 16 + 1
    head, stolen, last = data[:-16 - tail], data[-16 - tail:-tail], data[-tail:]
    opened = aes_decrypt(round_keys, stolen)
    last_plain = _xor(opened, last)
    blocks = [head[i:i + 16] for i in range(0, len(head), 16)] + [last + opened[tail:]]
    plain = b''
    previous = bytes(16)
    for block in blocks:
        plain += _xor(aes_decrypt(round_keys, block), previous)
        previous = block
    return plain + last_plain


def cts_open(base, usage, message):
    """Decrypts and checks a message of enctype 17 or 18; None when the key is another."""
    cipher, mac = message[:-12], message[-12:]
    if len(cipher) < 16:
        return None
    plain = _cts_decrypt(usage_key(base, usage, 0xAA), cipher)
    expected = hmac.new(usage_key(base, usage, 0x55), plain, hashlib.sha1).digest()[:12]
    return plain[16:] if hmac.compare_digest(expected, mac) else None


def cts_seal(base, usage, plain, confounder):
    """A message of enctype 17 or 18, at least one block long besides the confounder."""
    text = confounder + plain
    round_keys = aes_round_keys(usage_key(base, usage, 0xAA))
    blocks, previous = [], bytes(16)
    for at in range(0, len(text), 16):
        previous = aes_encrypt(round_keys, _xor(text[at:at + 16].ljust(16, b'\0'), previous))
        blocks.append(previous)
    tail = (len(text) - 1) % 16 + 1
    cipher = b''.join(blocks[:-2]) + blocks[-1] + blocks[-2][:tail]
    mac = hmac.new(usage_key(base, usage, 0x55), text, hashlib.sha1).digest()[:12]
    return cipher + mac


# The bytes that nobody may hold -------------------------------------------------------------------

def principal_salt(principal):
    name, realm = principal.rsplit('@', 1)
    return realm + name.replace('/', '')


def held_of_usage(enctype, base, usage):
    """What a server's record has of a usage, joined: the plaintext of its shares, in their order."""
    if enctype in _CTS_OF_GCM:
        key = usage_key(base, usage)
        return b''.join(aes_round_keys(key)) + hash_key(key)
    encrypts = usage in ENCRYPTION_USAGES
    round_keys = aes_round_keys(subkey(enctype, base, usage, KE)) if encrypts else []
    states = hash_states.hmac_states(hash_of(enctype),
                                     subkey(enctype, base, usage, KI if encrypts else KC))
    return b''.join(round_keys) + b''.join(state.ljust(-(-len(state) // 16) * 16, b'\0')
                                           for state in states)


def _secrets_of_gcm(name, base, usage):
    key = usage_key(base, usage)
    yield f'{name} Kg({usage})', key
    for number, round_key in enumerate(aes_round_keys(key)):
        yield f'{name} Kg({usage}) round key {number}', round_key
    yield f'{name} H({usage})', hash_key(key)


def _secrets_of_cts(enctype, base, usage):
    """Ke, Ki and Kc, and whatever works like them: round keys, and the states of the HMACs."""
    name = NAMES[enctype]
    for letter, kind in (('Kc', KC), ('Ke', KE), ('Ki', KI)):
        key = subkey(enctype, base, usage, kind)
        yield f'{name} {letter}({usage})', key
        if kind == KE:
            for number, round_key in enumerate(aes_round_keys(key)):
                yield f'{name} Ke({usage}) round key {number}', round_key
            continue
        for pad, state in zip(('ipad', 'opad'), hash_states.hmac_states(hash_of(enctype), key)):
            yield f'{name} state after {letter}({usage}) ^ {pad}', state


def secrets_of_base_key(enctype, base, usages=(1, 3, 56)):
    """(name, bytes) of a base key and of everything that is derived from it on the way to a login.
    A gcm enctype's base key is that of 17 or 18, too."""
    name = NAMES[enctype]
    found = [(f'{name} base key', base)]
    for usage in usages:
        if enctype in _CTS_OF_GCM:
            found += _secrets_of_gcm(name, base, usage)
        found += _secrets_of_cts(_CTS_OF_GCM.get(enctype, enctype), base, usage)
    return found


def secrets_of_password(principal, password,
                        enctypes=(AES256_GCM, AES128_GCM, AES256_SHA2, AES128_SHA2)):
    """With the gcm enctypes come 17 and 18, whose base keys are the same."""
    found = [('password', password.encode())]
    for enctype in enctypes:
        base = string_to_key(enctype, password, principal_salt(principal))
        found += secrets_of_base_key(enctype, base)
    return found
