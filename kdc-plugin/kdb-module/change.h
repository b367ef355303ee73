/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One entry is written or deleted in the wrapped database, and the update log of incremental propagation
 * says so (krb5-patches, 38). The servers are asked before and after, never in between:
 *
 *   servers store new keys
 *   change_begin     database and log locked, log marked as unstable
 *     read, compare  what the entry is now, whoever changed it while the servers were asked
 *   change_put       written; unlocked, which is when db2 writes its file; logged; stable again
 *   servers retire old keys
 *
 * Whoever is killed between begin and the end leaves an unstable log that nobody has locked: the next one to
 * use it makes it anew, and replicas do a full resync. Before begin nothing is changed, after the end it is
 * logged. The order of the log is that of the database, since the lock is held for both.
 *
 * db2 writes what is changed under one lock in an order of its own. So each change has its own lock, and
 * of two changes the first is in the file before the second begins. Changes do not nest.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_CHANGE_H_
#define KDC_PLUGIN_KDB_MODULE_CHANGE_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/state.h"

typedef struct change {
    module_state *state;
    krb5_const_principal principal; /* the caller's */
    krb5_boolean logs;
} change;

/* After 0 exactly one of the others has to be called. */
krb5_error_code change_begin(module_state *state, krb5_const_principal principal, change *c);

krb5_error_code change_put(change *c, krb5_db_entry *entry, char **db_args);
krb5_error_code change_delete(change *c);
void change_abandon(change *c); /* nothing was written */
void change_fail(change *c, krb5_error_code error); /* likewise; the error's text stays */

/* Both at once, for a change that depends on nothing. */
krb5_error_code put_and_log(module_state *state, krb5_db_entry *entry, char **db_args);
krb5_error_code delete_and_log(module_state *state, krb5_const_principal principal);

/* The wrapped module's own renaming, of which the log can only say that replicas know nothing. */
krb5_error_code rename_and_log(module_state *state, krb5_const_principal source,
                               krb5_const_principal target);

#endif /* KDC_PLUGIN_KDB_MODULE_CHANGE_H_ */
