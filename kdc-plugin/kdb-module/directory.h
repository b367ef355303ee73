/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs if the wrapped module is kldap, and the entries lie in an LDAP directory:
 *
 *   the directory may be away           a request that cannot be judged is no error of the KDC's:
 *                                       KDC_ERR_SVC_UNAVAILABLE, upon which clients ask another KDC
 *   the answer to a write may be lost   the write was made, or will be, or not: look before anything
 *                                       is deleted on the servers
 *   only what the mask names is written whoever changes a field sets its bit
 *   an entry may be a part of an object that has other names and stays when one is deleted
 *   an entry without flags of its own   has those of its ticket policy, or of the realm
 */
#ifndef KDC_PLUGIN_KDB_MODULE_DIRECTORY_H_
#define KDC_PLUGIN_KDB_MODULE_DIRECTORY_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/state.h"

/* The error that krb5kdc is told, which is the one that its client gets. */
krb5_error_code directory_for_kdc(krb5_context context, krb5_error_code ret);

typedef enum put_outcome {
    PUT_REFUSED, /* nothing was changed, and nothing will be */
    PUT_STORED,  /* the entry is in the directory */
    PUT_UNCLEAR  /* nobody knows, or not yet */
} put_outcome;

/* What became of a put of new keys that failed with `error`. May take three seconds. */
put_outcome directory_put_outcome(module_state *state, krb5_db_entry *entry,
                                  krb5_error_code error);

/* The error after PUT_UNCLEAR, with a text that says where to look. */
krb5_error_code directory_unclear(module_state *state, krb5_const_principal principal,
                                  krb5_error_code error);

/* Whether the entry is gone after a deletion that failed with `error`: its answer was lost. */
int directory_deleted(module_state *state, krb5_const_principal principal, krb5_error_code error);

/* Whether the keys of an entry stay in the directory when it is deleted: its object has other
 * principals' names too. */
int directory_keeps_keys(const module_state *state, const krb5_db_entry *entry);

/* Whether the flags of a new entry come from its ticket policy or the realm, and go on doing so as
 * long as it gets none of its own. */
int directory_gives_flags(const module_state *state, const krb5_db_entry *entry);

#endif /* KDC_PLUGIN_KDB_MODULE_DIRECTORY_H_ */
