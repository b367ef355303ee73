/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pre-authentication mechanism that does what a request tells it: the callbacks by which modules
 * (PKINIT, SPAKE, OTP; none is in a static build) reach the KDC's cookies, freshness tokens and
 * keys, with what a client has sent.
 */
#include "kdc_fuzz_parts.h"
#include <krb5/kdcpreauth_plugin.h>
#include <verto.h>

#define CHALLENGE "more, please"

/* The first byte of such a PA-DATA, modulo their number; the rest is what it is done with. */
enum action {
    ACTION_ACCEPT, /* where the rest begins with E, with e-data */
    ACTION_REFUSE, /* where the rest begins with A, with authorization data; with L, offered again later */
    ACTION_ASK_MORE,   /* with a cookie that has the rest, and e-data */
    ACTION_CONTINUE,   /* accepts who sends the cookie's contents again */
    ACTION_FRESH,      /* accepts a freshness token */
    ACTION_NEW_KEY,    /* the rest becomes the reply's key */
    ACTION_STRENGTHEN, /* the same, as a key made of the client's */
    ACTION_STRING,     /* an attribute of the entry */
    ACTION_MATCH,      /* accepts another name of the client */
    ACTION_AUTHDATA,   /* the rest goes into the ticket, twice */
    ACTION_LATER,      /* accepts, in a later turn of the loop */
    ACTION_DROP,       /* no answer at all */
    ACTIONS
};

struct later {
    krb5_kdcpreauth_verify_respond_fn respond;
    krb5_kdcpreauth_edata_respond_fn respond_edata; /* or this */
    void *arg;
};

static void
put_off(krb5_kdcpreauth_callbacks cb, krb5_context context, krb5_kdcpreauth_rock rock,
        struct later later);

static int
flags(krb5_context context, krb5_preauthtype type)
{
    switch (type) {
        case KDC_FUZZ_PREAUTH_TYPED:
            return PA_REPLACES_KEY | PA_TYPED_E_DATA;
        case KDC_FUZZ_PREAUTH_REQUIRED:
            return PA_REQUIRED;
        case KDC_FUZZ_PREAUTH_SUFFICIENT:
            return PA_REPLACES_KEY | PA_SUFFICIENT;
        default:
            return PA_REPLACES_KEY;
    }
}

/* Offered to those alone who have sent one. */
static void
edata(krb5_context context, krb5_kdc_req *request, krb5_kdcpreauth_callbacks cb,
      krb5_kdcpreauth_rock rock, krb5_kdcpreauth_moddata moddata, krb5_preauthtype type,
      krb5_kdcpreauth_edata_respond_fn respond, void *arg)
{
    krb5_pa_data *sent = krb5int_find_pa_data(context, request->padata, type), *pa = NULL;
    krb5_data contents = string2data(CHALLENGE);

    if (sent == NULL) {
        respond(arg, ENOENT, NULL);
        return;
    }
    cb->send_freshness_token(context, rock);
    if (sent->length > 0 && sent->contents[0] % ACTIONS == ACTION_ASK_MORE) {
        (void)cb->set_cookie(context, rock, type, &contents);
        need(k5_alloc_pa_data(type, contents.length, &pa), "PA-DATA");
        memcpy(pa->contents, contents.data, contents.length);
    } else if (sent->length > 1 && sent->contents[0] % ACTIONS == ACTION_REFUSE &&
               sent->contents[1] == 'L') {
        put_off(cb, context, rock, (struct later){NULL, respond, arg});
        return;
    }
    respond(arg, 0, pa);
}

static krb5_pa_data **
challenge(krb5_preauthtype type)
{
    krb5_pa_data **list = calloc(2, sizeof(*list));

    if (list != NULL && k5_alloc_pa_data(type, 1, &list[0]) != 0)
        abort();
    return list;
}

static krb5_authdata **
twice(const krb5_data *contents)
{
    krb5_authdata one = {KV5M_AUTHDATA, 4711, contents->length, (krb5_octet *)contents->data};
    krb5_authdata *list[] = {&one, &one, NULL}, **copy = NULL;

    need(krb5_copy_authdata(world.client, list, &copy), "authorization data");
    return copy;
}

static krb5_error_code
new_key(krb5_context context, krb5_kdcpreauth_callbacks cb, krb5_kdcpreauth_rock rock,
        const krb5_data *rest, krb5_boolean strengthen)
{
    const krb5_keyblock *old = cb->client_keyblock(context, rock);
    krb5_keyblock key;
    unsigned int i;

    if (old == NULL)
        return ENOENT;
    need(krb5_copy_keyblock_contents(context, old, &key), "key");
    for (i = 0; i < key.length && i < rest->length; i++)
        key.contents[i] ^= rest->data[i];
    need(cb->replace_reply_key(context, rock, &key, strengthen), "key");
    krb5_free_keyblock_contents(context, &key);
    return 0;
}

static krb5_error_code
match(krb5_context context, krb5_kdcpreauth_callbacks cb, krb5_kdcpreauth_rock rock,
      const char *name)
{
    krb5_principal princ;
    krb5_boolean same;

    if (cb->client_name(context, rock) == NULL || krb5_parse_name(context, name, &princ) != 0)
        return KRB5KDC_ERR_PREAUTH_FAILED;
    same = cb->match_client(context, rock, princ);
    krb5_free_principal(context, princ);
    return same ? 0 : KRB5KDC_ERR_PREAUTH_FAILED;
}

static krb5_error_code
string(krb5_context context, krb5_kdcpreauth_callbacks cb, krb5_kdcpreauth_rock rock,
       const char *name)
{
    char *value = NULL;

    if (cb->get_string(context, rock, name, &value) != 0 || value == NULL)
        return KRB5KDC_ERR_PREAUTH_FAILED;
    cb->free_string(context, rock, value);
    return cb->client_entry(context, rock) != NULL ? 0 : ENOENT;
}

static void
answer_later(verto_ctx *loop, verto_ev *event)
{
    struct later *later = verto_get_private(event);

    if (later->respond != NULL)
        later->respond(later->arg, 0, NULL, NULL, NULL);
    else
        later->respond_edata(later->arg, 0, NULL);
    free(later);
}

static void
put_off(krb5_kdcpreauth_callbacks cb, krb5_context context, krb5_kdcpreauth_rock rock,
        struct later what)
{
    struct later *later = malloc(sizeof(*later));
    verto_ev *event;

    if (later == NULL)
        abort();
    *later = what;
    event = verto_add_idle(cb->event_context(context, rock), VERTO_EV_FLAG_NONE, answer_later);
    if (event == NULL)
        abort();
    verto_set_private(event, later, NULL);
}

static void
verify(krb5_context context, krb5_data *packet, krb5_kdc_req *request, krb5_enc_tkt_part *ticket,
       krb5_pa_data *sent, krb5_kdcpreauth_callbacks cb, krb5_kdcpreauth_rock rock,
       krb5_kdcpreauth_moddata moddata, krb5_kdcpreauth_verify_respond_fn respond, void *arg)
{
    krb5_error_code code = 0;
    krb5_pa_data **e_data = NULL;
    krb5_authdata **authdata = NULL;
    krb5_data rest = empty_data(), cookie;
    char *text;

    if (sent->length > 0)
        rest = make_data(sent->contents + 1, sent->length - 1);
    need((text = k5memdup0(rest.data, rest.length, &code)) == NULL ? ENOMEM : 0, "memory");
    switch (sent->length == 0 ? ACTION_REFUSE : sent->contents[0] % ACTIONS) {
        case ACTION_REFUSE:
            code = KRB5KDC_ERR_PREAUTH_FAILED;
            if (rest.length > 0 && rest.data[0] == 'A') {
                authdata = twice(&rest);
                e_data = challenge(sent->pa_type);
            }
            break;
        case ACTION_ASK_MORE:
            need(cb->set_cookie(context, rock, sent->pa_type, &rest), "cookie");
            e_data = challenge(sent->pa_type);
            code = KRB5KDC_ERR_MORE_PREAUTH_DATA_REQUIRED;
            break;
        case ACTION_CONTINUE:
            if (!cb->get_cookie(context, rock, sent->pa_type, &cookie) || !data_eq(cookie, rest))
                code = KRB5KDC_ERR_PREAUTH_EXPIRED;
            break;
        case ACTION_FRESH:
            code = cb->check_freshness_token(context, rock, &rest);
            break;
        case ACTION_NEW_KEY:
        case ACTION_STRENGTHEN:
            code = new_key(context, cb, rock, &rest,
                           sent->contents[0] % ACTIONS == ACTION_STRENGTHEN);
            break;
        case ACTION_STRING:
            code = string(context, cb, rock, text);
            break;
        case ACTION_MATCH:
            code = match(context, cb, rock, text);
            break;
        case ACTION_AUTHDATA:
            authdata = twice(&rest);
            break;
        case ACTION_LATER:
            free(text);
            ticket->flags |= TKT_FLG_PRE_AUTH;
            put_off(cb, context, rock, (struct later){respond, NULL, arg});
            return;
        case ACTION_DROP:
            code = KRB5KDC_ERR_DISCARD;
            break;
        case ACTION_ACCEPT:
            if (rest.length > 0 && rest.data[0] == 'E')
                e_data = challenge(sent->pa_type);
            break;
        default:
            break;
    }
    free(text);
    if (code == 0 && cb->max_time_skew(context, rock) > 0 && cb->request_body(context, rock) != NULL)
        ticket->flags |= TKT_FLG_PRE_AUTH;
    respond(arg, code, (krb5_kdcpreauth_modreq)malloc(1), e_data, authdata);
}

static void
free_modreq(krb5_context context, krb5_kdcpreauth_moddata moddata, krb5_kdcpreauth_modreq modreq)
{
    free(modreq);
}

/* What was sent comes back in the reply. */
static krb5_error_code
give_back(krb5_context context, krb5_pa_data *sent, krb5_data *packet, krb5_kdc_req *request,
          krb5_kdc_rep *reply, krb5_keyblock *key, krb5_pa_data **out,
          krb5_kdcpreauth_callbacks cb, krb5_kdcpreauth_rock rock, krb5_kdcpreauth_moddata moddata,
          krb5_kdcpreauth_modreq modreq)
{
    krb5_error_code ret;

    if (sent == NULL)
        return 0;
    ret = k5_alloc_pa_data(sent->pa_type, sent->length, out);
    if (ret == 0 && sent->length > 0)
        memcpy((*out)->contents, sent->contents, sent->length);
    return ret;
}

/* Modules that do not work: the KDC does without them. */
static krb5_preauthtype no_types[] = {0};

static krb5_error_code
init(krb5_context context, krb5_kdcpreauth_moddata *moddata, const char **realms)
{
    return ENOENT;
}

static krb5_error_code
loop(krb5_context context, krb5_kdcpreauth_moddata moddata, verto_ctx *ctx)
{
    return ENOENT;
}

static void
fini(krb5_context context, krb5_kdcpreauth_moddata moddata)
{
}

static krb5_error_code
init_no_vtable(krb5_context context, int major, int minor, krb5_plugin_vtable table)
{
    krb5_kdcpreauth_vtable vt = (krb5_kdcpreauth_vtable)table;

    vt->name = "no";
    vt->pa_type_list = no_types;
    vt->init = init;
    return 0;
}

static krb5_error_code
init_no_loop_vtable(krb5_context context, int major, int minor, krb5_plugin_vtable table)
{
    krb5_kdcpreauth_vtable vt = (krb5_kdcpreauth_vtable)table;

    vt->name = "no loop";
    vt->pa_type_list = no_types;
    vt->loop = loop;
    vt->fini = fini;
    return 0;
}

static krb5_error_code
init_vtable(krb5_context context, int major, int minor, krb5_plugin_vtable table)
{
    static krb5_preauthtype types[] = {KDC_FUZZ_PREAUTH, KDC_FUZZ_PREAUTH_TYPED,
                                       KDC_FUZZ_PREAUTH_REQUIRED, KDC_FUZZ_PREAUTH_SUFFICIENT, 0};
    krb5_kdcpreauth_vtable vt = (krb5_kdcpreauth_vtable)table;

    if (major != 1)
        return KRB5_PLUGIN_VER_NOTSUPP;
    vt->name = "fuzz";
    vt->pa_type_list = types;
    vt->flags = flags;
    vt->edata = edata;
    vt->verify = verify;
    vt->return_padata = give_back;
    vt->free_modreq = free_modreq;
    return 0;
}

void
kdc_fuzz_register_preauth(krb5_context context)
{
    need(k5_plugin_register(context, PLUGIN_INTERFACE_KDCPREAUTH, "fuzz", init_vtable), "preauth");
    need(k5_plugin_register(context, PLUGIN_INTERFACE_KDCPREAUTH, "no", init_no_vtable), "preauth");
    need(k5_plugin_register(context, PLUGIN_INTERFACE_KDCPREAUTH, "noloop", init_no_loop_vtable), "preauth");
}

/*** Seeds ***/

/* AS-REQ of alice, with these PA-DATAs; old: of a client that has only RC4. */
static krb5_data
as_request(const struct k5buf *padata, krb5_boolean old)
{
    krb5_enctype types[] = {old ? ENCTYPE_ARCFOUR_HMAC : ENCTYPE_AES256_GCM,
                            ENCTYPE_AES256_CTS_HMAC_SHA1_96};
    krb5_kdc_req req;
    krb5_data *body, whole;

    memset(&req, 0, sizeof(req));
    req.msg_type = KRB5_AS_REQ;
    req.client = world.tgt.client;
    req.server = world.tgt.server;
    req.till = NOW + 3600;
    req.nonce = 1;
    req.nktypes = old ? 1 : 2;
    req.ktype = types;
    need(encode_krb5_kdc_req_body(&req, &body), "body");
    whole = kdc_fuzz_whole_request(KRB5_AS_REQ, padata, body);
    krb5_free_data(world.client, body);
    return whole;
}

static void
put_action(struct k5buf *padata, int type, enum action action, const void *rest, size_t length)
{
    struct k5buf buf;
    krb5_data value;

    k5_buf_init_dynamic(&buf);
    k5_buf_add_fmt(&buf, "%c", (int)action + ACTIONS); /* not 0 */
    k5_buf_add_len(&buf, rest, length);
    value = make_data(buf.data, buf.len);
    kdc_fuzz_put_padata(padata, type, &value);
    k5_buf_free(&buf);
}

/* What the KDC sends along with an error, of one type; for krb5_free_data_contents(). */
static krb5_data
of_error(const krb5_data *reply, krb5_preauthtype type)
{
    krb5_error *error;
    krb5_pa_data **list, *pa;
    krb5_data found = empty_data(), here;

    need(decode_krb5_error(reply, &error), "error");
    need(decode_krb5_padata_sequence(&error->e_data, &list), "e-data");
    pa = krb5int_find_pa_data(world.client, list, type);
    need(pa == NULL ? ENOENT : 0, "PA-DATA of an error");
    here = make_data(pa->contents, pa->length);
    need(krb5int_copy_data_contents(world.client, &here, &found), "memory");
    krb5_free_pa_data(world.client, list);
    krb5_free_error(world.client, error);
    return found;
}

/* These PA-DATAs and this cookie as a seed; what the answer's e-data has of a type. */
static krb5_data
seed(kdc_fuzz_message add, struct k5buf *padata, const krb5_data *cookie, krb5_preauthtype wanted)
{
    krb5_data request, found = empty_data(), *reply;

    if (cookie != NULL)
        kdc_fuzz_put_padata(padata, KRB5_PADATA_FX_COOKIE, cookie);
    request = as_request(padata, FALSE);
    k5_buf_free(padata);
    k5_buf_init_dynamic(padata);
    add(&request);
    reply = kdc_fuzz_ask(&request, 1);
    if (wanted != 0)
        found = of_error(reply, wanted);
    krb5_free_data(NULL, reply);
    free(request.data);
    return found;
}

/* What other mechanisms would send, where it does not belong; and a client of long ago. */
static void
foreign_seeds(kdc_fuzz_message add)
{
    static const krb5_preauthtype types[] = {KRB5_PADATA_S4U_X509_USER,
                                             KRB5_PADATA_ENCRYPTED_CHALLENGE,
                                             KRB5_PADATA_ENC_TIMESTAMP, KRB5_PADATA_FX_COOKIE};
    krb5_data value = string2data("MIT1, and nothing else"), request;
    struct k5buf padata;
    size_t i;

    k5_buf_init_dynamic(&padata);
    for (i = 0; i < sizeof(types) / sizeof(*types); i++) {
        kdc_fuzz_put_padata(&padata, types[i], &value);
        (void)seed(add, &padata, NULL, 0);
    }
    request = as_request(&padata, TRUE);
    add(&request);
    free(request.data);
    k5_buf_free(&padata);
}

/* More than one in a request: each with each. */
static void
several_seeds(kdc_fuzz_message add)
{
    static const int types[] = {KDC_FUZZ_PREAUTH, KDC_FUZZ_PREAUTH_REQUIRED,
                                KDC_FUZZ_PREAUTH_SUFFICIENT, KRB5_PADATA_ENC_TIMESTAMP};
    static const enum action actions[] = {ACTION_REFUSE, ACTION_ACCEPT, ACTION_AUTHDATA};
    struct k5buf padata;
    size_t first, second, action;

    k5_buf_init_dynamic(&padata);
    for (first = 0; first < 4; first++) {
        for (second = 0; second < 4; second++) {
            for (action = 0; action < 3; action++) {
                put_action(&padata, types[first], actions[action], "A", 1);
                put_action(&padata, types[second], actions[(action + second) % 3], "A", 1);
                (void)seed(add, &padata, NULL, 0);
            }
        }
    }
    k5_buf_free(&padata);
}

void
kdc_fuzz_preauth_seeds(kdc_fuzz_message add)
{
    static const struct {
        enum action action;
        const char *rest;
    } simple[] = {{ACTION_ACCEPT, ""},       {ACTION_REFUSE, ""},     {ACTION_NEW_KEY, "key"},
                  {ACTION_STRENGTHEN, "key"}, {ACTION_STRING, "name"}, {ACTION_MATCH, "alice"},
                  {ACTION_MATCH, "bob"},      {ACTION_AUTHDATA, "ad"}, {ACTION_LATER, ""},
                  {ACTION_DROP, ""},          {ACTION_CONTINUE, "no cookie"},
                  {ACTION_ACCEPT, "E"},       {ACTION_REFUSE, "A"},    {ACTION_REFUSE, "L"}};
    struct k5buf padata;
    krb5_data value, empty = empty_data();
    size_t i;

    k5_buf_init_dynamic(&padata);
    for (i = 0; i < sizeof(simple) / sizeof(*simple); i++) {
        put_action(&padata, KDC_FUZZ_PREAUTH, simple[i].action, simple[i].rest,
                   strlen(simple[i].rest));
        (void)seed(add, &padata, NULL, 0);
    }
    several_seeds(add);
    foreign_seeds(add);
    /* Two steps, a cookie between them; the error of a mechanism whose e-data is typed. */
    put_action(&padata, KDC_FUZZ_PREAUTH, ACTION_ASK_MORE, "so far", 6);
    value = seed(add, &padata, NULL, KRB5_PADATA_FX_COOKIE);
    put_action(&padata, KDC_FUZZ_PREAUTH, ACTION_CONTINUE, "so far", 6);
    (void)seed(add, &padata, &value, 0);
    put_action(&padata, KDC_FUZZ_PREAUTH_TYPED, ACTION_ASK_MORE, "so far", 6);
    (void)seed(add, &padata, &value, 0);
    krb5_free_data_contents(world.client, &value);
    /* A token that says when it was made. */
    put_action(&padata, KDC_FUZZ_PREAUTH, ACTION_REFUSE, "", 0);
    kdc_fuzz_put_padata(&padata, KRB5_PADATA_AS_FRESHNESS, &empty);
    value = seed(add, &padata, NULL, KRB5_PADATA_AS_FRESHNESS);
    put_action(&padata, KDC_FUZZ_PREAUTH, ACTION_FRESH, value.data, value.length);
    (void)seed(add, &padata, NULL, 0);
    krb5_free_data_contents(world.client, &value);
    k5_buf_free(&padata);
}
