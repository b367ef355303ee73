/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/source.h"

#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "kdc-plugin/provider/armored.h"

enum { IPV4_BYTES = 4, IPV6_BYTES = 16, IPV6_PREFIX_BYTES = 8 };

/* What is hashed begins with one of these. */
enum { KIND_IPV4 = '4', KIND_IPV6 = '6', KIND_ARMOR = 'A', KIND_ARMORED = 'R' };

/* Of each realm in its context, so that two realms' servers cannot tell that they serve the same
 * hosts. */
typedef struct source_key {
    struct source_key *next;
    krb5_context context;
    unsigned char key[crypto_shorthash_KEYBYTES];
} source_key;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static source_key *keys;

/* With the lock: the place of the context's key, or of the next one. */
static source_key **find_key(krb5_context context)
{
    source_key **place = &keys;

    while (*place != NULL && (*place)->context != context)
        place = &(*place)->next;
    return place;
}

static void add_key(source_key **place, krb5_context context, const krb5_keyblock *master_key)
{
    static const unsigned char label[] = "mpc-kdc source v1";
    source_key *fresh = calloc(1, sizeof(*fresh));

    if (fresh == NULL ||
        crypto_generichash(fresh->key, sizeof(fresh->key), label, sizeof(label),
                           master_key->contents, master_key->length) != 0) {
        free(fresh);
        return;
    }
    fresh->context = context;
    *place = fresh;
}

void source_use_master_key(krb5_context context, const krb5_keyblock *master_key)
{
    source_key **place;

    if (master_key == NULL || master_key->length < crypto_generichash_KEYBYTES_MIN ||
        master_key->length > crypto_generichash_KEYBYTES_MAX)
        return;
    pthread_mutex_lock(&lock);
    place = find_key(context);
    if (*place == NULL)
        add_key(place, context, master_key);
    pthread_mutex_unlock(&lock);
}

void source_forget(krb5_context context)
{
    source_key **place, *found;

    pthread_mutex_lock(&lock);
    place = find_key(context);
    found = *place;
    if (found != NULL)
        *place = found->next;
    pthread_mutex_unlock(&lock);
    if (found != NULL)
        sodium_memzero(found, sizeof(*found));
    free(found);
}

static uint64_t hash(const source_key *key, unsigned char kind, const void *data, size_t size)
{
    unsigned char input[1 + 256], digest[crypto_shorthash_BYTES];
    uint64_t id = 0;
    size_t i;

    if (size > sizeof(input) - 1)
        size = sizeof(input) - 1;
    input[0] = kind;
    memcpy(input + 1, data, size);
    crypto_shorthash(digest, input, 1 + size, key->key);
    for (i = 0; i < sizeof(id); i++)
        id = id << 8 | digest[i];
    return id != 0 ? id : 1;
}

/* A network of IPv6 is one customer, who has as many addresses as he likes. */
static uint64_t hash_address(const source_key *key, const krb5_address *address)
{
    static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const unsigned char *bytes = address->contents;

    if (address->addrtype == ADDRTYPE_INET && address->length == IPV4_BYTES)
        return hash(key, KIND_IPV4, bytes, IPV4_BYTES);
    if (address->addrtype != ADDRTYPE_INET6 || address->length != IPV6_BYTES)
        return 0;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return hash(key, KIND_IPV4, bytes + sizeof(mapped), IPV4_BYTES);
    return hash(key, KIND_IPV6, bytes, IPV6_PREFIX_BYTES);
}

/* A host is the same wherever it is. A copy of its request counts as sent from where it came. */
static void look_under_armor(const source_key *key, const krb5_remote_key_source *from,
                             request_source *source)
{
    const uint64_t host = hash(key, KIND_ARMOR, from->armor, strlen(from->armor));
    const uint64_t request = hash(key, KIND_ARMORED, from->armored, sizeof(from->armored));
    const armored_copy copy = armored_see(host, request, source->id, from->is_stream);

    source->under_armor = 1;
    if (copy == ARMORED_COPIED)
        return;
    source->id = host;
    source->proved = copy == ARMORED_PROVED;
}

void source_of_request(krb5_context context, request_source *source)
{
    krb5_remote_key_source from;
    const source_key *key;

    if (source->under_armor || !krb5_c_remote_key_host()->request_source(&from))
        return;
    pthread_mutex_lock(&lock);
    key = *find_key(context);
    if (key != NULL) {
        source->id = hash_address(key, from.address);
        source->proved = source->id != 0 && from.is_stream;
        if (from.armor != NULL)
            look_under_armor(key, &from, source);
    }
    pthread_mutex_unlock(&lock);
}
