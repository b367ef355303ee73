/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KDC_PLUGIN_KDB_MODULE_ENTRIES_H_
#define KDC_PLUGIN_KDB_MODULE_ENTRIES_H_

#include <krb5/krb5.h>

#include <kdb.h>

/*
 * kpropd (KRB5_KDB_OPEN_REPLICA) stores and deletes what the primary's module has let pass and settled
 * with the servers, and logged as it is stored. There, put and delete are the wrapped module's: a
 * replica has nothing to say about keys, and no administrator's certificate.
 */

krb5_error_code entries_get(krb5_context context, krb5_const_principal search_for,
                            unsigned int flags, krb5_db_entry **entry);

/* The entry that is visited is the one in hand (state.h). */
krb5_error_code entries_iterate(krb5_context context, char *match,
                                int (*func)(krb5_pointer, krb5_db_entry *), krb5_pointer arg,
                                krb5_flags flags);

/*
 * Stores an entry, if guard.h lets it. Staged keys of a local principal are put back as krb5 stores
 * them. Those of a protected one go to the three servers first: if that or the writing fails,
 * nothing is changed anywhere.
 */
krb5_error_code entries_put(krb5_context context, krb5_db_entry *entry, char **db_args);

/* Deletes an entry, then its keys on the servers; what an outage leaves, mpc-admin doctor finds. */
krb5_error_code entries_delete(krb5_context context, krb5_const_principal principal);

/* One with keys on the servers: see rename.c. Keys stay where they are, on the servers or in the
 * database: a name that would have them elsewhere is refused. */
krb5_error_code entries_rename(krb5_context context, krb5_const_principal source,
                               krb5_const_principal target);

#endif /* KDC_PLUGIN_KDB_MODULE_ENTRIES_H_ */
