// SPDX-License-Identifier: Apache-2.0

/* Between the KDB module (remotetest.c) and the provider (provider.c). */

#ifndef REMOTETEST_H
#define REMOTETEST_H

#include <kdb.h>
#include <krb5/krb5.h>

/* Remember that key_data belongs to the principal called owner. */
void remotetest_note_owner(const krb5_key_data *key_data, const char *owner);

/* Return the owner of key_data, or NULL if it was never noted. */
const char *remotetest_owner(const krb5_key_data *key_data);

/* Make *ref_out a reference to a copy of key, which belongs to owner. */
krb5_error_code remotetest_make_reference(krb5_context context, const krb5_keyblock *key,
                                          const char *owner, krb5_keyblock *ref_out);

/* Register and unregister the provider. */
krb5_error_code remotetest_register(void);
void remotetest_unregister(void);

#endif /* REMOTETEST_H */
