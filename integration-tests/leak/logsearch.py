# SPDX-License-Identifier: Apache-2.0
"""Searches texts for secrets, however they were written down.

A log may hold bytes as they are, in hex (in runs, with spaces or colons, as 0x.. or \\x.. lists),
as octal or other escapes of a string literal, as \\u00.. of JSON, or in base64. Each text is
decoded in all these ways, and every decoded stream is searched at every offset, forwards and
backwards, for pieces of 8 bytes: a third of a key counts as found.
"""

import base64
import re

PIECE = 8
_HEX_RUN = re.compile(rb'(?:(?:0x|\\x)?[0-9A-Fa-f]{1,2}[\s:,;-]{0,2}){8,}')
_HEX_DIGITS = re.compile(rb'0x|\\x|[^0-9A-Fa-f]')
_BASE64_RUN = re.compile(rb'[A-Za-z0-9+/_-]{11,}')
_ESCAPE = re.compile(rb'\\(?:x([0-9A-Fa-f]{2})|u00([0-9A-Fa-f]{2})|([0-3]?[0-7]{1,2})|(.))', re.S)
_LETTERS = {b'n': b'\n', b'r': b'\r', b't': b'\t', b'a': b'\a', b'b': b'\b', b'f': b'\f',
            b'v': b'\v', b'0': b'\0'}


def _unescape(match):
    for digits, base in ((match[1], 16), (match[2], 16), (match[3], 8)):
        if digits:
            return bytes([int(digits, base)])
    return _LETTERS.get(match[4], match[4])


def _hex_streams(text):
    for run in _HEX_RUN.finditer(text):
        digits = _HEX_DIGITS.sub(b'', run[0])
        for start in (0, 1):  # a digit before the run may belong to something else
            even = digits[start:start + (len(digits) - start) // 2 * 2]
            yield bytes.fromhex(even.decode())


def _base64_streams(text):
    for run in _BASE64_RUN.finditer(text):
        letters = run[0].translate(bytes.maketrans(b'-_', b'+/'))
        for start in range(4):
            whole = letters[start:start + (len(letters) - start) // 4 * 4]
            yield base64.b64decode(whole)
            if start == 0 and (rest := letters[len(whole):]):  # the last group may be cut short
                yield base64.b64decode(letters + b'A' * (4 - len(rest)))


def streams(text):
    """The text itself and everything that a reader could decode from its parts."""
    yield text
    if b'\\' in text:
        yield _ESCAPE.sub(_unescape, text)
    yield b''.join(stream + b'\0' for stream in _hex_streams(text))
    yield b''.join(stream + b'\0' for stream in _base64_streams(text))


class LogSearch:
    """Looks for a list of (name, bytes). What is shorter than a piece is looked for as it is."""

    def __init__(self, secrets):
        self._names, self._short = {}, {}
        for name, secret in secrets:
            if len(secret) < PIECE:
                self._short[bytes(secret)] = name
            for at in list(range(0, len(secret) - PIECE, PIECE)) + [len(secret) - PIECE]:
                if at >= 0:
                    piece = bytes(secret[at:at + PIECE])
                    self._names.setdefault(piece, name)
                    self._names.setdefault(piece[::-1], name)

    def find(self, text):
        """Names of the secrets that are in a text, in any form."""
        found = set()
        for stream in streams(text):
            # Intersecting sets costs a fraction of testing each offset.
            pieces = {stream[at:at + PIECE] for at in range(len(stream) - PIECE + 1)}
            found.update(self._names[piece] for piece in pieces & self._names.keys())
            found.update(name for short, name in self._short.items() if short in stream)
        return sorted(found)

    def find_in_files(self, paths):
        """{path: names}, findings only."""
        found = {str(path): self.find(path.read_bytes()) for path in paths}
        return {path: names for path, names in found.items() if names}
