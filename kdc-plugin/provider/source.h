/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request came from, as the MPC servers are told: enough to tell one asker from another, and
 * not an address. The hash has a key that all KDCs of a realm have and the servers do not.
 */
#ifndef KDC_PLUGIN_PROVIDER_SOURCE_H_
#define KDC_PLUGIN_PROVIDER_SOURCE_H_

#include <krb5/remote_key_plugin.h>
#include <stdint.h>

/* Makes the key from the realm's master key. Without it no source is known. */
void source_use_master_key(const krb5_keyblock *master_key);

/* All zero: not asked for yet. */
typedef struct request_source {
    uint64_t id; /* 0: not known */
    int proved;
    int under_armor; /* and so final: a request is looked at once, see armored.h */
} request_source;

/* Fills in *source, which belongs to the request being processed. */
void source_of_request(request_source *source);

#endif /* KDC_PLUGIN_PROVIDER_SOURCE_H_ */
