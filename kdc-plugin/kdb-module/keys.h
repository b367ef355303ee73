/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KDC_PLUGIN_KDB_MODULE_KEYS_H_
#define KDC_PLUGIN_KDB_MODULE_KEYS_H_

#include <krb5/krb5.h>

#include <kdb.h>

/*
 * Stages a key and stores a random handle in its place; put_principal decides what becomes of it.
 * References are stored as they are; master keys, and keys of the password history, as krb5 does.
 */
krb5_error_code keys_encrypt(krb5_context context, const krb5_keyblock *mkey,
                             const krb5_keyblock *key, const krb5_keysalt *salt, int kvno,
                             krb5_key_data *key_data);

/* A handle gives a reference, without asking anybody. Taking a protected key out is refused. */
krb5_error_code keys_decrypt(krb5_context context, const krb5_keyblock *mkey,
                             const krb5_key_data *key_data, krb5_keyblock *key,
                             krb5_keysalt *salt);

#endif /* KDC_PLUGIN_KDB_MODULE_KEYS_H_ */
