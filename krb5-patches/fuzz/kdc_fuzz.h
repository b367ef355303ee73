/* SPDX-License-Identifier: Apache-2.0 */
/* krb5kdc in this process (kdc_fuzz.c), and requests into it (kdc_fuzz_*.c). */
#ifndef KRB5_PATCHES_FUZZ_KDC_FUZZ_H_
#define KRB5_PATCHES_FUZZ_KDC_FUZZ_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first byte of an input, modulo their number: what the rest is. Divided by it, where it is more than
 * one: a message that is sent twice, or what is wrong with the armor. */
enum kdc_fuzz_kind {
    KDC_FUZZ_UDP,    /* a datagram */
    KDC_FUZZ_TCP,    /* a request by stream */
    KDC_FUZZ_BODY,   /* length (2) | PA-DATAs | KDC-REQ-BODY: of a TGS-REQ with a good ticket */
    KDC_FUZZ_TICKET, /* EncTicketPart: of the ticket of a TGS-REQ */
    KDC_FUZZ_FAST,   /* KrbFastReq: of an AS-REQ with good armor */
    KDC_FUZZ_TGS,    /* what kdc_fuzz_compose.c puts together: whose tickets, what they say */
    KDC_FUZZ_KINDS
};

#define KDC_FUZZ_ARMORS 9 /* what may be wrong with it: kdc_fuzz_request.c */

/* Makes a realm with the programs below tools (an installation), and starts its KDC. */
void kdc_fuzz_start(const char *tools);

/* The KDC answers once, or not at all, and lives. */
void kdc_fuzz_try(const uint8_t *bytes, size_t size);

typedef void (*kdc_fuzz_seed)(void *arg, const void *bytes, size_t size);
void kdc_fuzz_seeds(kdc_fuzz_seed fn, void *arg);

/* The same with keys that others hold (kdc_fuzz_remote.c): how they answer, and a request. */
void kdc_fuzz_remote_try(const uint8_t *bytes, size_t size);
void kdc_fuzz_remote_seeds(kdc_fuzz_seed fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif /* KRB5_PATCHES_FUZZ_KDC_FUZZ_H_ */
