/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KRB5_PATCHES_FUZZ_ASN1_FUZZ_H_
#define KRB5_PATCHES_FUZZ_ASN1_FUZZ_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first byte of an input, modulo this: which message the rest is. */
size_t asn1_fuzz_count(void);
/* Which that is whose decoder has this name, or -1. */
int asn1_fuzz_find(const char *name);
void asn1_fuzz_try(const uint8_t *bytes, size_t size);
/* Seeds of the message of numbers, fuzz_numbers, without that byte. */
typedef void (*asn1_fuzz_seed)(void *arg, const void *bytes, size_t size);
void asn1_fuzz_numbers(asn1_fuzz_seed fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* KRB5_PATCHES_FUZZ_ASN1_FUZZ_H_ */
