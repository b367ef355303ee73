/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of kdc_fuzz.h share. */
#ifndef KRB5_PATCHES_FUZZ_KDC_FUZZ_PARTS_H_
#define KRB5_PATCHES_FUZZ_KDC_FUZZ_PARTS_H_

#include "k5-int.h"
#include "k5-int-pkinit.h"
#include "kdc_fuzz.h"
#include <kdb.h>
#include <verto.h>

#define NOW 1800000000
#define REALM "FUZZ.TEST"

/* Of a client, as which requests are made. */
extern struct kdc_fuzz_world {
    krb5_context client;
    krb5_creds tgt;        /* of alice */
    krb5_keyblock *session; /* of it */
    krb5_ticket *tgt_ticket;
    krb5_keyblock krbtgt_key;
    krb5_data sample_body; /* KDC-REQ-BODY of a request for a service */
} world;

/* kdc_fuzz.c: the KDC */

void kdc_fuzz_need(krb5_error_code code, const char *what);
#define need kdc_fuzz_need
/* What the KDC answers; for krb5_free_data(). */
krb5_data *kdc_fuzz_ask(const krb5_data *request, int is_tcp);
/* The request in progress comes once more, and is dropped; or another, which is too if there is no place. */
void kdc_fuzz_ask_meanwhile(krb5_boolean another);
/* In which the KDC runs. */
verto_ctx *kdc_fuzz_loop(void);
/* Whether anonymous clients get a TGT and nothing else. */
void kdc_fuzz_restrict_anonymous(krb5_boolean only_tgt);
/* Whence requests come until it is changed back: an ADDRTYPE_. */
extern int kdc_fuzz_address_type;
/* The KDC has never seen this request. */
void kdc_fuzz_forget(const krb5_data *request);
void kdc_fuzz_forget_errors(void);
/* The newest key of a principal. */
void kdc_fuzz_key(const char *name, krb5_keyblock *key);

/* kdc_fuzz_request.c: requests of any contents */

/* How AP-REQs are made until it is changed back. */
enum kdc_fuzz_ap {
    AP_GOOD,
    AP_UNKEYED,     /* a checksum that anybody can make */
    AP_NO_CHECKSUM,
    AP_OF_OTHER,    /* a checksum of something else */
    AP_MUTUAL,      /* asks for an answer of its own */
    AP_FOR_ARMOR,   /* says that it is for armor alone */
    AP_KINDS
};
extern enum kdc_fuzz_ap kdc_fuzz_ap_kind;

/* DER, written behind what comes inside. */
void kdc_fuzz_put(struct k5buf *out, unsigned char tag, const void *contents, size_t length);
void kdc_fuzz_put_in(struct k5buf *out, unsigned char outer, unsigned char inner,
                     const void *contents, size_t length);
void kdc_fuzz_put_padata(struct k5buf *out, int type, const krb5_data *value);
/* An AP-REQ with this ticket and key; with a subkey if there is one, with a checksum of body if
 * there is. NULL: that key cannot. */
krb5_data *kdc_fuzz_ap_req(krb5_ticket *ticket, const krb5_keyblock *key, krb5_principal who,
                           krb5_keyblock *subkey, const krb5_data *body, krb5_keyusage usage);
/* PA-FX-FAST of this KrbFastReq; ap: the armor, or NULL where it is the request's own AP-REQ. */
krb5_data *kdc_fuzz_fast(const krb5_data *inner, const krb5_data *ap, const krb5_keyblock *subkey,
                         const krb5_keyblock *session, const krb5_data *sum_over);
/* AS-REQ or TGS-REQ with these PA-DATAs and this body, which may be any bytes; its data is the
 * caller's. */
krb5_data kdc_fuzz_whole_request(unsigned char type, const struct k5buf *padata,
                                 const krb5_data *body);
/* The same, asked; its answer is thrown away. */
void kdc_fuzz_ask_with(unsigned char type, const struct k5buf *padata, const krb5_data *body,
                       int is_tcp);

/* kdc_fuzz_preauth.c: a mechanism of our own, in the KDC */

#define KDC_FUZZ_PREAUTH 200
#define KDC_FUZZ_PREAUTH_TYPED 201
#define KDC_FUZZ_PREAUTH_REQUIRED 202 /* does not replace the key; its failure is final */
#define KDC_FUZZ_PREAUTH_SUFFICIENT 203
void kdc_fuzz_register_preauth(krb5_context context);
typedef void (*kdc_fuzz_message)(const krb5_data *request);
void kdc_fuzz_preauth_seeds(kdc_fuzz_message add);

/* kdc_fuzz_compose.c: a TGS-REQ that is put together (KDC_FUZZ_TGS) */

void kdc_fuzz_compose_start(void);
/* Of alice, for a host, with world.session. */
const krb5_ticket *kdc_fuzz_service_ticket(void);
void kdc_fuzz_compose(const krb5_data *in);
typedef void (*kdc_fuzz_composed)(const void *knobs, size_t size, const krb5_data *body);
void kdc_fuzz_compose_seeds(kdc_fuzz_composed add);

/* kdc_fuzz_remote.c: keys that others hold */

/* Its functions may from now on give out references. */
void kdc_fuzz_remote_start(kdb_vftabl *table);

/* kdc_fuzz_seeds.c */

/* alice logs in, and world is filled. */
void kdc_fuzz_log_in_alice(void);

#endif /* KRB5_PATCHES_FUZZ_KDC_FUZZ_PARTS_H_ */
