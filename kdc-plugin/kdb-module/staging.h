/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys on their way from encrypt_key_data to put_principal. The first is not told whose key it
 * gets; the second is. In between the key data holds a handle, and the key waits here, in locked
 * memory, together with the form in which krb5 itself would store it.
 */
#ifndef KDC_PLUGIN_KDB_MODULE_STAGING_H_
#define KDC_PLUGIN_KDB_MODULE_STAGING_H_

#include <stddef.h>
#include <stdint.h>

#include "kdc-plugin/client/mpc_client.h"

/*
 * The keys of an operation are wiped when its entry is put, whether that succeeds or not. Nobody
 * says that an operation was given up: its keys are wiped at the put of one more than
 * MAX_OTHER_PUTS other entries (a kadm5_hook may write some of them before ours), when there are
 * more than MAX_STAGED_KEYS (the oldest first), and when the database is closed. An entry whose keys were
 * wiped too early cannot be put any more (guard.h).
 */
enum {
    MAX_STAGED_KEY_BYTES = 64,
    MAX_STAGED_KEYS = 256, /* no operation has more than 60: enctypes times kinds of salt */
    MAX_OTHER_PUTS = 8
};

typedef struct staged_key {
    struct staged_key *next;
    uint8_t handle[MPC_HANDLE_BYTES];
    int from_password; /* string-to-key made it, not the random generator */
    int handed_out;    /* libkadm5 has it as that of a local principal */
    int other_puts;    /* since it was staged */
    unsigned long number; /* greater than that of those staged before */
    int32_t enctype;
    size_t key_bytes;
    uint8_t key[MAX_STAGED_KEY_BYTES];
    uint8_t *stock; /* contents as krb5 stores them: encrypted with the master key */
    uint16_t stock_bytes;
} staged_key;

/* A new entry with a random handle, in front of the list. Takes over `stock` on success only. May
 * wipe the oldest. */
staged_key *staging_add(staged_key **list, const uint8_t *key, size_t key_bytes, int32_t enctype,
                        int from_password, uint8_t *stock, uint16_t stock_bytes);

/* That of the next one. */
unsigned long staging_next_number(void);

staged_key *staging_find(staged_key *list, const uint8_t *handle);

/* Wipes one entry, or all. */
void staging_remove(staged_key **list, staged_key *entry);
void staging_clear(staged_key **list);

/* An entry was put that these keys are not of: wipes those for which it was one too many. */
void staging_other_put(staged_key **list);

#endif /* KDC_PLUGIN_KDB_MODULE_STAGING_H_ */
