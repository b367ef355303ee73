/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of any contents, and what is encrypted in them as a client who has a TGT can do it. */
#include "kdc_fuzz_parts.h"

#define MOST_BYTES 8192

/*** DER, written behind what comes inside ***/

void
kdc_fuzz_put(struct k5buf *out, unsigned char tag, const void *contents, size_t length)
{
    k5_buf_add_len(out, &tag, 1);
    if (length < 0x80) {
        k5_buf_add_fmt(out, "%c", (int)length);
    } else {
        unsigned char bytes[3] = {0x82, length >> 8, length & 0xff};

        k5_buf_add_len(out, bytes, 3);
    }
    k5_buf_add_len(out, contents, length);
}

void
kdc_fuzz_put_in(struct k5buf *out, unsigned char outer, unsigned char inner, const void *contents,
       size_t length)
{
    struct k5buf one;

    k5_buf_init_dynamic(&one);
    kdc_fuzz_put(&one, inner, contents, length);
    kdc_fuzz_put(out, outer, one.data, one.len);
    k5_buf_free(&one);
}

krb5_data
kdc_fuzz_whole_request(unsigned char type, const struct k5buf *padata, const krb5_data *body)
{
    static const unsigned char five = 5;
    struct k5buf inside, whole;

    k5_buf_init_dynamic(&inside);
    kdc_fuzz_put_in(&inside, 0xa1, 0x02, &five, 1);
    kdc_fuzz_put_in(&inside, 0xa2, 0x02, &type, 1);
    kdc_fuzz_put_in(&inside, 0xa3, 0x30, padata->data, padata->len);
    kdc_fuzz_put(&inside, 0xa4, body->data, body->length);
    k5_buf_init_dynamic(&whole);
    kdc_fuzz_put_in(&whole, 0x60 | type, 0x30, inside.data, inside.len);
    k5_buf_free(&inside);
    return make_data(whole.data, whole.len);
}

void
kdc_fuzz_ask_with(unsigned char type, const struct k5buf *padata, const krb5_data *body, int is_tcp)
{
    krb5_data request = kdc_fuzz_whole_request(type, padata, body);

    krb5_free_data(NULL, kdc_fuzz_ask(&request, is_tcp));
    kdc_fuzz_forget(&request);
    free(request.data);
}

void
kdc_fuzz_put_padata(struct k5buf *out, int type, const krb5_data *value)
{
    unsigned char number[2] = {type >> 8, type & 0xff};
    struct k5buf one;

    k5_buf_init_dynamic(&one);
    kdc_fuzz_put_in(&one, 0xa1, 0x02, number, 2);
    kdc_fuzz_put_in(&one, 0xa2, 0x04, value->data, value->length);
    kdc_fuzz_put(out, 0x30, one.data, one.len);
    k5_buf_free(&one);
}

/*** As who has a TGT ***/

enum kdc_fuzz_ap kdc_fuzz_ap_kind;

/* The checksum of a TGS-REQ's body, or what the kind says. Nonzero: that key cannot. */
static krb5_error_code
checksum(const krb5_keyblock *key, const krb5_data *body, krb5_checksum *sum)
{
    krb5_data other = string2data("other");

    return krb5_c_make_checksum(world.client,
                                kdc_fuzz_ap_kind == AP_UNKEYED ? CKSUMTYPE_NIST_SHA : 0, key,
                                KRB5_KEYUSAGE_TGS_REQ_AUTH_CKSUM,
                                kdc_fuzz_ap_kind == AP_OF_OTHER ? &other : body, sum);
}

/* In an authenticator: only as armor. */
static krb5_authdata **
armor_only(void)
{
    static krb5_authdata element = {KV5M_AUTHDATA, KRB5_AUTHDATA_FX_ARMOR, 0, NULL};
    static krb5_authdata *list[] = {&element, NULL};

    return kdc_fuzz_ap_kind == AP_FOR_ARMOR ? list : NULL;
}

krb5_data *
kdc_fuzz_ap_req(krb5_ticket *ticket, const krb5_keyblock *key, krb5_principal who,
                krb5_keyblock *subkey, const krb5_data *body, krb5_keyusage usage)
{
    krb5_authenticator authent;
    krb5_checksum sum;
    krb5_data *plain, *out;
    krb5_ap_req req;

    memset(&authent, 0, sizeof(authent));
    memset(&sum, 0, sizeof(sum));
    memset(&req, 0, sizeof(req));
    authent.client = who;
    authent.ctime = NOW;
    authent.subkey = subkey;
    authent.authorization_data = armor_only();
    if (body != NULL && kdc_fuzz_ap_kind != AP_NO_CHECKSUM) {
        if (checksum(key, body, &sum) != 0)
            return NULL;
        authent.checksum = &sum;
    }
    need(encode_krb5_authenticator(&authent, &plain), "authenticator");
    req.ticket = ticket;
    if (kdc_fuzz_ap_kind == AP_MUTUAL)
        req.ap_options = AP_OPTS_MUTUAL_REQUIRED;
    if (krb5_encrypt_helper(world.client, key, usage, plain, &req.authenticator) != 0)
        out = NULL;
    else
        need(encode_krb5_ap_req(&req, &out), "AP-REQ");
    krb5_free_data(world.client, plain);
    krb5_free_checksum_contents(world.client, &sum);
    free(req.authenticator.ciphertext.data);
    return out;
}

/* What may be wrong with armor: the second part of a first byte (try_fast()). */
enum {
    ARMOR_GOOD,
    ARMOR_GOOD_TOO, /* what seeds say: not 0 */
    ARMOR_NO_SUBKEY,
    ARMOR_OTHER_SERVER,
    ARMOR_UNKNOWN_TYPE,
    ARMOR_NONE,
    ARMOR_WRONG_SUM,
    ARMOR_UNKEYED_SUM,
    ARMOR_NO_AP_REQ
};
static int armor_kind;

krb5_data *
kdc_fuzz_fast(const krb5_data *inner, const krb5_data *ap, const krb5_keyblock *subkey,
              const krb5_keyblock *session, const krb5_data *sum_over)
{
    krb5_keyblock *key;
    krb5_fast_armored_req req;
    krb5_fast_armor armor;
    krb5_data *value = NULL, other = string2data("other");

    if (krb5_c_fx_cf2_simple(world.client, subkey, "subkeyarmor", session, "ticketarmor", &key))
        return NULL;
    if (armor_kind == ARMOR_WRONG_SUM)
        sum_over = &other;
    else if (armor_kind == ARMOR_NO_AP_REQ)
        ap = &other;
    else if (armor_kind == ARMOR_NONE)
        ap = NULL;
    memset(&req, 0, sizeof(req));
    if (ap != NULL) {
        armor.armor_type = KRB5_FAST_ARMOR_AP_REQUEST + (armor_kind == ARMOR_UNKNOWN_TYPE);
        armor.armor_value = *ap;
        req.armor = &armor;
    }
    need(krb5_c_make_checksum(world.client,
                              armor_kind == ARMOR_UNKEYED_SUM ? CKSUMTYPE_NIST_SHA : 0, key,
                              KRB5_KEYUSAGE_FAST_REQ_CHKSUM, sum_over, &req.req_checksum),
         "checksum");
    need(krb5_encrypt_helper(world.client, key, KRB5_KEYUSAGE_FAST_ENC, inner, &req.enc_part),
         "FAST request");
    need(encode_krb5_pa_fx_fast_request(&req, &value), "FAST request");
    free(req.enc_part.ciphertext.data);
    krb5_free_checksum_contents(world.client, &req.req_checksum);
    krb5_free_keyblock(world.client, key);
    return value;
}

/* The TGS-REQ for body; more: further PA-DATAs. */
static void
ask_tgs(krb5_ticket *ticket, const krb5_keyblock *key, krb5_principal who, const krb5_data *more,
        const krb5_data *body)
{
    krb5_data *ap = kdc_fuzz_ap_req(ticket, key, who, NULL, body, KRB5_KEYUSAGE_TGS_REQ_AUTH);
    struct k5buf padata;

    if (ap == NULL)
        return;
    k5_buf_init_dynamic(&padata);
    kdc_fuzz_put_padata(&padata, KRB5_PADATA_AP_REQ, ap);
    if (more != NULL)
        k5_buf_add_len(&padata, more->data, more->length);
    kdc_fuzz_ask_with(KRB5_TGS_REQ, &padata, body, 1);
    k5_buf_free(&padata);
    krb5_free_data(world.client, ap);
}

/* length of the PA-DATAs (2) | PA-DATAs | KDC-REQ-BODY */
static void
try_body(const krb5_data *in)
{
    krb5_data more, body;
    unsigned int length;

    if (in->length < 2)
        return;
    length = load_16_be(in->data);
    if (length > in->length - 2)
        length = in->length - 2;
    more = make_data(in->data + 2, length);
    body = make_data(in->data + 2 + length, in->length - 2 - length);
    ask_tgs(world.tgt_ticket, world.session, world.tgt.client, &more, &body);
}

/* EncTicketPart: what a KDC that had krbtgt's key would have written. */
static void
try_ticket(const krb5_data *in)
{
    krb5_enc_tkt_part *part = NULL;
    krb5_ticket ticket = *world.tgt_ticket;
    krb5_principal who = world.tgt.client;
    const krb5_keyblock *key = world.session;

    if (decode_krb5_enc_tkt_part(in, &part) == 0) {
        if (part->client != NULL)
            who = part->client;
        if (part->session != NULL && krb5_c_valid_enctype(part->session->enctype))
            key = part->session;
    }
    memset(&ticket.enc_part, 0, sizeof(ticket.enc_part));
    if (krb5_encrypt_helper(world.client, &world.krbtgt_key, KRB5_KEYUSAGE_KDC_REP_TICKET, in,
                            &ticket.enc_part) == 0)
        ask_tgs(&ticket, key, who, NULL, &world.sample_body);
    free(ticket.enc_part.ciphertext.data);
    krb5_free_enc_tkt_part(world.client, part);
}

/* KrbFastReq, in an AS-REQ whose armor is the TGT, or nearly. */
static void
try_fast(const krb5_data *in, int kind)
{
    krb5_keyblock *subkey;
    krb5_data *ap, *value;
    krb5_ticket ticket = *world.tgt_ticket;
    struct k5buf padata;

    armor_kind = kind % KDC_FUZZ_ARMORS;
    if (armor_kind == ARMOR_OTHER_SERVER)
        ticket = *kdc_fuzz_service_ticket();
    need(krb5_copy_keyblock(world.client, world.session, &subkey), "subkey");
    ap = kdc_fuzz_ap_req(&ticket, world.session, world.tgt.client,
                         armor_kind == ARMOR_NO_SUBKEY ? NULL : subkey, NULL,
                         KRB5_KEYUSAGE_AP_REQ_AUTH);
    value = kdc_fuzz_fast(in, ap, subkey, world.session, &world.sample_body);
    k5_buf_init_dynamic(&padata);
    kdc_fuzz_put_padata(&padata, KRB5_PADATA_FX_FAST, value);
    kdc_fuzz_ask_with(KRB5_AS_REQ, &padata, &world.sample_body, 0);
    armor_kind = ARMOR_GOOD;
    k5_buf_free(&padata);
    krb5_free_data(world.client, value);
    krb5_free_keyblock(world.client, subkey);
    krb5_free_data(world.client, ap);
}

/* What was on the stack is overwritten: the leak sanitizer takes what lies there, below its own frames too, for
 * pointers that somebody still has. */
static void __attribute__((noinline))
wipe_stack(void)
{
    volatile char bytes[32768];
    size_t i;

    for (i = 0; i < sizeof(bytes); i += sizeof(long))
        *(volatile long *)(bytes + i) = 0;
}

void
kdc_fuzz_try(const uint8_t *bytes, size_t size)
{
    krb5_data in;
    int kind, more;

    if (size < 1 || size > MOST_BYTES)
        return;
    kind = bytes[0] % KDC_FUZZ_KINDS;
    more = bytes[0] / KDC_FUZZ_KINDS;
    /* A copy of its very size: so that who reads past its end is seen. */
    need(alloc_data(&in, size - 1), "memory");
    memcpy(in.data, bytes + 1, size - 1);
    switch (kind) {
        case KDC_FUZZ_UDP:
        case KDC_FUZZ_TCP:
            krb5_free_data(NULL, kdc_fuzz_ask(&in, kind == KDC_FUZZ_TCP));
            if (more > 2)
                kdc_fuzz_address_type = 99;
            if (more > 1) /* sent again, in the end from nobody knows where */
                krb5_free_data(NULL, kdc_fuzz_ask(&in, kind == KDC_FUZZ_TCP));
            kdc_fuzz_address_type = ADDRTYPE_INET;
            kdc_fuzz_forget(&in);
            break;
        case KDC_FUZZ_BODY:
            try_body(&in);
            break;
        case KDC_FUZZ_TICKET:
            try_ticket(&in);
            break;
        case KDC_FUZZ_FAST:
            try_fast(&in, more);
            break;
        case KDC_FUZZ_TGS:
            kdc_fuzz_compose(&in);
            break;
    }
    kdc_fuzz_forget_errors();
    free(in.data);
    wipe_stack();
}

