/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TGS-REQs that are put together from choices: whose ticket for which server, with which flags,
 * times and PAC, alone or with a second ticket; for whom (S4U2Self); inside of FAST or not. All is
 * signed and encrypted as who has all keys can do it, so that an input gets to the policies behind.
 */
#include "kdc_fuzz_parts.h"
#include "kdc_util.h"

/* How an input begins. Choices count modulo their tables. */
struct half {
    unsigned char server, client, flags[4], times /* and of FAST: whether the client is hidden */, pac;
};
struct knobs {
    struct half header, second;
    unsigned char with, /* bits, below */
        user,           /* for whom a service asks */
        transited,
        wrong; /* bits, below */
    unsigned char padata_length[2]; /* of PA-DATAs that follow, before the KDC-REQ-BODY */
};
enum {
    WITH_SECOND = 1,
    WITH_SUBKEY = 2,
    WITH_FAST = 4, /* only with a subkey */
    WITH_FOR_USER = 8,
    WITH_X509_USER = 16,
    WITH_CERTIFICATE = 32,
    WITH_RBCD = 64,
    WITH_RC4 = 128 /* as the session key */
};
enum {
    WRONG_AP = 7, /* enum kdc_fuzz_ap */
    WRONG_SECOND = 8,
    WRONG_SECOND_SERVER = 16,
    WRONG_TRANSITED = 32, /* of a type that nobody knows */
    WRONG_USER_SUM = 64,
    WRONG_REPLY_USAGE = 128 /* the reply is to be signed as the request: allowed */
};

static const char *const server_names[] = {
    "krbtgt/" REALM, "krbtgt/" REALM "@OTHER.TEST", "host/h.fuzz.test", "bob", "krbtgt/OTHER.TEST",
    "deny",          "host/front.fuzz.test",
};
static const char *const client_names[] = {
    "alice",
    "bob",
    "host/h.fuzz.test",
    "carol@OTHER.TEST",
    "host/x.other.test@OTHER.TEST",
    "WELLKNOWN/ANONYMOUS@WELLKNOWN:ANONYMOUS",
    "deny",
    "strict",
    "off",
    "expired",
    "nobody",
    "host/front.fuzz.test",
    "krbtgt/" REALM,
    "dave@THIRD.TEST",
    "user",
};
/* starttime, endtime, renew_till, from now. */
static const struct {
    krb5_timestamp start, end, renew;
} time_choices[] = {{-600, 36000, 86400},  {-7200, -3600, 86400}, {3600, 36000, 86400},
                    {-600, 36000, -600},   {0, 36000, 0},         {-600, 60, INT32_MAX},
                    {-86400, 36000, 86400}};
static const char *const transits[] = {"", "THIRD.TEST", "OTHER.TEST", "X,Y.", "/COM,/HP"};
enum pac {
    PAC_NONE,
    PAC_OF_CLIENT,
    PAC_OF_CLIENT_AND_REALM,
    PAC_OF_USER,
    PAC_OF_USER_AND_REALM,
    PAC_DELEGATED, /* of the user, through the client, to the requested server */
    PAC_OF_WRONG_KEY,
    PACS
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static krb5_keyblock server_keys[COUNT(server_names)];
static krb5_principal servers[COUNT(server_names)], clients[COUNT(client_names)];
enum { HOST = 2 /* of servers */, NOBODY = 10 /* of clients */ };
static krb5_ticket service_ticket;
static krb5_keyblock rc4_session, *session; /* of the tickets that are made */

static void
make_service_ticket(void);

void
kdc_fuzz_compose_start(void)
{
    size_t i;

    for (i = 0; i < COUNT(server_names); i++) {
        need(krb5_parse_name(world.client, server_names[i], &servers[i]), server_names[i]);
        kdc_fuzz_key(server_names[i], &server_keys[i]);
    }
    for (i = 0; i < COUNT(client_names); i++)
        need(krb5_parse_name(world.client, client_names[i], &clients[i]), client_names[i]);
    need(krb5_copy_keyblock_contents(world.client, world.session, &rc4_session), "key");
    rc4_session.enctype = ENCTYPE_ARCFOUR_HMAC;
    rc4_session.length = 16;
    session = world.session;
    make_service_ticket();
}

/*** Tickets ***/

static krb5_error_code
add_delegation(krb5_pac pac, krb5_principal through, krb5_const_principal target)
{
    struct pac_s4u_delegation_info info;
    krb5_data buffer;
    krb5_error_code ret;
    char *through_text = NULL;

    memset(&info, 0, sizeof(info));
    need(krb5_unparse_name(world.client, through, &through_text), "name");
    need(krb5_unparse_name_flags(world.client, target,
                                 KRB5_PRINCIPAL_UNPARSE_DISPLAY | KRB5_PRINCIPAL_UNPARSE_NO_REALM,
                                 &info.proxy_target),
         "name");
    info.transited_services_length = 1;
    info.transited_services = &through_text;
    ret = ndr_enc_delegation_info(&info, &buffer);
    if (ret == EINVAL) { /* a name that is not UTF-8 */
        ret = 0;
    } else if (ret == 0) {
        ret = krb5_pac_add_buffer(world.client, pac, KRB5_PAC_DELEGATION_INFO, &buffer);
        krb5_free_data_contents(world.client, &buffer);
    }
    krb5_free_unparsed_name(world.client, through_text);
    krb5_free_unparsed_name(world.client, info.proxy_target);
    return ret;
}

/* target: the server of the request, or NULL. */
static void
sign(krb5_enc_tkt_part *part, const struct half *half, krb5_principal user,
     krb5_const_principal target)
{
    enum pac choice = half->pac % PACS;
    size_t server = half->server % COUNT(server_names);
    krb5_boolean with_realm = choice == PAC_OF_CLIENT_AND_REALM ||
                              choice == PAC_OF_USER_AND_REALM || choice == PAC_DELEGATED;
    krb5_principal whose = choice == PAC_OF_USER || choice == PAC_OF_USER_AND_REALM ||
                                   choice == PAC_DELEGATED
                               ? user
                               : part->client;
    krb5_pac pac;

    if (choice == PAC_NONE)
        return;
    need(krb5_pac_init(world.client, &pac), "PAC");
    if (choice == PAC_DELEGATED && target != NULL)
        need(add_delegation(pac, part->client, target), "delegation");
    need(krb5_kdc_sign_ticket(world.client, part, pac, servers[server], whose,
                              choice == PAC_OF_WRONG_KEY ? world.session : &server_keys[server],
                              &world.krbtgt_key, with_realm),
         "signing a ticket");
    krb5_pac_free(world.client, pac);
}

static void
make_ticket(const struct half *half, const struct knobs *knobs, krb5_const_principal target,
            krb5_ticket *ticket)
{
    krb5_enc_tkt_part part;
    size_t times = half->times % COUNT(time_choices);
    const char *transited = transits[knobs->transited % COUNT(transits)];
    krb5_data *plain;

    memset(&part, 0, sizeof(part));
    memset(ticket, 0, sizeof(*ticket));
    part.flags = load_32_be(half->flags);
    part.session = session;
    part.client = clients[half->client % COUNT(client_names)];
    part.transited.tr_type = KRB5_DOMAIN_X500_COMPRESS +
                             ((knobs->wrong & WRONG_TRANSITED) ? 1 : 0);
    part.transited.tr_contents = string2data((char *)transited);
    part.times.authtime = NOW - 600;
    if (time_choices[times].start != 0)
        part.times.starttime = NOW + time_choices[times].start;
    part.times.endtime = NOW + time_choices[times].end;
    part.times.renew_till = time_choices[times].renew == INT32_MAX ? INT32_MAX
                                                                   : NOW + time_choices[times].renew;
    sign(&part, half, clients[knobs->user % COUNT(client_names)], target);
    need(encode_krb5_enc_tkt_part(&part, &plain), "ticket");
    krb5_free_authdata(world.client, part.authorization_data);
    ticket->server = servers[half->server % COUNT(server_names)];
    need(krb5_encrypt_helper(world.client, &server_keys[half->server % COUNT(server_names)],
                             KRB5_KEYUSAGE_KDC_REP_TICKET, plain, &ticket->enc_part),
         "ticket");
    krb5_free_data(world.client, plain);
}

static void
make_service_ticket(void)
{
    struct half half;
    struct knobs knobs;

    memset(&half, 0, sizeof(half));
    memset(&knobs, 0, sizeof(knobs));
    half.server = HOST;
    half.pac = PAC_OF_CLIENT;
    make_ticket(&half, &knobs, NULL, &service_ticket);
}

const krb5_ticket *
kdc_fuzz_service_ticket(void)
{
    return &service_ticket;
}

/*** For a user ***/

static void
spoil(krb5_checksum *sum, const struct knobs *knobs)
{
    if (knobs->wrong & WRONG_USER_SUM)
        sum->contents[0] ^= 1;
}

static void
put_for_user(struct k5buf *out, krb5_principal user, const struct knobs *knobs)
{
    krb5_pa_for_user pa;
    struct k5buf signed_text;
    krb5_data plain, *value;
    unsigned char type[4];
    int i;

    memset(&pa, 0, sizeof(pa));
    pa.user = user;
    pa.auth_package = string2data("Kerberos");
    k5_buf_init_dynamic(&signed_text);
    store_32_le(user->type, type);
    k5_buf_add_len(&signed_text, type, sizeof(type));
    for (i = 0; i < user->length; i++)
        k5_buf_add_len(&signed_text, user->data[i].data, user->data[i].length);
    k5_buf_add_len(&signed_text, user->realm.data, user->realm.length);
    k5_buf_add(&signed_text, "Kerberos");
    plain = make_data(signed_text.data, signed_text.len);
    need(krb5_c_make_checksum(world.client, 0, session, KRB5_KEYUSAGE_APP_DATA_CKSUM, &plain,
                              &pa.cksum),
         "checksum");
    spoil(&pa.cksum, knobs);
    need(encode_krb5_pa_for_user(&pa, &value), "PA-FOR-USER");
    kdc_fuzz_put_padata(out, KRB5_PADATA_FOR_USER, value);
    krb5_free_data(world.client, value);
    krb5_free_checksum_contents(world.client, &pa.cksum);
    k5_buf_free(&signed_text);
}

static void
put_x509_user(struct k5buf *out, krb5_principal user, krb5_int32 nonce, const krb5_keyblock *key,
              const struct knobs *knobs)
{
    krb5_pa_s4u_x509_user pa;
    krb5_data *id, *value;

    memset(&pa, 0, sizeof(pa));
    pa.user_id.nonce = nonce;
    pa.user_id.user = user;
    if (!(knobs->wrong & WRONG_REPLY_USAGE))
        pa.user_id.options = KRB5_S4U_OPTS_USE_REPLY_KEY_USAGE;
    if (knobs->with & WITH_CERTIFICATE)
        pa.user_id.subject_cert = string2data("certificate");
    need(encode_krb5_s4u_userid(&pa.user_id, &id), "user");
    need(krb5_c_make_checksum(world.client, 0, key, KRB5_KEYUSAGE_PA_S4U_X509_USER_REQUEST, id,
                              &pa.cksum),
         "checksum");
    spoil(&pa.cksum, knobs);
    need(encode_krb5_pa_s4u_x509_user(&pa, &value), "PA-S4U-X509-USER");
    kdc_fuzz_put_padata(out, KRB5_PADATA_S4U_X509_USER, value);
    krb5_free_data(world.client, id);
    krb5_free_data(world.client, value);
    krb5_free_checksum_contents(world.client, &pa.cksum);
}

static void
put_rbcd(struct k5buf *out)
{
    krb5_pa_pac_options options = {KRB5_PA_PAC_OPTIONS_RBCD};
    krb5_data *value;

    need(encode_krb5_pa_pac_options(&options, &value), "PAC options");
    kdc_fuzz_put_padata(out, KRB5_PADATA_PAC_OPTIONS, value);
    krb5_free_data(world.client, value);
}

/*** The request ***/

/* These PA-DATAs and this body as a KrbFastReq. */
static krb5_data *
fast_padata(const struct k5buf *padata, const krb5_data *body, const krb5_data *ap,
            const krb5_keyblock *subkey, krb5_boolean hide_client)
{
    const unsigned char options[] = {0, hide_client ? 0x40 : 0, 0, 0, 0};
    struct k5buf fields, whole;
    krb5_data inner, *value;

    k5_buf_init_dynamic(&fields);
    kdc_fuzz_put_in(&fields, 0xa0, 0x03, options, sizeof(options));
    kdc_fuzz_put_in(&fields, 0xa1, 0x30, padata->data, padata->len);
    kdc_fuzz_put(&fields, 0xa2, body->data, body->length);
    k5_buf_init_dynamic(&whole);
    kdc_fuzz_put(&whole, 0x30, fields.data, fields.len);
    inner = make_data(whole.data, whole.len);
    value = kdc_fuzz_fast(&inner, NULL, subkey, session, ap);
    k5_buf_free(&whole);
    k5_buf_free(&fields);
    return value;
}

static void
ask_composed(const struct knobs *knobs, krb5_ticket *header, const krb5_data *more,
             const krb5_data *body, krb5_int32 nonce)
{
    krb5_keyblock *subkey = (knobs->with & WITH_SUBKEY) ? session : NULL;
    krb5_principal user = clients[knobs->user % COUNT(client_names)];
    krb5_data *ap, *fast;
    struct k5buf padata, inner;

    kdc_fuzz_ap_kind = (knobs->wrong & WRONG_AP) % AP_KINDS;
    ap = kdc_fuzz_ap_req(header, session, clients[knobs->header.client % COUNT(client_names)],
                         subkey, body, KRB5_KEYUSAGE_TGS_REQ_AUTH);
    kdc_fuzz_ap_kind = AP_GOOD;
    k5_buf_init_dynamic(&padata);
    kdc_fuzz_put_padata(&padata, KRB5_PADATA_AP_REQ, ap);
    k5_buf_init_dynamic(&inner);
    k5_buf_add_len(&inner, more->data, more->length);
    if (knobs->with & WITH_FOR_USER)
        put_for_user(&inner, user, knobs);
    if (knobs->with & WITH_X509_USER)
        put_x509_user(&inner, user, nonce, session, knobs);
    if (knobs->with & WITH_RBCD)
        put_rbcd(&inner);
    if (subkey != NULL && (knobs->with & WITH_FAST)) {
        fast = fast_padata(&inner, body, ap, subkey,
                           knobs->header.times / COUNT(time_choices) % 2 == 1);
        kdc_fuzz_put_padata(&padata, KRB5_PADATA_FX_FAST, fast);
        krb5_free_data(world.client, fast);
    } else {
        k5_buf_add_len(&padata, inner.data, inner.len);
    }
    kdc_fuzz_ask_with(KRB5_TGS_REQ, &padata, body, 1);
    k5_buf_free(&inner);
    k5_buf_free(&padata);
    krb5_free_data(world.client, ap);
}

/* struct knobs | PA-DATAs | KDC-REQ-BODY, into which the second ticket goes if it can be read */
void
kdc_fuzz_compose(const krb5_data *in)
{
    struct knobs knobs;
    krb5_data more, body, *with_second = NULL;
    krb5_kdc_req *req = NULL;
    krb5_ticket header, second, *seconds[] = {&second, NULL};
    unsigned int length;

    if (in->length < sizeof(knobs))
        return;
    memcpy(&knobs, in->data, sizeof(knobs));
    session = (knobs.with & WITH_RC4) ? &rc4_session : world.session;
    length = load_16_be(knobs.padata_length);
    if (length > in->length - sizeof(knobs))
        length = in->length - sizeof(knobs);
    more = make_data(in->data + sizeof(knobs), length);
    body = make_data(more.data + length, in->length - sizeof(knobs) - length);
    memset(&second, 0, sizeof(second));
    if (decode_krb5_kdc_req_body(&body, &req) != 0)
        req = NULL;
    make_ticket(&knobs.header, &knobs, req != NULL ? req->server : NULL, &header);
    if ((knobs.with & WITH_SECOND) && req != NULL && req->server != NULL) {
        krb5_ticket **own = req->second_ticket;

        make_ticket(&knobs.second, &knobs, req->server, &second);
        if (knobs.wrong & WRONG_SECOND)
            second.enc_part.ciphertext.data[0] ^= 1;
        if (knobs.wrong & WRONG_SECOND_SERVER)
            second.server = clients[NOBODY];
        req->second_ticket = seconds;
        if (encode_krb5_kdc_req_body(req, &with_second) == 0)
            body = *with_second;
        req->second_ticket = own;
    }
    ask_composed(&knobs, &header, &more, &body, req != NULL ? req->nonce : 1);
    krb5_free_data(world.client, with_second);
    krb5_free_kdc_req(world.client, req);
    free(header.enc_part.ciphertext.data);
    free(second.enc_part.ciphertext.data);
}

/*** Seeds: a request of each kind, and one that a policy refuses ***/

static const struct example {
    unsigned int header_server, header_client, flags, times, pac;
    unsigned int with, user, transited;
    unsigned int second_server, second_client, second_pac;
    krb5_flags options;
    const char *service;
    unsigned int wrong;
} examples[] = {
#define ALL_FLAGS                                                                              \
    (TKT_FLG_FORWARDABLE | TKT_FLG_PROXIABLE | TKT_FLG_MAY_POSTDATE | TKT_FLG_RENEWABLE | \
     TKT_FLG_PRE_AUTH)
    /* A plain one, renewed, validated, forwarded, as a proxy, postdated. */
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_FORWARDABLE | KDC_OPT_RENEWABLE, "bob"},
    {0, 0, ALL_FLAGS, 6, 1, WITH_SUBKEY, 0, 0, 0, 0, 0, KDC_OPT_RENEW, "krbtgt/" REALM},
    {0, 0, ALL_FLAGS, 3, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_RENEW, "krbtgt/" REALM},
    {0, 0, ALL_FLAGS | TKT_FLG_INVALID, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_VALIDATE, "krbtgt/" REALM},
    {0, 0, ALL_FLAGS | TKT_FLG_INVALID, 2, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_VALIDATE, "krbtgt/" REALM},
    {0, 0, ALL_FLAGS | TKT_FLG_INVALID, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_FORWARDED | KDC_OPT_FORWARDABLE,
     "krbtgt/" REALM},
    {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_FORWARDED, "krbtgt/" REALM},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_PROXY, "bob"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_PROXY, "krbtgt/" REALM},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_ALLOW_POSTDATE | KDC_OPT_POSTDATED, "bob"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_RENEWABLE_OK, "bare"},
    {2, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_RENEW, "host/h.fuzz.test"},
    {2, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_RENEW, "bob"},
    {2, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {0, 0, ALL_FLAGS, 1, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {0, 0, ALL_FLAGS, 0, 6, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {0, 0, ALL_FLAGS, 0, 3, 0, 1, 0, 0, 0, 0, 0, "bob"},
    /* What a service's entry forbids. */
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_RENEWABLE, "deny"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_ALLOW_POSTDATE, "deny"},
    {0, 0, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 0, 1, 1, KDC_OPT_ENC_TKT_IN_SKEY, "deny"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "off"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "user"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "notgt"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "strict"},
    {0, 0, TKT_FLG_HW_AUTH, 0, 1, 0, 0, 0, 0, 0, 0, 0, "strict"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "expired"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "indicated"},
    {0, 5, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    /* User to user. */
    {0, 0, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 0, 14, 1, KDC_OPT_ENC_TKT_IN_SKEY, "user"},
    {0, 0, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 0, 0, 1, KDC_OPT_ENC_TKT_IN_SKEY, "user"},
    {0, 0, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_ENC_TKT_IN_SKEY, "bob"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_ENC_TKT_IN_SKEY, "bob"},
    /* S4U2Self: here, for strangers, without a PAC, of users who may not. */
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, KDC_OPT_FORWARDABLE, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_X509_USER | WITH_SUBKEY, 1, 0, 0, 0, 0, KDC_OPT_FORWARDABLE,
     "host/h.fuzz.test"},
    {0, 11, ALL_FLAGS, 0, 1, WITH_X509_USER | WITH_SUBKEY | WITH_FAST, 1, 0, 0, 0, 0,
     KDC_OPT_FORWARDABLE, "host/front.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_X509_USER | WITH_RC4, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_X509_USER | WITH_FOR_USER | WITH_SUBKEY | WITH_FAST | WITH_RC4, 1, 0, 0,
     0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_X509_USER | WITH_CERTIFICATE, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 0, WITH_FOR_USER, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 3, WITH_FOR_USER, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 8, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 10, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 3, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, 0, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, KDC_OPT_CANONICALIZE,
     "host/x.other.test"},
    {1, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {1, 4, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, KDC_OPT_CANONICALIZE,
     "host/x.other.test"},
    {1, 2, ALL_FLAGS, 0, 4, WITH_FOR_USER, 3, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    {1, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 3, 0, 0, 0, 0, 0, "host/h.fuzz.test"},
    /* S4U2Proxy: by the server's list, by the resource's, and without. */
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT,
     "host/rbcd.fuzz.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT,
     "host/rbcd.fuzz.test"},
    {0, 11, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 0, 0, 6, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT,
     "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 0, 0, 2, 1, 1,
     KDC_OPT_CNAME_IN_ADDL_TKT | KDC_OPT_CANONICALIZE, "host/x.other.test"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 0, 0, 2, 1, 1,
     KDC_OPT_CNAME_IN_ADDL_TKT | KDC_OPT_CANONICALIZE, "host/\xff.other.test"},
    {0, 11, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 0, 0, 6, 1, 1,
     KDC_OPT_CNAME_IN_ADDL_TKT | KDC_OPT_CANONICALIZE, "host/x.other.test"},
    {0, 11, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 6, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 0, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 0, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 2, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 3, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT,
     "krbtgt/" REALM},
    {1, 4, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 3, 0, 1, 4, 5, KDC_OPT_CNAME_IN_ADDL_TKT,
     "host/rbcd.fuzz.test"},
    {1, 4, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 3, 0, 1, 3, 5, KDC_OPT_CNAME_IN_ADDL_TKT,
     "host/rbcd.fuzz.test"},
    {1, 4, ALL_FLAGS, 0, 1, WITH_SECOND | WITH_RBCD, 3, 0, 1, 4, 1, KDC_OPT_CNAME_IN_ADDL_TKT,
     "host/rbcd.fuzz.test"},
    /* From and to other realms, through more. */
    {1, 3, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {1, 13, ALL_FLAGS, 0, 1, 0, 0, 1, 0, 0, 0, 0, "bob"},
    {1, 13, ALL_FLAGS, 0, 1, 0, 0, 3, 0, 0, 0, 0, "bob"},
    {1, 13, ALL_FLAGS, 0, 1, 0, 0, 3, 0, 0, 0, KDC_OPT_DISABLE_TRANSITED_CHECK, "bob"},
    {1, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {1, 4, ALL_FLAGS, 0, 5, 0, 3, 0, 0, 0, 0, 0, "krbtgt/OTHER.TEST"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "host/x.other.test"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "krbtgt/DEEP.OTHER.TEST"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob@OTHER.TEST"},
    {4, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob"},
    {1, 13, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob", WRONG_TRANSITED},
    {1, 13, ALL_FLAGS, 0, 1, 0, 0, 4, 0, 0, 0, 0, "bob"},
    {1, 13, ALL_FLAGS | TKT_FLG_TRANSIT_POLICY_CHECKED, 0, 1, 0, 0, 1, 0, 0, 0, 0, "bob"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "HTTP/x.other.test"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "nfs/x.other.test"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "host/short"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "/x.other.test"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "host/x.nowhere.test"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, KDC_OPT_CANONICALIZE, "host/x.fourth.test"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "policy"},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "trusted"},
    {0, 0, ALL_FLAGS, COUNT(time_choices), 1, WITH_SUBKEY | WITH_FAST, 0, 0, 0, 0, 0, 0, "bob"},
    {0, 0, ALL_FLAGS, COUNT(time_choices), 1, WITH_SUBKEY | WITH_FAST, 0, 0, 0, 0, 0, 0, "off"},
    /* The request's own checksum; tickets and users that are not what they seem. */
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob", AP_UNKEYED},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob", AP_NO_CHECKSUM},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob", AP_OF_OTHER},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob", AP_MUTUAL},
    {0, 0, ALL_FLAGS, 0, 1, 0, 0, 0, 0, 0, 0, 0, "bob", AP_FOR_ARMOR},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob",
     WRONG_SECOND},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob",
     WRONG_SECOND_SERVER},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 6, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_SECOND, 0, 0, 2, 1, 1,
     KDC_OPT_CNAME_IN_ADDL_TKT | KDC_OPT_FORWARDED, "bob"},
    {0, 2, ALL_FLAGS, 0, 3, WITH_SECOND, 0, 0, 2, 1, 1, KDC_OPT_CNAME_IN_ADDL_TKT, "bob"},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test", WRONG_USER_SUM},
    {0, 2, ALL_FLAGS, 0, 1, WITH_X509_USER, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test", WRONG_USER_SUM},
    {0, 2, ALL_FLAGS, 0, 1, WITH_X509_USER, 1, 0, 0, 0, 0, 0, "host/h.fuzz.test",
     WRONG_REPLY_USAGE},
    {0, 2, ALL_FLAGS, 0, 1, WITH_FOR_USER, 1, 0, 0, 0, 0, KDC_OPT_RENEW, "host/h.fuzz.test"},
};

/* Into a body that the encoder would not write: user-to-user without a second ticket. */
static void
add_option(krb5_data *body, krb5_flags option)
{
    static const char field[] = {'\xa0', 0x07, 0x03, 0x05, 0x00};
    char *at = memmem(body->data, body->length, field, sizeof(field));

    at += sizeof(field);
    store_32_be(load_32_be(at) | option, at);
}

/* The type by which a KDC looks for hosts of other realms. */
static int
type_of(const char *service)
{
    if (strncmp(service, "HTTP/", 5) == 0)
        return KRB5_NT_UNKNOWN;
    if (*service == '/' || strncmp(service, "host/", 5) == 0 || strncmp(service, "nfs/", 4) == 0)
        return KRB5_NT_SRV_HST;
    return KRB5_NT_PRINCIPAL;
}

void
kdc_fuzz_compose_seeds(kdc_fuzz_composed add)
{
    /* The last is all that bob wants. */
    krb5_enctype types[] = {ENCTYPE_AES256_CTS_HMAC_SHA1_96, ENCTYPE_AES256_GCM,
                            ENCTYPE_AES128_CTS_HMAC_SHA256_128};
    const struct example *one;
    krb5_kdc_req req;
    struct knobs knobs;
    krb5_data *body;

    for (one = examples; one < examples + COUNT(examples); one++) {
        memset(&knobs, 0, sizeof(knobs));
        knobs.header.server = one->header_server;
        knobs.header.client = one->header_client;
        knobs.header.times = one->times;
        knobs.header.pac = one->pac;
        store_32_be(one->flags, knobs.header.flags);
        knobs.second.server = one->second_server;
        knobs.second.client = one->second_client;
        knobs.second.pac = one->second_pac;
        store_32_be(ALL_FLAGS, knobs.second.flags);
        knobs.with = one->with;
        knobs.user = one->user;
        knobs.transited = one->transited;
        knobs.wrong = one->wrong;
        memset(&req, 0, sizeof(req));
        req.msg_type = KRB5_TGS_REQ;
        req.kdc_options = one->options & ~KDC_OPT_ENC_TKT_IN_SKEY;
        need(krb5_parse_name(world.client, one->service, &req.server), one->service);
        req.server->type = type_of(one->service);
        req.from = NOW + 7200;
        req.till = NOW + 3600;
        req.rtime = NOW + 72000;
        req.nonce = 1;
        req.nktypes = COUNT(types);
        req.ktype = types;
        need(encode_krb5_kdc_req_body(&req, &body), "body");
        add_option(body, one->options & KDC_OPT_ENC_TKT_IN_SKEY);
        add(&knobs, sizeof(knobs), body);
        krb5_free_data(world.client, body);
        krb5_free_principal(world.client, req.server);
    }
}
