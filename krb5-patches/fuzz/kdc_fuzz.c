/* SPDX-License-Identifier: Apache-2.0 */
/*
 * krb5kdc in this process, without a network: its main() runs as far as its event loop, and
 * requests are given to dispatch(). A realm of its own is made beforehand with the installed tools.
 * Keys come from passwords and the KDC's clock stands still, so that a request which is kept says
 * the same for ever.
 *
 * Most of a KDC lies behind encryption, where bytes that a fuzzer draws do not get. So there are
 * several kinds of inputs, and all but the first two are encrypted here as a client who has a TGT
 * can do it.
 */
#include "k5-int.h"
#include "k5-int-pkinit.h"
#include "net-server.h"
#include <sanitizer/lsan_interface.h>
#include <setjmp.h>
#include <sys/stat.h>
#include <sys/wait.h>

static jmp_buf started;
static verto_ctx *the_loop;

/* What main() would do for ever, or with sockets. */
#define main kdc_main
#define verto_run(ctx) (the_loop = (ctx), longjmp(started, 1))
#define loop_setup_network(ctx, handle, name, backlog) 0
#define loop_setup_signals(ctx, handle, reset) 0
#include "main.c"
#undef main
#undef verto_run

#include "kdc_fuzz.h"

#define NOW 1800000000
#define REALM "FUZZ.TEST"
#define MOST_BYTES 8192

static krb5_context client;
static krb5_creds *tgt;        /* of alice */
static krb5_keyblock *session; /* of it */
static krb5_keyblock krbtgt_key;
static krb5_data sample_body; /* KDC-REQ-BODY of a request for a service */
static krb5_ticket *tgt_ticket;

static void
die(const char *what, krb5_error_code code)
{
    fprintf(stderr, "kdc_fuzz: %s: %s\n", what,
            (code == 0) ? strerror(errno) : error_message(code));
    abort();
}

static void
need(krb5_error_code code, const char *what)
{
    if (code)
        die(what, code);
}

/*** A realm ***/

static char folder[] = "/tmp/kdc-fuzz.XXXXXX";

static void
remove_folder(void)
{
    char command[100];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    if (system(command) != 0)
        perror(folder);
}

static void
write_config(void)
{
    char path[100];
    FILE *f;

    snprintf(path, sizeof(path), "%s/krb5.conf", folder);
    f = fopen(path, "w");
    if (f == NULL)
        die(path, 0);
    fprintf(f,
            "[libdefaults]\ndefault_realm = %s\ndns_lookup_kdc = false\ndns_canonicalize_hostname "
            "= false\n"
            "permitted_enctypes = aes256-gcm aes128-gcm DEFAULT\n"
            "[realms]\n%s = {\nkdc = 127.0.0.1:1\ndatabase_module = db\nkey_stash_file = %s/stash\n"
            "max_renewable_life = 7d\nsupported_enctypes = aes256-cts:normal aes256-gcm:normal "
            "aes128-sha2:normal\n"
            "kdc_listen = \"\"\nkdc_tcp_listen = \"\"\nencrypted_challenge_indicator = "
            "ec\nspake_preauth_groups = edwards25519\n}\n"
            "[dbmodules]\ndb = {\ndb_library = db2\ndatabase_name = %s/principal\n"
            "disable_last_success = true\ndisable_lockout = true\n}\n"
            "[logging]\nkdc = FILE:/dev/null\ndefault = FILE:/dev/null\n",
            REALM, REALM, folder, folder);
    if (fclose(f) != 0)
        die(path, 0);
    setenv("KRB5_CONFIG", path, 1);
    setenv("KRB5_KDC_PROFILE", path, 1);
}

static void
run(const char *tools, const char *command)
{
    char line[1000];

    snprintf(line, sizeof(line),
             "ASAN_OPTIONS=detect_leaks=0 LLVM_PROFILE_FILE=/dev/null %s/sbin/%s > %s/log 2>&1",
             tools, command, folder);
    if (system(line) != 0)
        die(line, 0);
}

static void
make_realm(const char *tools)
{
    static const char *const queries[] = {"cpw -pw krbtgt krbtgt/" REALM,
                                          "addprinc -pw alice +requires_preauth alice",
                                          "addprinc -pw bob bob",
                                          "addprinc -pw host host/h.fuzz.test",
                                          "addprinc -pw other krbtgt/OTHER.TEST@" REALM,
                                          "addprinc -pw back krbtgt/" REALM "@OTHER.TEST",
                                          "addprinc -pw anon WELLKNOWN/ANONYMOUS",
                                          "modprinc +ok_to_auth_as_delegate host/h.fuzz.test",
                                          "setstr bob session_enctypes aes128-sha2"};
    char command[300];
    size_t i;

    if (mkdtemp(folder) == NULL)
        die(folder, 0);
    (void)atexit(remove_folder);
    write_config();
    run(tools, "kdb5_util create -s -P master");
    for (i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
        snprintf(command, sizeof(command), "kadmin.local -q '%s'", queries[i]);
        run(tools, command);
    }
}

static void
start_kdc(void)
{
    static char *argv[] = {"krb5kdc", "-n", "-r", REALM, NULL};
    int i;

    if (setjmp(started) == 0)
        exit(kdc_main(4, argv));
    need(krb5_set_debugging_time(shandle.kdc_err_context, NOW, 0), "stopping the clock");
    for (i = 0; i < shandle.kdc_numrealms; i++)
        need(krb5_set_debugging_time(shandle.kdc_realmlist[i]->realm_context, NOW, 0),
             "stopping the clock");
}

static void
fetch_krbtgt_key(void)
{
    krb5_context context = shandle.kdc_realmlist[0]->realm_context;
    krb5_db_entry *entry;
    krb5_key_data *data;

    need(krb5_db_get_principal(context, shandle.kdc_realmlist[0]->realm_tgsprinc, 0, &entry),
         "krbtgt");
    need(krb5_dbe_find_enctype(context, entry, -1, -1, 0, &data), "krbtgt's key");
    need(krb5_dbe_decrypt_key_data(context, NULL, data, &krbtgt_key, NULL), "krbtgt's key");
    krb5_db_free_principal(context, entry);
}

/*** Requests ***/

struct answer {
    int given;
    krb5_data *reply;
};

static void
take(void *arg, krb5_error_code code, krb5_data *reply)
{
    struct answer *a = arg;

    a->given++;
    a->reply = (code == 0) ? reply : NULL;
    if (code != 0)
        krb5_free_data(NULL, reply);
}

/* What the KDC answers; for krb5_free_data(). */
static krb5_data *
ask(const krb5_data *request, int is_tcp)
{
    static unsigned char bytes[4] = {127, 0, 0, 1};
    krb5_address address = {KV5M_ADDRESS, ADDRTYPE_INET, 4, bytes};
    krb5_fulladdr full = {&address, 88};
    struct answer answer = {0, NULL};
    int turns;

    dispatch(&shandle, &full, &full, (krb5_data *)request, is_tcp, the_loop, take, &answer);
    for (turns = 0; answer.given == 0 && turns < 10000; turns++)
        verto_run_once(the_loop);
    if (answer.given != 1) {
        fprintf(stderr, "kdc_fuzz: answered %d times\n", answer.given);
        abort();
    }
    return answer.reply;
}

/*** DER, written behind what comes inside ***/

static void
put_tlv(struct k5buf *out, unsigned char tag, const void *contents, size_t length)
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

static void
put_in(struct k5buf *out, unsigned char outer, unsigned char inner, const void *contents,
       size_t length)
{
    struct k5buf one;

    k5_buf_init_dynamic(&one);
    put_tlv(&one, inner, contents, length);
    put_tlv(out, outer, one.data, one.len);
    k5_buf_free(&one);
}

/* AS-REQ or TGS-REQ with these PA-DATAs and this body, which may be any bytes. */
static krb5_data
kdc_req(unsigned char type, const struct k5buf *padata, const krb5_data *body)
{
    static const unsigned char five = 5;
    struct k5buf inside, whole;
    krb5_data out;

    k5_buf_init_dynamic(&inside);
    put_in(&inside, 0xa1, 0x02, &five, 1);
    put_in(&inside, 0xa2, 0x02, &type, 1);
    put_in(&inside, 0xa3, 0x30, padata->data, padata->len);
    put_tlv(&inside, 0xa4, body->data, body->length);
    k5_buf_init_dynamic(&whole);
    put_in(&whole, 0x60 | type, 0x30, inside.data, inside.len);
    k5_buf_free(&inside);
    out = make_data(whole.data, whole.len);
    return out;
}

static void
put_padata(struct k5buf *out, int type, const krb5_data *value)
{
    unsigned char number[2] = {type >> 8, type & 0xff};
    struct k5buf one;

    k5_buf_init_dynamic(&one);
    put_in(&one, 0xa1, 0x02, number, 2);
    put_in(&one, 0xa2, 0x04, value->data, value->length);
    put_tlv(out, 0x30, one.data, one.len);
    k5_buf_free(&one);
}

/*** As who has a TGT ***/

/* An AP-REQ with this ticket and key; with a subkey if there is one, with a checksum of body if
 * there is. */
static krb5_data *
ap_req(krb5_ticket *ticket, const krb5_keyblock *key, krb5_principal who, krb5_keyblock *subkey,
       const krb5_data *body, krb5_keyusage usage)
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
    if (body != NULL) {
        if (krb5_c_make_checksum(client, 0, key, KRB5_KEYUSAGE_TGS_REQ_AUTH_CKSUM, body, &sum) != 0)
            return NULL;
        authent.checksum = &sum;
    }
    need(encode_krb5_authenticator(&authent, &plain), "authenticator");
    req.ticket = ticket;
    if (krb5_encrypt_helper(client, key, usage, plain, &req.authenticator) != 0)
        out = NULL;
    else
        need(encode_krb5_ap_req(&req, &out), "AP-REQ");
    krb5_free_data(client, plain);
    krb5_free_checksum_contents(client, &sum);
    free(req.authenticator.ciphertext.data);
    return out;
}

/* The TGS-REQ for body; more: further PA-DATAs. */
static void
ask_tgs(krb5_ticket *ticket, const krb5_keyblock *key, krb5_principal who, const krb5_data *more,
        const krb5_data *body)
{
    krb5_data *ap = ap_req(ticket, key, who, NULL, body, KRB5_KEYUSAGE_TGS_REQ_AUTH), request;
    struct k5buf padata;

    if (ap == NULL)
        return;
    k5_buf_init_dynamic(&padata);
    put_padata(&padata, KRB5_PADATA_AP_REQ, ap);
    if (more != NULL)
        k5_buf_add_len(&padata, more->data, more->length);
    request = kdc_req(KRB5_TGS_REQ, &padata, body);
    krb5_free_data(NULL, ask(&request, 1));
    k5_buf_free(&padata);
    free(request.data);
    krb5_free_data(client, ap);
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
    ask_tgs(tgt_ticket, session, tgt->client, &more, &body);
}

/* EncTicketPart: what a KDC that had krbtgt's key would have written. */
static void
try_ticket(const krb5_data *in)
{
    krb5_enc_tkt_part *part = NULL;
    krb5_ticket ticket = *tgt_ticket;
    krb5_principal who = tgt->client;
    const krb5_keyblock *key = session;

    if (decode_krb5_enc_tkt_part(in, &part) == 0) {
        if (part->client != NULL)
            who = part->client;
        if (part->session != NULL && krb5_c_valid_enctype(part->session->enctype))
            key = part->session;
    }
    memset(&ticket.enc_part, 0, sizeof(ticket.enc_part));
    if (krb5_encrypt_helper(client, &krbtgt_key, KRB5_KEYUSAGE_KDC_REP_TICKET, in,
                            &ticket.enc_part) == 0)
        ask_tgs(&ticket, key, who, NULL, &sample_body);
    free(ticket.enc_part.ciphertext.data);
    krb5_free_enc_tkt_part(client, part);
}

/* KrbFastReq, in an AS-REQ whose armor is the TGT. */
static void
try_fast(const krb5_data *in)
{
    krb5_keyblock *armor, *subkey;
    krb5_fast_armored_req req;
    krb5_fast_armor fast_armor;
    krb5_data *ap, *value, request;
    struct k5buf padata;

    memset(&req, 0, sizeof(req));
    need(krb5_copy_keyblock(client, session, &subkey), "subkey");
    ap = ap_req(tgt_ticket, session, tgt->client, subkey, NULL, KRB5_KEYUSAGE_AP_REQ_AUTH);
    need(krb5_c_fx_cf2_simple(client, subkey, "subkeyarmor", session, "ticketarmor", &armor),
         "armor key");
    fast_armor.armor_type = KRB5_FAST_ARMOR_AP_REQUEST;
    fast_armor.armor_value = *ap;
    req.armor = &fast_armor;
    need(krb5_c_make_checksum(client, 0, armor, KRB5_KEYUSAGE_FAST_REQ_CHKSUM, &sample_body,
                              &req.req_checksum),
         "checksum");
    need(krb5_encrypt_helper(client, armor, KRB5_KEYUSAGE_FAST_ENC, in, &req.enc_part),
         "FAST request");
    need(encode_krb5_pa_fx_fast_request(&req, &value), "FAST request");
    k5_buf_init_dynamic(&padata);
    put_padata(&padata, KRB5_PADATA_FX_FAST, value);
    request = kdc_req(KRB5_AS_REQ, &padata, &sample_body);
    krb5_free_data(NULL, ask(&request, 0));
    free(request.data);
    k5_buf_free(&padata);
    krb5_free_data(client, value);
    free(req.enc_part.ciphertext.data);
    krb5_free_checksum_contents(client, &req.req_checksum);
    krb5_free_keyblock(client, armor);
    krb5_free_keyblock(client, subkey);
    krb5_free_data(client, ap);
}

void
kdc_fuzz_try(const uint8_t *bytes, size_t size)
{
    krb5_data in;

    if (size < 1 || size > MOST_BYTES)
        return;
    /* A copy of its very size: so that who reads past its end is seen. */
    need(alloc_data(&in, size - 1), "memory");
    memcpy(in.data, bytes + 1, size - 1);
    switch (bytes[0] % KDC_FUZZ_KINDS) {
        case KDC_FUZZ_UDP:
        case KDC_FUZZ_TCP:
            krb5_free_data(NULL, ask(&in, bytes[0] % KDC_FUZZ_KINDS == KDC_FUZZ_TCP));
            break;
        case KDC_FUZZ_BODY:
            try_body(&in);
            break;
        case KDC_FUZZ_TICKET:
            try_ticket(&in);
            break;
        case KDC_FUZZ_FAST:
            try_fast(&in);
            break;
    }
    free(in.data);
}

/*** Seeds: what MIT's own client sends ***/

static kdc_fuzz_seed seed_fn;
static void *seed_arg;

static void
add_seed(int kind, const void *prefix, size_t prefix_length, const krb5_data *data)
{
    struct k5buf buf;

    if (seed_fn == NULL)
        return;
    k5_buf_init_dynamic(&buf);
    k5_buf_add_fmt(&buf, "%c", kind + KDC_FUZZ_KINDS); /* not 0 */
    k5_buf_add_len(&buf, prefix, prefix_length);
    k5_buf_add_len(&buf, data->data, data->length);
    seed_fn(seed_arg, buf.data, buf.len);
    k5_buf_free(&buf);
}

/* Asks the KDC; the answer's contents are the caller's. */
static krb5_data
exchange(const krb5_data *request)
{
    krb5_data *reply = ask(request, 1), out = empty_data();

    add_seed(KDC_FUZZ_UDP, NULL, 0, request);
    if (reply != NULL)
        need(krb5int_copy_data_contents(client, reply, &out), "memory");
    krb5_free_data(NULL, reply);
    return out;
}

static krb5_error_code
log_in(const char *name, const char *password, const char *service, krb5_get_init_creds_opt *opt,
       krb5_creds *creds)
{
    krb5_data reply = empty_data(), request, realm;
    krb5_init_creds_context step;
    unsigned int flags = KRB5_INIT_CREDS_STEP_FLAG_CONTINUE;
    krb5_error_code ret;
    krb5_principal princ;

    need(krb5_parse_name(client, name, &princ), name);
    need(krb5_init_creds_init(client, princ, NULL, NULL, 0, opt, &step), "init_creds");
    need(krb5_init_creds_set_password(client, step, password), "password");
    if (service != NULL)
        need(krb5_init_creds_set_service(client, step, service), "service");
    do {
        ret = krb5_init_creds_step(client, step, &reply, &request, &realm, &flags);
        krb5_free_data_contents(client, &reply);
        reply = empty_data();
        if (ret == 0 && (flags & KRB5_INIT_CREDS_STEP_FLAG_CONTINUE))
            reply = exchange(&request);
        if (ret == 0) {
            krb5_free_data_contents(client, &request);
            krb5_free_data_contents(client, &realm);
        }
    } while (ret == 0 && (flags & KRB5_INIT_CREDS_STEP_FLAG_CONTINUE));
    krb5_free_data_contents(client, &reply);
    if (ret == 0 && creds != NULL)
        ret = krb5_init_creds_get_creds(client, step, creds);
    krb5_init_creds_free(client, step);
    krb5_free_principal(client, princ);
    return ret;
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
    in.client = tgt->client;
    need(krb5_parse_name(client, service, &in.server), service);
    need(krb5_tkt_creds_init(client, cache, &in, options, &step), "tkt_creds");
    do {
        ret = krb5_tkt_creds_step(client, step, &reply, &request, &realm, &flags);
        krb5_free_data_contents(client, &reply);
        reply = empty_data();
        if (ret == 0 && (flags & KRB5_TKT_CREDS_STEP_FLAG_CONTINUE))
            reply = exchange(&request);
        if (ret == 0) {
            krb5_free_data_contents(client, &request);
            krb5_free_data_contents(client, &realm);
        }
    } while (ret == 0 && (flags & KRB5_TKT_CREDS_STEP_FLAG_CONTINUE));
    krb5_free_data_contents(client, &reply);
    krb5_tkt_creds_free(client, step);
    krb5_free_principal(client, in.server);
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

    memset(&req, 0, sizeof(req));
    need(krb5_parse_name(client, "host/h.fuzz.test", &server), "host");
    req.msg_type = KRB5_TGS_REQ;
    req.kdc_options = KDC_OPT_FORWARDABLE | KDC_OPT_CANONICALIZE;
    req.client = tgt->client;
    req.server = server;
    req.till = NOW + 3600;
    req.nonce = 1;
    req.nktypes = 2;
    req.ktype = types;
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    sample_body = *out;
    free(out);
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, &sample_body);
    req.kdc_options |= KDC_OPT_RENEW | KDC_OPT_PROXY | KDC_OPT_FORWARDED;
    req.second_ticket = (krb5_ticket *[]){tgt_ticket, NULL};
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, out);
    krb5_free_data(client, out);
    req.kdc_options = KDC_OPT_ENC_TKT_IN_SKEY | KDC_OPT_CNAME_IN_ADDL_TKT;
    need(encode_krb5_kdc_req_body(&req, &out), "body");
    add_seed(KDC_FUZZ_BODY, "\0\0", 2, out);
    krb5_free_data(client, out);

    memset(&fast, 0, sizeof(fast));
    req.second_ticket = NULL;
    req.kdc_options = KDC_OPT_FORWARDABLE;
    fast.req_body = &req;
    req.padata = (krb5_pa_data *[]){NULL};
    need(encode_krb5_fast_req(&fast, &out), "FAST request");
    add_seed(KDC_FUZZ_FAST, NULL, 0, out);
    krb5_free_data(client, out);

    krb5_free_enc_tkt_part(client, tgt_ticket->enc_part2);
    tgt_ticket->enc_part2 = NULL;
    need(krb5_decrypt_tkt_part(client, &krbtgt_key, tgt_ticket), "the TGT's inside");
    need(encode_krb5_enc_tkt_part(tgt_ticket->enc_part2, &out), "the TGT's inside");
    add_seed(KDC_FUZZ_TICKET, NULL, 0, out);
    krb5_free_data(client, out);
    krb5_free_principal(client, server);
}

static void
client_seeds(void)
{
    krb5_get_init_creds_opt *opt;
    krb5_ccache cache;

    need(krb5_cc_new_unique(client, "MEMORY", NULL, &cache), "cache");
    need(krb5_cc_initialize(client, cache, tgt->client), "cache");
    need(krb5_cc_store_cred(client, cache, tgt), "cache");
    get_ticket(cache, "host/h.fuzz.test", 0);
    get_ticket(cache, "host/h.fuzz.test", KRB5_GC_FORWARDABLE | KRB5_GC_NO_STORE);
    get_ticket(cache, "bob", 0);
    get_ticket(cache, "host/nobody.fuzz.test", KRB5_GC_CANONICALIZE);
    get_ticket(cache, "krbtgt/OTHER.TEST", 0);
    (void)log_in("alice", "wrong", NULL, NULL, NULL);
    (void)log_in("nobody", "nobody", NULL, NULL, NULL);
    (void)log_in("bob", "bob", "host/h.fuzz.test", NULL, NULL);
    need(krb5_get_init_creds_opt_alloc(client, &opt), "options");
    krb5_get_init_creds_opt_set_forwardable(opt, 1);
    krb5_get_init_creds_opt_set_renew_life(opt, 86400);
    krb5_get_init_creds_opt_set_canonicalize(opt, 1);
    (void)log_in("bob", "bob", NULL, opt, NULL);
    need(krb5_get_init_creds_opt_set_fast_ccache(client, opt, cache), "armor");
    (void)log_in("alice", "alice", NULL, opt, NULL);
    (void)log_in("bob", "bob", NULL, opt, NULL);
    krb5_get_init_creds_opt_free(client, opt);
    krb5_cc_destroy(client, cache);
}

void
kdc_fuzz_start(const char *tools)
{
    static krb5_creds creds;

    __lsan_disable(); /* main() never comes back to free what it holds */
    make_realm(tools);
    start_kdc();
    __lsan_enable();
    need(krb5_init_context(&client), "context");
    need(krb5_set_debugging_time(client, NOW, 0), "stopping the clock");
    fetch_krbtgt_key();
    need(log_in("alice", "alice", NULL, NULL, &creds), "alice logs in");
    tgt = &creds;
    session = &creds.keyblock;
    need(decode_krb5_ticket(&creds.ticket, &tgt_ticket), "the TGT");
    inner_seeds();
}

void
kdc_fuzz_seeds(kdc_fuzz_seed fn, void *arg)
{
    seed_fn = fn;
    seed_arg = arg;
    (void)log_in("alice", "alice", NULL, NULL, NULL);
    free(sample_body.data);
    inner_seeds();
    client_seeds();
    seed_fn = NULL;
}
