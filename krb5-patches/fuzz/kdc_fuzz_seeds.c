/* SPDX-License-Identifier: Apache-2.0 */
/* Seeds: what MIT's own client sends, and what lies inside of encryption. */
#include "kdc_fuzz_parts.h"

static kdc_fuzz_seed seed_fn;
static void *seed_arg;

static void
add_kind(int kind, int more, const void *prefix, size_t prefix_length, const krb5_data *data)
{
    struct k5buf buf;

    if (seed_fn == NULL)
        return;
    k5_buf_init_dynamic(&buf);
    k5_buf_add_fmt(&buf, "%c", kind + more * KDC_FUZZ_KINDS);
    k5_buf_add_len(&buf, prefix, prefix_length);
    k5_buf_add_len(&buf, data->data, data->length);
    seed_fn(seed_arg, buf.data, buf.len);
    k5_buf_free(&buf);
}

static void
add_seed(int kind, const void *prefix, size_t prefix_length, const krb5_data *data)
{
    add_kind(kind, 1, prefix, prefix_length, data); /* not 0 */
}

/* Asks the KDC; the answer's contents are the caller's. */
static krb5_data
exchange(const krb5_data *request)
{
    krb5_data *reply = kdc_fuzz_ask(request, 1), out = empty_data();

    add_seed(KDC_FUZZ_UDP, NULL, 0, request);
    add_kind(KDC_FUZZ_UDP, 2, NULL, 0, request);
    if (reply != NULL)
        need(krb5int_copy_data_contents(world.client, reply, &out), "memory");
    krb5_free_data(NULL, reply);
    return out;
}

/* start: of the ticket, from now. */
static krb5_error_code
log_in_later(const char *name, const char *password, const char *service, krb5_deltat start,
             krb5_get_init_creds_opt *opt, krb5_creds *creds)
{
    krb5_data reply = empty_data(), request, realm;
    krb5_init_creds_context step;
    unsigned int flags = KRB5_INIT_CREDS_STEP_FLAG_CONTINUE;
    krb5_error_code ret;
    krb5_principal princ;

    need(krb5_parse_name(world.client, name, &princ), name);
    need(krb5_init_creds_init(world.client, princ, NULL, NULL, start, opt, &step), "init_creds");
    need(krb5_init_creds_set_password(world.client, step, password), "password");
    if (service != NULL)
        need(krb5_init_creds_set_service(world.client, step, service), "service");
    do {
        ret = krb5_init_creds_step(world.client, step, &reply, &request, &realm, &flags);
        krb5_free_data_contents(world.client, &reply);
        reply = empty_data();
        if (ret == 0 && (flags & KRB5_INIT_CREDS_STEP_FLAG_CONTINUE))
            reply = exchange(&request);
        if (ret == 0) {
            krb5_free_data_contents(world.client, &request);
            krb5_free_data_contents(world.client, &realm);
        }
    } while (ret == 0 && (flags & KRB5_INIT_CREDS_STEP_FLAG_CONTINUE));
    krb5_free_data_contents(world.client, &reply);
    if (ret == 0 && creds != NULL)
        ret = krb5_init_creds_get_creds(world.client, step, creds);
    krb5_init_creds_free(world.client, step);
    krb5_free_principal(world.client, princ);
    return ret;
}

static krb5_error_code
log_in(const char *name, const char *password, const char *service, krb5_get_init_creds_opt *opt,
       krb5_creds *creds)
{
    return log_in_later(name, password, service, 0, opt, creds);
}

static void
get_ticket(krb5_ccache cache, const char *service, krb5_flags options)
{
    krb5_data reply = empty_data(), request, realm;
    unsigned int flags = 0;
    krb5_error_code ret;
    krb5_tkt_creds_context step;
    krb5_creds in;

    memset(&in, 0, sizeof(in));
    in.client = world.tgt.client;
    need(krb5_parse_name(world.client, service, &in.server), service);
    need(krb5_tkt_creds_init(world.client, cache, &in, options, &step), "tkt_creds");
    do {
        ret = krb5_tkt_creds_step(world.client, step, &reply, &request, &realm, &flags);
        krb5_free_data_contents(world.client, &reply);
        reply = empty_data();
        if (ret == 0 && (flags & KRB5_TKT_CREDS_STEP_FLAG_CONTINUE))
            reply = exchange(&request);
        if (ret == 0) {
            krb5_free_data_contents(world.client, &request);
            krb5_free_data_contents(world.client, &realm);
        }
    } while (ret == 0 && (flags & KRB5_TKT_CREDS_STEP_FLAG_CONTINUE));
    krb5_free_data_contents(world.client, &reply);
    krb5_tkt_creds_free(world.client, step);
    krb5_free_principal(world.client, in.server);
}

/* The body of a request for host/h.fuzz.test, and what is inside of encryption as seeds of its
 * kind. */
static void
inner_seeds(void)
{
    krb5_principal server;
    krb5_enctype types[] = {ENCTYPE_AES256_CTS_HMAC_SHA1_96, ENCTYPE_AES256_GCM};
    krb5_fast_req fast;
    krb5_kdc_req req;
    krb5_data *out;
    int more;

    memset(&req, 0, sizeof(req));
    need(krb5_parse_name(world.client, "host/h.fuzz.test", &server), "host");
    req.msg_type = KRB5_TGS_REQ;
    req.kdc_options = KDC_OPT_FORWARDABLE | KDC_OPT_CANONICALIZE;
    req.client = world.tgt.client;
    req.server = server;
    req.till = NOW + 3600;
    req.nonce = 1;
    req.nktypes = 2;
    req.ktype = types;
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    world.sample_body = *out;
    free(out);
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, &world.sample_body);
    req.kdc_options |= KDC_OPT_RENEW | KDC_OPT_PROXY | KDC_OPT_FORWARDED;
    req.second_ticket = (krb5_ticket *[]){world.tgt_ticket, NULL};
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, out);
    krb5_free_data(world.client, out);
    req.kdc_options = KDC_OPT_ENC_TKT_IN_SKEY | KDC_OPT_CNAME_IN_ADDL_TKT;
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, out);
    krb5_free_data(world.client, out);
    req.server = NULL; /* its realm is that ticket's */
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, out);
    krb5_free_data(world.client, out);
    req.server = server;

    memset(&fast, 0, sizeof(fast));
    req.second_ticket = NULL;
    req.kdc_options = KDC_OPT_FORWARDABLE;
    fast.req_body = &req;
    req.padata = (krb5_pa_data *[]){NULL};
    need(encode_krb5_fast_req(&fast, &out), "FAST request");
    for (more = 1; more < KDC_FUZZ_ARMORS; more++)
        add_kind(KDC_FUZZ_FAST, more, NULL, 0, out);
    krb5_free_data(world.client, out);
    fast.fast_options = KRB5_FAST_OPTION_HIDE_CLIENT_NAMES;
    need(encode_krb5_fast_req(&fast, &out), "FAST request");
    add_seed(KDC_FUZZ_FAST, NULL, 0, out);
    krb5_free_data(world.client, out);
    need(krb5_parse_name(world.client, "bob", &req.client), "bob"); /* who gets one, hidden */
    need(encode_krb5_fast_req(&fast, &out), "FAST request");
    add_seed(KDC_FUZZ_FAST, NULL, 0, out);
    krb5_free_data(world.client, out);
    req.server = NULL;
    req.kdc_options = KDC_OPT_ENC_TKT_IN_SKEY;
    req.second_ticket = (krb5_ticket *[]){world.tgt_ticket, NULL};
    need(encode_krb5_fast_req(&fast, &out), "FAST request");
    add_seed(KDC_FUZZ_FAST, NULL, 0, out);
    krb5_free_data(world.client, out);
    req.second_ticket = NULL;
    req.kdc_options = KDC_OPT_FORWARDABLE;
    krb5_free_principal(world.client, req.client);
    req.client = world.tgt.client;
    req.server = server;
    fast.fast_options = 0x40000000; /* one that must be understood, and is not */
    need(encode_krb5_fast_req(&fast, &out), "FAST request");
    add_seed(KDC_FUZZ_FAST, NULL, 0, out);
    krb5_free_data(world.client, out);

    krb5_free_enc_tkt_part(world.client, world.tgt_ticket->enc_part2);
    world.tgt_ticket->enc_part2 = NULL;
    need(krb5_decrypt_tkt_part(world.client, &world.krbtgt_key, world.tgt_ticket),
         "the TGT's inside");
    need(encode_krb5_enc_tkt_part(world.tgt_ticket->enc_part2, &out), "the TGT's inside");
    add_seed(KDC_FUZZ_TICKET, NULL, 0, out);
    krb5_free_data(world.client, out);
    krb5_free_principal(world.client, server);
}

/* Principals of whom the database says that they may not, or not so. */
static void
refused_seeds(krb5_get_init_creds_opt *opt)
{
    static const char *const names[] = {"off",  "expired",   "old",   "change", "strict",
                                        "deny", "indicated", "notgt", "bare",   "user",
                                        "policy"};
    size_t i;

    for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
        (void)log_in(names[i], names[i], NULL, opt, NULL);
        (void)log_in("bob", "bob", names[i], NULL, NULL);
    }
    (void)log_in("old", "old", "kadmin/changepw", NULL, NULL);
    (void)log_in("change", "change", "kadmin/changepw", NULL, NULL);
    (void)log_in("bob", "bob", "krbtgt/OTHER.TEST", NULL, NULL);
    (void)log_in_later("bob", "bob", NULL, 7200, opt, NULL);
    (void)log_in_later("deny", "deny", NULL, 7200, NULL, NULL);
}

static void
log_in_by(krb5_get_init_creds_opt *opt, krb5_preauthtype which)
{
    static krb5_preauthtype type; /* which opt points to */

    type = which;
    krb5_get_init_creds_opt_set_preauth_list(opt, &type, 1);
    (void)log_in("alice", "alice", NULL, opt, NULL);
    (void)log_in("alice", "wrong", NULL, opt, NULL);
}

/* A client whose clock is wrong, one that wants no PAC, and one that is nobody. */
static void
odd_seeds(void)
{
    krb5_get_init_creds_opt *opt;

    need(krb5_set_debugging_time(world.client, NOW - 3600, 0), "another time");
    (void)log_in("alice", "alice", NULL, NULL, NULL);
    need(krb5_set_debugging_time(world.client, NOW, 0), "the time");
    need(krb5_get_init_creds_opt_alloc(world.client, &opt), "options");
    need(krb5_get_init_creds_opt_set_pac_request(world.client, opt, 0), "no PAC");
    (void)log_in("bob", "bob", NULL, opt, NULL);
    krb5_get_init_creds_opt_set_anonymous(opt, 1);
    (void)log_in("WELLKNOWN/ANONYMOUS", "anon", NULL, opt, NULL);
    krb5_get_init_creds_opt_free(world.client, opt);
}

/* AS-REQs as no client of MIT's sends them; name or service may be NULL. */
static void
as_seed(const char *name, const char *service, krb5_flags options, krb5_enctype type,
        krb5_pa_data **padata)
{
    krb5_ticket *seconds[] = {world.tgt_ticket, NULL};
    krb5_kdc_req req;
    krb5_data *out;

    memset(&req, 0, sizeof(req));
    req.msg_type = KRB5_AS_REQ;
    req.padata = padata;
    req.kdc_options = options;
    if (name != NULL)
        need(krb5_parse_name(world.client, name, &req.client), name);
    if (name != NULL && padata != NULL && padata[0]->pa_type == KRB5_PADATA_S4U_X509_USER)
        req.client->type = KRB5_NT_X500_PRINCIPAL;
    if (service != NULL) {
        need(krb5_parse_name(world.client, service, &req.server), service);
    } else { /* the realm is that ticket's */
        req.kdc_options |= KDC_OPT_ENC_TKT_IN_SKEY;
        req.second_ticket = seconds;
    }
    req.till = NOW + 3600;
    req.nonce = 1;
    req.nktypes = 1;
    req.ktype = &type;
    need(encode_krb5_as_req(&req, &out), "AS-REQ");
    add_seed(KDC_FUZZ_UDP, NULL, 0, out);
    if (name == NULL)
        add_kind(KDC_FUZZ_UDP, 3, NULL, 0, out);
    krb5_free_data(world.client, out);
    krb5_free_principal(world.client, req.client);
    krb5_free_principal(world.client, req.server);
}

/* TGS-REQs with PA-DATAs that are not what they should be, and one that has no ticket. */
static void
tgs_seeds(void)
{
    static const int types[] = {KRB5_PADATA_FOR_USER, KRB5_PADATA_S4U_X509_USER,
                                KRB5_PADATA_PAC_OPTIONS, KRB5_PADATA_FX_FAST};
    krb5_data value = string2data("value"), whole;
    unsigned char length[2];
    struct k5buf padata;
    size_t i;

    for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
        k5_buf_init_dynamic(&padata);
        kdc_fuzz_put_padata(&padata, types[i], &value);
        store_16_be(padata.len, length);
        k5_buf_add_len(&padata, world.sample_body.data, world.sample_body.length);
        whole = make_data(padata.data, padata.len);
        add_seed(KDC_FUZZ_BODY, length, 2, &whole);
        k5_buf_free(&padata);
    }
    k5_buf_init_dynamic(&padata);
    kdc_fuzz_put_padata(&padata, KRB5_PADATA_FOR_USER, &value);
    whole = kdc_fuzz_whole_request(KRB5_TGS_REQ, &padata, &world.sample_body);
    add_seed(KDC_FUZZ_UDP, NULL, 0, &whole);
    free(whole.data);
    k5_buf_free(&padata);
}

static void
rare_seeds(void)
{
    static const char tgs[] = "krbtgt/" REALM;
    krb5_pa_data certificate = {KV5M_PA_DATA, KRB5_PADATA_S4U_X509_USER, 4, (krb5_octet *)"cert"};
    krb5_pa_data accepted = {KV5M_PA_DATA, KDC_FUZZ_PREAUTH, 1, (krb5_octet *)""};
    krb5_pa_data *padata[] = {&certificate, NULL}, *software[] = {&accepted, NULL};
    char long_name[200];
    krb5_enctype type;

    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    as_seed(NULL, tgs, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("bob", NULL, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("bob", tgs, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("gcm", tgs, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("bob", tgs, KDC_OPT_RENEW, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("bob", tgs, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, padata);
    as_seed("rc4", "rc4", 0, ENCTYPE_ARCFOUR_HMAC, NULL);
    as_seed("WELLKNOWN/ANONYMOUS", "host/h.fuzz.test", KDC_OPT_REQUEST_ANONYMOUS,
            ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("rc4", "strict", 0, ENCTYPE_ARCFOUR_HMAC, NULL);
    as_seed("late", "rc4", 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
    as_seed("strict", tgs, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, software);
    for (type = ENCTYPE_DSA_SHA1_CMS; type <= ENCTYPE_DES3_CBC_ENV; type++)
        as_seed("bob", tgs, 0, type, NULL);
    tgs_seeds();
    as_seed(long_name, long_name, 0, ENCTYPE_AES256_CTS_HMAC_SHA1_96, NULL);
}

static void
fast_seeds(krb5_ccache armor)
{
    krb5_get_init_creds_opt *opt;

    need(krb5_get_init_creds_opt_alloc(world.client, &opt), "options");
    krb5_get_init_creds_opt_set_canonicalize(opt, 1);
    need(krb5_get_init_creds_opt_set_fast_ccache(world.client, opt, armor), "armor");
    (void)log_in("alice", "alice", NULL, opt, NULL);
    (void)log_in("bob", "bob", NULL, opt, NULL);
    log_in_by(opt, KRB5_PADATA_ENCRYPTED_CHALLENGE);
    krb5_get_init_creds_opt_free(world.client, opt);
}

static void
client_seeds(void)
{
    krb5_get_init_creds_opt *opt;
    krb5_ccache cache;

    need(krb5_cc_new_unique(world.client, "MEMORY", NULL, &cache), "cache");
    need(krb5_cc_initialize(world.client, cache, world.tgt.client), "cache");
    need(krb5_cc_store_cred(world.client, cache, &world.tgt), "cache");
    get_ticket(cache, "host/h.fuzz.test", 0);
    get_ticket(cache, "host/h.fuzz.test", KRB5_GC_FORWARDABLE | KRB5_GC_NO_STORE);
    get_ticket(cache, "bob", 0);
    get_ticket(cache, "gcm", 0);
    get_ticket(cache, "host/nobody.fuzz.test", KRB5_GC_CANONICALIZE);
    get_ticket(cache, "krbtgt/OTHER.TEST", 0);
    (void)log_in("alice", "wrong", NULL, NULL, NULL);
    (void)log_in("nobody", "nobody", NULL, NULL, NULL);
    (void)log_in("bob", "bob", "host/h.fuzz.test", NULL, NULL);
    need(krb5_get_init_creds_opt_alloc(world.client, &opt), "options");
    krb5_get_init_creds_opt_set_forwardable(opt, 1);
    krb5_get_init_creds_opt_set_proxiable(opt, 1);
    krb5_get_init_creds_opt_set_renew_life(opt, 86400);
    krb5_get_init_creds_opt_set_canonicalize(opt, 1);
    (void)log_in("bob", "bob", NULL, opt, NULL);
    refused_seeds(opt);
    log_in_by(opt, KRB5_PADATA_ENC_TIMESTAMP);
    krb5_get_init_creds_opt_set_anonymous(opt, 1);
    (void)log_in("bob", "bob", NULL, opt, NULL);
    krb5_get_init_creds_opt_free(world.client, opt);
    odd_seeds();
    rare_seeds();
    fast_seeds(cache);
    krb5_cc_destroy(world.client, cache);
}

static void
add_message(const krb5_data *request)
{
    add_seed(KDC_FUZZ_UDP, NULL, 0, request);
}

static void
add_composed(const void *knobs, size_t size, const krb5_data *body)
{
    add_seed(KDC_FUZZ_TGS, knobs, size, body);
}

void
kdc_fuzz_log_in_alice(void)
{
    need(log_in("alice", "alice", NULL, NULL, &world.tgt), "alice logs in");
    world.session = &world.tgt.keyblock;
    need(decode_krb5_ticket(&world.tgt.ticket, &world.tgt_ticket), "the TGT");
    inner_seeds();
}

void
kdc_fuzz_seeds(kdc_fuzz_seed fn, void *arg)
{
    seed_fn = fn;
    seed_arg = arg;
    (void)log_in("alice", "alice", NULL, NULL, NULL);
    (void)log_in("bob", "bob", "gcm", NULL, NULL);
    (void)log_in("gcm", "gcm", NULL, NULL, NULL);
    free(world.sample_body.data);
    inner_seeds();
    client_seeds();
    kdc_fuzz_preauth_seeds(add_message);
    kdc_fuzz_compose_seeds(add_composed);
    seed_fn = NULL;
}
