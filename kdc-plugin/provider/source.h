/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a request came from, as the MPC servers are told: enough to tell one asker from another, and
 * not an address. The hash has a key that all KDCs of a realm have and the servers do not.
 */
#ifndef KDC_PLUGIN_PROVIDER_SOURCE_H_
#define KDC_PLUGIN_PROVIDER_SOURCE_H_

#include <krb5/remote_key_plugin.h>
#include <stdint.h>

/* Makes the key of the context's realm from its master key; the first one counts. Without it no
 * source is known. */
void source_use_master_key(krb5_context context, const krb5_keyblock *master_key);

/* The context's database was closed. */
void source_forget(krb5_context context);

/* All zero: not asked for yet. */
typedef struct request_source {
    uint64_t id; /* 0: not known */
    int proved;
    int under_armor; /* and so final: a request is looked at once, see armored.h */
} request_source;

/* Fills in *source, which belongs to the request being processed, for the context's realm. */
void source_of_request(krb5_context context, request_source *source);

#endif /* KDC_PLUGIN_PROVIDER_SOURCE_H_ */
