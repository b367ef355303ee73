/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krb5's decoders of what clients send, and their inverse: what is decoded is encoded to something
 * that is decoded and encoded to the same.
 */
#include "k5-int.h"

#include "asn1_fuzz.h"

typedef krb5_error_code (*decoder)(const krb5_data *, void **);
typedef krb5_error_code (*encoder)(const void *, krb5_data **);
typedef void (*freer)(krb5_context, void *);

#define OF(type, free_it)                                                               \
    {                                                                                   \
#type, (decoder)decode_krb5_##type, (encoder)encode_krb5_##type, (freer)free_it \
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
};

size_t
asn1_fuzz_count(void)
{
    return sizeof(messages) / sizeof(*messages);
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
