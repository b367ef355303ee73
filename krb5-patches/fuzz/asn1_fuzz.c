/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krb5's decoders of what clients, and KDCs, send, and their inverse: what is decoded is encoded to
 * something that is decoded and encoded to the same.
 */
#include "k5-int.h"
#include "k5-spake.h"
#include "../lib/krb5/asn.1/krbasn1.h"
#include "../lib/krb5/asn.1/asn1_encode.h"

#include "asn1_fuzz.h"

typedef krb5_error_code (*decoder)(const krb5_data *, void **);
typedef krb5_error_code (*encoder)(const void *, krb5_data **);
typedef void (*freer)(krb5_context, void *);

#define OF(type, free_it)                                                               \
    {                                                                                   \
#type, (decoder)decode_krb5_##type, (encoder)encode_krb5_##type, (freer)free_it \
    }

/* Where krb5 frees what it holds, but not itself; and what has other arguments. */
static void
free_cred_enc_part(krb5_context context, void *value)
{
    krb5_free_cred_enc_part(context, value);
    free(value);
}

static void
free_plain(krb5_context context, void *value)
{
    free(value);
}

static void
free_data_alone(krb5_context context, void *value)
{
    krb5_free_data(context, value);
}

static krb5_error_code
decode_setpw_req(const krb5_data *in, void **value)
{
    krb5_data *password;
    krb5_principal who;
    krb5_error_code ret = decode_krb5_setpw_req(in, &password, &who);

    if (ret)
        return ret;
    krb5_free_principal(NULL, who);
    *value = password;
    return 0;
}

static krb5_error_code
decode_safe_with_body(const krb5_data *in, void **value)
{
    krb5_data *body;
    krb5_error_code ret = decode_krb5_safe_with_body(in, (krb5_safe **)value, &body);

    if (ret)
        return ret;
    krb5_free_data(NULL, body);
    return 0;
}

/*
 * A message of our own, of numbers of each width and an alternative inside of a sequence, which of krb5's are
 * in those of modules alone: what reads the descriptions of messages is for all of them. As it should be, and
 * with room for numbers that do not fit.
 */
struct numbers {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    krb5_boolean boolean;
    krb5_pa_spake spake;
    int32_t last;
};
struct wide {
    int64_t i[4];
    uint64_t u[4];
};

IMPORT_TYPE(int32, int32_t);
IMPORT_TYPE(octet, krb5_octet);
IMPORT_TYPE(uint32, uint32_t);
IMPORT_TYPE(boolean, krb5_boolean);
IMPORT_TYPE(pa_spake, krb5_pa_spake);
DEFINTTYPE(fuzz_int8, int8_t);
DEFINTTYPE(fuzz_int16, int16_t);
DEFINTTYPE(fuzz_int64, int64_t);
DEFUINTTYPE(fuzz_uint16, uint16_t);
DEFUINTTYPE(fuzz_uint64, uint64_t);

DEFFIELD(fuzz_0, struct numbers, i8, 0, fuzz_int8);
DEFFIELD(fuzz_1, struct numbers, i16, 1, fuzz_int16);
DEFFIELD(fuzz_2, struct numbers, i32, 2, int32);
DEFFIELD(fuzz_3, struct numbers, i64, 3, fuzz_int64);
DEFFIELD(fuzz_4, struct numbers, u8, 4, octet);
DEFFIELD(fuzz_5, struct numbers, u16, 5, fuzz_uint16);
DEFFIELD(fuzz_6, struct numbers, u32, 6, uint32);
DEFFIELD(fuzz_7, struct numbers, u64, 7, fuzz_uint64);
DEFFIELD(fuzz_8, struct numbers, boolean, 8, boolean);
DEFFIELD(fuzz_9, struct numbers, spake, 9, pa_spake);
DEFFIELD(fuzz_10, struct numbers, last, 10, int32);
static const struct atype_info *numbers_fields[] = {
    &k5_atype_fuzz_0, &k5_atype_fuzz_1, &k5_atype_fuzz_2, &k5_atype_fuzz_3,
    &k5_atype_fuzz_4, &k5_atype_fuzz_5, &k5_atype_fuzz_6, &k5_atype_fuzz_7,
    &k5_atype_fuzz_8, &k5_atype_fuzz_9, &k5_atype_fuzz_10
};
DEFSEQTYPE(fuzz_numbers, struct numbers, numbers_fields);
static MAKE_ENCODER(encode_krb5_fuzz_numbers, fuzz_numbers);
static MAKE_DECODER(decode_krb5_fuzz_numbers, fuzz_numbers);

DEFFIELD(fuzz_wide_0, struct wide, i[0], 0, fuzz_int64);
DEFFIELD(fuzz_wide_1, struct wide, i[1], 1, fuzz_int64);
DEFFIELD(fuzz_wide_2, struct wide, i[2], 2, fuzz_int64);
DEFFIELD(fuzz_wide_3, struct wide, i[3], 3, fuzz_int64);
DEFFIELD(fuzz_wide_4, struct wide, u[0], 4, fuzz_uint64);
DEFFIELD(fuzz_wide_5, struct wide, u[1], 5, fuzz_uint64);
DEFFIELD(fuzz_wide_6, struct wide, u[2], 6, fuzz_uint64);
DEFFIELD(fuzz_wide_7, struct wide, u[3], 7, fuzz_uint64);
static const struct atype_info *wide_fields[] = {
    &k5_atype_fuzz_wide_0, &k5_atype_fuzz_wide_1, &k5_atype_fuzz_wide_2, &k5_atype_fuzz_wide_3,
    &k5_atype_fuzz_wide_4, &k5_atype_fuzz_wide_5, &k5_atype_fuzz_wide_6, &k5_atype_fuzz_wide_7
};
DEFSEQTYPE(fuzz_wide, struct wide, wide_fields);
static MAKE_ENCODER(encode_krb5_fuzz_wide, fuzz_wide);

static void
free_numbers(krb5_context context, void *value)
{
    struct numbers *n = value;
    krb5_pa_spake *spake = malloc(sizeof(*spake)); /* krb5 frees the structure as well */

    if (spake == NULL)
        abort();
    *spake = n->spake;
    k5_free_pa_spake(context, spake);
    free(n);
}

static const struct message {
    const char *name;
    decoder decode;
    encoder encode;
    freer free_it;
} messages[] = {
    OF(as_req, krb5_free_kdc_req),
    OF(tgs_req, krb5_free_kdc_req),
    OF(ap_req, krb5_free_ap_req),
    OF(ticket, krb5_free_ticket),
    OF(enc_tkt_part, krb5_free_enc_tkt_part),
    OF(authenticator, krb5_free_authenticator),
    {"encryption_key", (decoder)decode_krb5_encryption_key, NULL, (freer)krb5_free_keyblock},
    OF(authdata, krb5_free_authdata),
    OF(fast_req, krb5_free_fast_req),
    OF(cammac, k5_free_cammac),
    OF(pa_for_user, krb5_free_pa_for_user),
    OF(pa_s4u_x509_user, krb5_free_pa_s4u_x509_user),
    OF(as_rep, krb5_free_kdc_rep),
    OF(tgs_rep, krb5_free_kdc_rep),
    OF(enc_kdc_rep_part, krb5_free_enc_kdc_rep_part),
    OF(ap_rep, krb5_free_ap_rep),
    OF(ap_rep_enc_part, krb5_free_ap_rep_enc_part),
    OF(kdc_req_body, krb5_free_kdc_req),
    OF(safe, krb5_free_safe),
    OF(priv, krb5_free_priv),
    OF(enc_priv_part, krb5_free_priv_enc_part),
    OF(cred, krb5_free_cred),
    OF(enc_cred_part, free_cred_enc_part),
    OF(error, krb5_free_error),
    OF(padata_sequence, krb5_free_pa_data),
    OF(typed_data, krb5_free_pa_data),
    OF(etype_info, krb5_free_etype_info),
    OF(etype_info2, krb5_free_etype_info),
    OF(pa_enc_ts, krb5_free_pa_enc_ts),
    OF(enc_data, krb5_free_enc_data),
    OF(sam_challenge_2, krb5_free_sam_challenge_2),
    OF(sam_challenge_2_body, krb5_free_sam_challenge_2_body),
    OF(sam_response_2, krb5_free_sam_response_2),
    OF(enc_sam_response_enc_2, krb5_free_enc_sam_response_enc_2),
    OF(ad_kdcissued, krb5_free_ad_kdcissued),
    OF(iakerb_header, krb5_free_iakerb_header),
    OF(iakerb_finished, krb5_free_iakerb_finished),
    OF(fast_response, krb5_free_fast_response),
    OF(pa_fx_fast_request, krb5_free_fast_armored_req),
    OF(pa_fx_fast_reply, krb5_free_enc_data),
    OF(otp_tokeninfo, k5_free_otp_tokeninfo),
    OF(pa_otp_challenge, k5_free_pa_otp_challenge),
    OF(pa_otp_req, k5_free_pa_otp_req),
    OF(pa_otp_enc_req, free_data_alone),
    OF(kkdcp_message, k5_free_kkdcp_message),
    OF(secure_cookie, k5_free_secure_cookie),
    OF(spake_factor, k5_free_spake_factor),
    OF(pa_spake, k5_free_pa_spake),
    OF(pa_pac_options, free_plain),
    OF(checksum, krb5_free_checksum),
    OF(pa_pac_req, krb5_free_pa_pac_req),
    {"setpw_req", decode_setpw_req, NULL, free_data_alone},
    {"safe_with_body", decode_safe_with_body, NULL, (freer)krb5_free_safe},
    OF(fuzz_numbers, free_numbers),
};

size_t
asn1_fuzz_count(void)
{
    return sizeof(messages) / sizeof(*messages);
}

int
asn1_fuzz_find(const char *name)
{
    size_t i;

    for (i = 0; i < asn1_fuzz_count(); i++) {
        if (strcmp(messages[i].name, name) == 0)
            return (int)i;
    }
    return -1;
}

static void
add(asn1_fuzz_seed fn, void *arg, krb5_error_code ret, krb5_data *code)
{
    if (ret)
        abort();
    fn(arg, code->data, code->length);
    krb5_free_data(NULL, code);
}

/* Numbers that are good, and for each the least that is too large. */
void
asn1_fuzz_numbers(asn1_fuzz_seed fn, void *arg)
{
    static const struct wide good = {{INT8_MIN, INT16_MAX, INT32_MIN, INT64_MIN},
                                     {UINT8_MAX, UINT16_MAX, UINT32_MAX, UINT64_MAX}};
    struct numbers n = {INT8_MIN, INT16_MAX, INT32_MIN, INT64_MIN, UINT8_MAX, UINT16_MAX,
                        UINT32_MAX, UINT64_MAX, TRUE, {SPAKE_MSGTYPE_RESPONSE}, 1};
    char key[] = "key";
    struct wide w;
    krb5_data *code;
    krb5_error_code ret;
    int i;

    n.spake.u.response.pubkey = string2data(key);
    n.spake.u.response.factor.ciphertext = string2data(key);
    if (encode_krb5_fuzz_numbers(&n, &code) != 0)
        abort();
    fn(arg, code->data, code->length);
    code->data[code->length - 3] = ASN1_OCTETSTRING; /* the last is no number: all is freed again */
    add(fn, arg, 0, code);
    for (i = 0; i < 3; i++) {
        w = good;
        w.i[i] = w.i[i] < 0 ? w.i[i] - 1 : w.i[i] + 1;
        ret = encode_krb5_fuzz_wide(&w, &code);
        add(fn, arg, ret, code);
        w = good;
        w.u[i]++;
        ret = encode_krb5_fuzz_wide(&w, &code);
        add(fn, arg, ret, code);
    }
}

static void
fail(const struct message *m, const char *what)
{
    fprintf(stderr, "asn1_fuzz: %s: %s\n", m->name, what);
    abort();
}

void
asn1_fuzz_try(const uint8_t *bytes, size_t size)
{
    const struct message *m;
    krb5_data in, *once, *twice;
    void *value, *again;

    if (size < 1)
        return;
    m = &messages[bytes[0] % asn1_fuzz_count()];
    in = make_data((void *)(bytes + 1), size - 1);
    if (m->decode(&in, &value) != 0)
        return;
    if (m->encode != NULL && m->encode(value, &once) == 0) {
        if (m->decode(once, &again) != 0)
            fail(m, "its own encoding is not decoded");
        if (m->encode(again, &twice) != 0 || !data_eq(*once, *twice))
            fail(m, "is encoded in two ways");
        krb5_free_data(NULL, twice);
        m->free_it(NULL, again);
        krb5_free_data(NULL, once);
    }
    m->free_it(NULL, value);
}
