/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/staging.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

/* libkadm5's callers have one thread; kdb5_util and kadmind too. */
static unsigned long next_number = 1;

unsigned long staging_next_number(void)
{
    return next_number;
}

/* The newest are in front. */
static void drop_beyond(staged_key **list, size_t count)
{
    while (*list != NULL && count-- > 0)
        list = &(*list)->next;
    staging_clear(list);
}

staged_key *staging_add(staged_key **list, const uint8_t *key, size_t key_bytes, int32_t enctype,
                        int from_password, uint8_t *stock, uint16_t stock_bytes)
{
    staged_key *entry;

    if (key_bytes > MAX_STAGED_KEY_BYTES || sodium_init() < 0)
        return NULL;
    entry = sodium_malloc(sizeof(*entry)); /* guarded, locked, wiped by sodium_free */
    if (entry == NULL)
        return NULL;
    memset(entry, 0, sizeof(*entry));
    randombytes_buf(entry->handle, sizeof(entry->handle));
    entry->from_password = from_password;
    entry->number = next_number++;
    entry->enctype = enctype;
    entry->key_bytes = key_bytes;
    memcpy(entry->key, key, key_bytes);
    entry->stock = stock;
    entry->stock_bytes = stock_bytes;
    entry->next = *list;
    *list = entry;
    drop_beyond(list, MAX_STAGED_KEYS);
    return entry;
}

staged_key *staging_find(staged_key *list, const uint8_t *handle)
{
    for (; list != NULL; list = list->next)
        if (memcmp(list->handle, handle, MPC_HANDLE_BYTES) == 0)
            return list;
    return NULL;
}

void staging_remove(staged_key **list, staged_key *entry)
{
    while (*list != entry)
        list = &(*list)->next;
    *list = entry->next;
    if (entry->stock != NULL) {
        sodium_memzero(entry->stock, entry->stock_bytes);
        free(entry->stock);
    }
    sodium_free(entry);
}

void staging_clear(staged_key **list)
{
    while (*list != NULL)
        staging_remove(list, *list);
}

void staging_other_put(staged_key **list)
{
    while (*list != NULL) {
        if (++(*list)->other_puts > MAX_OTHER_PUTS)
            staging_remove(list, *list);
        else
            list = &(*list)->next;
    }
}
