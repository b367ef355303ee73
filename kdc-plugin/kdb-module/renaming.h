/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two entries is the principal while one is renamed. No database module here can change two
 * entries at once, and a principal who is found under two names, or under none, is a mistake that a
 * crash would leave behind. So two string attributes say what is under way, with the same random
 * word in both, and one write decides:
 *
 *   old entry             new entry                the principal is
 *   as it was             -                        old
 *   as it was             mpc_renamed_from WORD    old
 *   mpc_renamed_to WORD   mpc_renamed_from WORD    new      <- this write
 *   mpc_renamed_to WORD   as it will be            new
 *   -                     as it will be            new
 *
 * An entry that is not the principal is not found by anybody who looks for its name; krb5kdc and
 * kadmind look so. It is still listed and dumped, so that a database that is propagated or loaded at
 * any moment says the same. One that a crash left over is in nobody's way: the same rename, or a new
 * principal of that name, takes its place, and mpc-admin doctor names it.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_RENAMING_H_
#define KDC_PLUGIN_KDB_MODULE_RENAMING_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/state.h"

/* Whether the entry, as it is stored, is found by its name. */
int renaming_hides(krb5_context context, krb5_db_entry *entry);

/* The attributes are the module's own: before an entry is put, refuses one that would have others
 * than the stored one. `stored` may be NULL. */
krb5_error_code renaming_guard(module_state *state, krb5_db_entry *entry, krb5_db_entry *stored);

/* Whether the entry has the attribute, with this word. */
int renaming_marked(krb5_context context, krb5_db_entry *entry, const char *attribute,
                    const char *word);

/* The last two writes of the table. Each looks at the entry first, under the lock of the write, and leaves
 * it alone if it is not that of the word any more. */
krb5_error_code renaming_unmark(module_state *state, krb5_const_principal target,
                                const char *word);
krb5_error_code renaming_delete(module_state *state, krb5_const_principal principal,
                                const char *attribute, const char *word);

/* Before a stored entry is replaced, deleted or renamed itself: what was begun with it is ended, so
 * that it and the other one stand alone. */
krb5_error_code renaming_settle(module_state *state, krb5_db_entry *stored);

/*
 * Renames a principal with keys on the servers. `entry` is the one that the caller has read, under
 * its old name; it is changed. Either all of it happens, or nothing.
 */
krb5_error_code rename_protected(module_state *state, krb5_db_entry *entry,
                                 krb5_const_principal target);

#endif /* KDC_PLUGIN_KDB_MODULE_RENAMING_H_ */
