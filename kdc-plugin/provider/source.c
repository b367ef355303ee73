/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/source.h"

#include <pthread.h>
#include <sodium.h>
#include <string.h>

#include "kdc-plugin/provider/armored.h"

enum { IPV4_BYTES = 4, IPV6_BYTES = 16, IPV6_PREFIX_BYTES = 8 };

/* What is hashed begins with one of these. */
enum { KIND_IPV4 = '4', KIND_IPV6 = '6', KIND_ARMOR = 'A', KIND_ARMORED = 'R' };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char key[crypto_shorthash_KEYBYTES];
static int has_key;

void source_use_master_key(const krb5_keyblock *master_key)
{
    static const unsigned char label[] = "mpc-kdc source v1";

    pthread_mutex_lock(&lock);
    if (!has_key && master_key != NULL && master_key->length >= crypto_generichash_KEYBYTES_MIN &&
        master_key->length <= crypto_generichash_KEYBYTES_MAX)
        has_key = crypto_generichash(key, sizeof(key), label, sizeof(label), master_key->contents,
                                     master_key->length) == 0;
    pthread_mutex_unlock(&lock);
}

static uint64_t hash(unsigned char kind, const void *data, size_t size)
{
    unsigned char input[1 + 256], digest[crypto_shorthash_BYTES];
    uint64_t id = 0;
    size_t i;

    if (size > sizeof(input) - 1)
        size = sizeof(input) - 1;
    input[0] = kind;
    memcpy(input + 1, data, size);
    crypto_shorthash(digest, input, 1 + size, key);
    for (i = 0; i < sizeof(id); i++)
        id = id << 8 | digest[i];
    return id != 0 ? id : 1;
}

/* A network of IPv6 is one customer, who has as many addresses as he likes. */
static uint64_t hash_address(const krb5_address *address)
{
    static const unsigned char mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const unsigned char *bytes = address->contents;

    if (address->addrtype == ADDRTYPE_INET && address->length == IPV4_BYTES)
        return hash(KIND_IPV4, bytes, IPV4_BYTES);
    if (address->addrtype != ADDRTYPE_INET6 || address->length != IPV6_BYTES)
        return 0;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0)
        return hash(KIND_IPV4, bytes + sizeof(mapped), IPV4_BYTES);
    return hash(KIND_IPV6, bytes, IPV6_PREFIX_BYTES);
}

/* A host is the same wherever it is. A copy of its request counts as sent from where it came. */
static void look_under_armor(const krb5_remote_key_source *from, request_source *source)
{
    const uint64_t host = hash(KIND_ARMOR, from->armor, strlen(from->armor));
    const uint64_t request = hash(KIND_ARMORED, from->armored, sizeof(from->armored));
    const armored_copy copy = armored_see(host, request, source->id, from->is_stream);

    source->under_armor = 1;
    if (copy == ARMORED_COPIED)
        return;
    source->id = host;
    source->proved = copy == ARMORED_PROVED;
}

void source_of_request(request_source *source)
{
    krb5_remote_key_source from;

    if (source->under_armor || !krb5_c_remote_key_host()->request_source(&from))
        return;
    pthread_mutex_lock(&lock);
    if (has_key) {
        source->id = hash_address(from.address);
        source->proved = source->id != 0 && from.is_stream;
        if (from.armor != NULL)
            look_under_armor(&from, source);
    }
    pthread_mutex_unlock(&lock);
}
