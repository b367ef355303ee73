# SPDX-License-Identifier: Apache-2.0
"""A user's login by libkrb5 itself: what kinit does, with the error's number in hand.

ctypes lets go of Python's lock during a call, so one process may have hundreds of logins under way.
Each login has a context of its own, as each kinit has.
"""

import ctypes

_CREDS_BYTES = 1024             # ample for a krb5_creds, which libkrb5 fills and frees
_VERIFY_OPTIONS = (ctypes.c_int * 2)(1, 1)  # AP_REQ_NOFAIL: no service key is a failure

_lib = ctypes.CDLL('libkrb5.so.3')
_lib.krb5_get_error_message.restype = ctypes.c_void_p
_lib.krb5_get_error_message.argtypes = [ctypes.c_void_p, ctypes.c_int32]
_lib.krb5_free_error_message.argtypes = [ctypes.c_void_p, ctypes.c_void_p]


class KerberosError(Exception):
    """An error code, and the text that kinit would have shown."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Login:
    """One login's context and ticket; a context manager that frees both."""

    def __init__(self):
        self._context = ctypes.c_void_p()
        self._creds = ctypes.create_string_buffer(_CREDS_BYTES)
        self._has_creds = False

    def __enter__(self):
        self._call('krb5_init_context', ctypes.byref(self._context), context=False)
        return self

    def __exit__(self, *_):
        if self._has_creds:
            _lib.krb5_free_cred_contents(self._context, self._creds)
        _lib.krb5_free_context(self._context)

    def get_tgt(self, principal, password):
        client = self._principal(principal)
        try:
            self._call('krb5_get_init_creds_password', self._creds, client, password.encode(),
                       None, None, ctypes.c_int32(0), None, None)
            self._has_creds = True
        finally:
            _lib.krb5_free_principal(self._context, client)

    def check_ticket(self, service, keytab):
        """Whether the TGT works: gets a service's ticket with it and opens that by the keytab."""
        server, table = self._principal(service), ctypes.c_void_p()
        try:
            self._call('krb5_kt_resolve', f'FILE:{keytab}'.encode(), ctypes.byref(table))
            self._call('krb5_verify_init_creds', self._creds, server, table, None,
                       ctypes.byref(_VERIFY_OPTIONS))
        finally:
            if table:
                _lib.krb5_kt_close(self._context, table)
            _lib.krb5_free_principal(self._context, server)

    def _principal(self, name):
        principal = ctypes.c_void_p()
        self._call('krb5_parse_name', name.encode(), ctypes.byref(principal))
        return principal

    def _call(self, function, *arguments, context=True):
        code = getattr(_lib, function)(*((self._context,) if context else ()), *arguments)
        if code:
            raise KerberosError(code, self._text(code))

    def _text(self, code):
        message = _lib.krb5_get_error_message(self._context, code)
        text = ctypes.string_at(message).decode(errors='replace')
        _lib.krb5_free_error_message(self._context, message)
        return text
