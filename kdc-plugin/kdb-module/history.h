/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Password history. libkadm5 compares a new password's keys with the entry's present keys and with
 * those of its history, which it keeps in KRB5_TL_KADM_DATA encrypted under kadmin/history; of a
 * protected principal both are handles (handles.h), which tell nothing. So the three servers are
 * asked, once in a change of password:
 *
 *   get P, get H                      a comparison may come, of the entry in hand, P
 *   decrypt old, encrypt that for H
 *   encrypt new...                    these keys are compared
 *   decrypt new                       the servers are asked about all old handles of P; an error
 *                                     ends the change
 *   decrypt old                       one that is equal to a new key is given as that key: libkadm5
 *                                     finds it, and says "Cannot reuse password"
 *   put P
 *
 * An old key that the servers were not asked about, which should not happen, cannot end the change
 * there (libkadm5 skips old keys that it cannot decrypt), so put refuses.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_HISTORY_H_
#define KDC_PLUGIN_KDB_MODULE_HISTORY_H_

#include <krb5/krb5.h>

#include <kdb.h>
#include <stdint.h>

#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/staging.h"

struct module_state;

/* Calls `visit` for each handle in the entry's history. EINVAL: what is there is not understood. */
typedef void (*history_visit)(void *arg, uint32_t kvno, int32_t enctype,
                              const uint8_t handle[KRB5_REMOTE_KEY_HANDLE_LENGTH]);
krb5_error_code history_walk(const krb5_db_entry *entry, history_visit visit, void *arg);

/* The handles in the history, each once; handle_list_free() in any case. */
krb5_error_code history_list_of(const krb5_db_entry *entry, handle_list *list);

/* The handles of the entry's keys and of its history, each once; handle_list_free() in any case. */
krb5_error_code handles_of_all(const krb5_db_entry *entry, handle_list *list);

/* Puts what `replacement` returns, if it returns something, in the place of each handle. */
typedef const uint8_t *(*history_replacement)(void *arg, const uint8_t *handle);
krb5_error_code history_replace(krb5_db_entry *entry, history_replacement replacement, void *arg);

/* Of the change of a password under way. */
typedef struct history_check {
    int begun;
    krb5_principal principal; /* of the entry that was in hand then; NULL: none was */
    unsigned long first;      /* staging number from which on keys are new ones of this change */
    int asked;
    handle_list old; /* about which the servers were asked */
    uint8_t *equal;  /* what they said of each */
    int missed;      /* an old key was to be compared that is none of them */
} history_check;

/* kadmin/history was read. */
void history_begin(struct module_state *state);
void history_end(struct module_state *state);

/* A staged key is to be compared: asks the servers, the first time. */
krb5_error_code history_ask(struct module_state *state);

/* The staged key to which an old one is equal, or NULL. */
const staged_key *history_find(struct module_state *state, const uint8_t *handle,
                               int32_t enctype);

/* Before an entry is put: all that was to be compared was. And after. */
krb5_error_code history_check_put(struct module_state *state, const krb5_db_entry *entry);
void history_put(struct module_state *state, const krb5_db_entry *entry);

#endif /* KDC_PLUGIN_KDB_MODULE_HISTORY_H_ */
