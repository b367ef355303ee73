/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krb5's decoders of what clients, and KDCs, send, and their inverse: what is decoded is encoded to
 * something that is decoded and encoded to the same.
 */
#include "k5-int.h"
#include "k5-spake.h"

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
    {"pa_pac_req", (decoder)decode_krb5_pa_pac_req, NULL, (freer)krb5_free_pa_pac_req},
    {"setpw_req", decode_setpw_req, NULL, free_data_alone},
    {"safe_with_body", decode_safe_with_body, NULL, (freer)krb5_free_safe},
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
