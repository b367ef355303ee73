/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the module knows about one open database (one krb5_context): its configuration, the keys on
 * their way in (staging.h), and whose entry the caller has in hand.
 *
 * The interface between libkadm5 and a database module does not say whose key is being encrypted
 * or decrypted, nor why. But every operation of libkadm5 begins by reading the principal's entry P,
 * and most end by putting it. H is kadmin/history, Q what a plugin of the operator's reads or
 * writes (pwqual before the first encrypt, kadm5_hook before the put):
 *
 *   take keys out   get P, decrypt (asking for the salt)                  kadm5_get_principal_keys
 *   new random key  get P, [get K/M], encrypt..., [decrypt new], Q, put P    decrypt: it goes out
 *   new password    get P, [get H, decrypt old, encrypt that for H], Q, [get K/M], encrypt...,
 *                   [decrypt new: compared], Q, put P
 *   setkey          get P, [get K/M], encrypt..., put P
 *   kadmind's own   get S, decrypt (not asking for the salt)              the KDB keytab
 *   kdb5_util       iterate: P, decrypt (asking for the salt), encrypt that, [put P]
 *
 * So the entry read last, K/M and H apart, is taken for the one in hand. That is a guess, and so is
 * what follows from it; each has a check behind it that does not guess:
 *
 *   guess                                        if it is wrong
 *   staged for the entry in which the handle     nothing is guessed: the handle is random, and only
 *     comes back                                 this process has it
 *   an operation that was given up does not      its keys stay in locked memory for a while
 *     end                                        (staging.h); wiped too early, no put: error
 *   a new random key is decrypted to go out;     P local, Q protected: error, no new key
 *     P is the entry in hand                     P protected, Q local: the key is given, but put
 *                                                refuses it for P (entries.c): it is nobody's
 *   a new key from a password is decrypted to    the caller made it from the password itself, and
 *     be compared                                has it anyway
 *   an old key is decrypted asking for the salt, error where the caller would only compare; or the
 *     with nothing else since the entry was      caller gets a reference: a name for a key, which
 *     read: it is to go out                      opens nothing, and which nobody takes (next line)
 *   a reference that is encrypted is a key of    error; and put takes it for no other principal,
 *     the entry in hand                          whatever is in hand
 *   encrypted under no master key, so not a      put refuses an unstaged key of a protected
 *     key of an entry (history; a new master     principal
 *     key's dump)
 *   the entry put has been read just now         put reads it again: what the stored one lacks is
 *                                                refused, and only what it has is deleted
 *   old keys to be compared are those of the     put refuses, if an old one was to be compared
 *     entry that was in hand when H was read       that is not (history.h); the servers compare
 *                                                  keys of one principal only
 *   deleted keys are the principal's own         the servers compare its name too
 */
#ifndef KDC_PLUGIN_KDB_MODULE_STATE_H_
#define KDC_PLUGIN_KDB_MODULE_STATE_H_

#include <krb5/krb5.h>

#include <kdb.h>

#include "kdc-plugin/kdb-module/classify.h"
#include "kdc-plugin/kdb-module/config.h"
#include "kdc-plugin/kdb-module/handles.h"
#include "kdc-plugin/kdb-module/history.h"
#include "kdc-plugin/kdb-module/staging.h"

typedef struct module_state {
    struct module_state *next;
    krb5_context context;
    int is_kdc;
    int is_replica; /* kpropd, which stores the primary's updates: see entries.h */
    module_config *config;
    staged_key *staged;
    krb5_principal current; /* of the entry in hand; NULL before the first */
    handle_list in_hand;    /* that entry's */
    int only_read;          /* nothing but reading it has happened since */
    history_check history;    /* of the change of a password under way */
    krb5_keyblock new_master; /* seen encrypted under itself: kdb5_util add_mkey */
} module_state;

/* Reads the configuration and remembers the state of `context`, in place of an older one. `mode` is
 * that of the table's init_module. */
krb5_error_code state_open(krb5_context context, const char *section, int mode,
                           module_state **state_out);

/* NULL if the context has no open database of ours. */
module_state *state_of(krb5_context context);

/* Wipes and forgets. Returns the number of states that are left. */
int state_close(krb5_context context);

/* The entry of `principal` was read; NULL: there is none, as before a new one is made. */
void state_entry_read(module_state *state, krb5_const_principal principal,
                      const krb5_db_entry *entry);

/* The same without the guess that its keys are to be taken out. NULL: no entry is in hand. */
void state_in_hand(module_state *state, krb5_const_principal principal,
                   const krb5_db_entry *entry);

#endif /* KDC_PLUGIN_KDB_MODULE_STATE_H_ */
