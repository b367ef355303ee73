/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the module knows about one open database (one krb5_context): its configuration, the keys on
 * their way in, and where the caller is in an operation of libkadm5.
 *
 * The interface between libkadm5 and a database module does not say whose key is being encrypted or
 * decrypted, nor why. But every operation of libkadm5 begins by reading the principal's entry:
 *
 *   take keys out   get P, decrypt (asking for the salt)                  kadm5_get_principal_keys
 *   new random key  get P, get K/M, encrypt..., [decrypt new], put P      decrypt: the key goes out
 *   new password    get P, [get kadmin/history, decrypt old], get K/M, encrypt..., [decrypt], put P
 *   kadmind's own   get S, decrypt (not asking for the salt)              the KDB keytab
 *
 * So reading an entry other than K/M and kadmin/history starts an operation on that principal.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_STATE_H_
#define KDC_PLUGIN_KDB_MODULE_STATE_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/classify.h"
#include "kdc-plugin/kdb-module/config.h"
#include "kdc-plugin/kdb-module/staging.h"

typedef struct module_state {
    struct module_state *next;
    krb5_context context;
    int is_kdc;
    module_config *config;
    staged_key *staged;
    krb5_principal current; /* of the operation in progress; NULL before the first */
    int only_read;          /* nothing but reading the current entry has happened since */
    krb5_keyblock new_master; /* seen encrypted under itself: kdb5_util add_mkey */
} module_state;

/* Reads the configuration and remembers the state of `context`, in place of an older one. */
krb5_error_code state_open(krb5_context context, const char *section, int is_kdc,
                           module_state **state_out);

/* NULL if the context has no open database of ours. */
module_state *state_of(krb5_context context);

/* Wipes and forgets. Returns the number of states that are left. */
int state_close(krb5_context context);

/* The entry of `principal` is being read. */
void state_entry_read(module_state *state, krb5_const_principal principal);

#endif /* KDC_PLUGIN_KDB_MODULE_STATE_H_ */
