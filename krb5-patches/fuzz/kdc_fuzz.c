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
#include "kdc_fuzz_parts.h"
#include "../lib/kdb/kdb5.h"
#include "kdc_util.h"
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
#define load_preauth_plugins(handle, context, ctx) \
    (kdc_fuzz_register_preauth(context), load_preauth_plugins(handle, context, ctx))
#include "main.c"
#undef main
#undef verto_run

struct kdc_fuzz_world world;

static void
die(const char *what, krb5_error_code code)
{
    fprintf(stderr, "kdc_fuzz: %s: %s\n", what,
            (code == 0) ? strerror(errno) : error_message(code));
    abort();
}

void
kdc_fuzz_need(krb5_error_code code, const char *what)
{
    if (code)
        die(what, code);
}

/*** A realm ***/

static char folder[40]; /* in memory if there is a place: the database is read for every request */

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
            "[libdefaults]\ndefault_realm = %s\ndns_lookup_kdc = false\ndns_lookup_realm = false\n"
            "dns_canonicalize_hostname = false\n"
            "permitted_enctypes = aes256-gcm aes128-gcm DEFAULT\nallow_rc4 = true\n"
            "[realms]\n%s = {\nkdc = 127.0.0.1:1\ndatabase_module = db\nkey_stash_file = %s/stash\n"
            "max_renewable_life = 7d\nsupported_enctypes = aes256-cts:normal aes256-gcm:normal "
            "aes128-sha2:normal\n"
            "kdc_listen = \"\"\nkdc_tcp_listen = \"\"\nencrypted_challenge_indicator = "
            "ec\nspake_preauth_groups = edwards25519\n"
            "host_based_services = \"HTTP\"\nno_host_referral = \"nfs\"\n"
            "remote_session_enctypes = aes128-gcm\n}\n"
            "[kdcdefaults]\nkdc_max_dgram_reply_size = 700\n"
            "[capaths]\nTHIRD.TEST = {\n%s = OTHER.TEST\n}\n"
            "[dbmodules]\ndb = {\ndb_library = db2\ndatabase_name = %s/principal\n"
            "disable_last_success = true\ndisable_lockout = true\n}\n"
            "[domain_realm]\n.other.test = OTHER.TEST\n.fourth.test = FOURTH.TEST\n"
            "[logging]\nkdc = FILE:/dev/null\ndefault = FILE:/dev/null\n",
            REALM, REALM, folder, REALM, folder);
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
    static const char *const queries[] = {"cpw -keepold -pw krbtgt krbtgt/" REALM,
                                          "addprinc -pw alice +requires_preauth alice",
                                          "addprinc -pw bob bob",
                                          "addprinc -pw host host/h.fuzz.test",
                                          "addprinc -pw other krbtgt/OTHER.TEST@" REALM,
                                          "addprinc -pw back krbtgt/" REALM "@OTHER.TEST",
                                          "addprinc -pw anon WELLKNOWN/ANONYMOUS",
                                          "modprinc +ok_to_auth_as_delegate host/h.fuzz.test",
                                          "setstr bob session_enctypes aes128-sha2",
                                          /* Of whom policies say something. */
                                          "addprinc -pw deny -allow_postdated -allow_renewable "
                                          "-allow_forwardable -allow_proxiable -allow_dup_skey deny",
                                          "addprinc -pw strict +requires_preauth "
                                          "+requires_hwauth strict",
                                          "addprinc -pw off -allow_tix off",
                                          "addprinc -pw expired -expire 2020-01-01 expired",
                                          "addprinc -pw old -pwexpire 2020-01-01 old",
                                          "addprinc -pw change +needchange change",
                                          "addprinc -pw user -allow_svr user",
                                          "addprinc -pw notgt -allow_tgs_req notgt",
                                          "addprinc -pw bare +no_auth_data_required "
                                          "-maxlife 1h bare",
                                          "addprinc -pw rbcd host/rbcd.fuzz.test",
                                          "addprinc -pw front host/front.fuzz.test",
                                          "addprinc -pw indicated indicated",
                                          "setstr indicated require_auth ec",
                                          "setstr alice name value",
                                          "addprinc -pw policy policy",
                                          "addprinc -pw gcm -e aes256-gcm:normal gcm",
                                          "addprinc -pw rc4 -e aes256-cts:normal,arcfour-hmac:normal rc4",
                                          "addprinc -pw late -expire 2035-01-01 -pwexpire 2034-01-01 late",
                                          "addprinc -pw trusted +ok_as_delegate trusted"};
    char command[300];
    size_t i;

    snprintf(folder, sizeof(folder), "%s/kdc-fuzz.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
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

verto_ctx *
kdc_fuzz_loop(void)
{
    return the_loop;
}

void
kdc_fuzz_key(const char *name, krb5_keyblock *key)
{
    krb5_context context = shandle.kdc_realmlist[0]->realm_context;
    krb5_db_entry *entry;
    krb5_key_data *data;
    krb5_principal princ;

    need(krb5_parse_name(context, name, &princ), name);
    need(krb5_db_get_principal(context, princ, 0, &entry), name);
    need(krb5_dbe_find_enctype(context, entry, -1, -1, 0, &data), name);
    need(krb5_dbe_decrypt_key_data(context, NULL, data, key, NULL), name);
    krb5_db_free_principal(context, entry);
    krb5_free_principal(context, princ);
}

/*** Who may act for others, and other policies of which a database of DB2 knows nothing ***/

static krb5_boolean
is(krb5_const_principal princ, const char *name)
{
    return princ != NULL && princ->length == 2 && data_eq_string(princ->data[1], name);
}

/* host/h for whom it likes; and host/front, for nobody that it could name. */
static krb5_error_code
may_delegate(krb5_context context, krb5_const_principal who, const krb5_db_entry *server,
             krb5_const_principal proxy)
{
    if (proxy == NULL)
        return is(server->princ, "front.fuzz.test") ? 0 : KRB5_PLUGIN_OP_NOTSUPP;
    return is(server->princ, "h.fuzz.test") && !is(proxy, "rbcd.fuzz.test") ? 0
                                                                            : KRB5KDC_ERR_BADOPTION;
}

static krb5_error_code
may_delegate_from(krb5_context context, krb5_const_principal who, krb5_const_principal server,
                  krb5_pac server_pac, const krb5_db_entry *proxy)
{
    return is(proxy->princ, "rbcd.fuzz.test") ? 0 : KRB5KDC_ERR_BADOPTION;
}

/* Nobody may what has to do with the principal called policy. */
static krb5_error_code
refuse_policy(krb5_const_principal princ, const char **status)
{
    if (princ == NULL || princ->length != 1 || !data_eq_string(princ->data[0], "policy"))
        return 0;
    *status = "POLICY";
    return KRB5KDC_ERR_POLICY;
}

static krb5_error_code
check_login(krb5_context context, krb5_kdc_req *request, krb5_db_entry *client,
            krb5_db_entry *server, krb5_timestamp now, const char **status,
            krb5_pa_data ***e_data)
{
    return refuse_policy(client->princ, status);
}

static krb5_error_code
check_ticket(krb5_context context, krb5_kdc_req *request, krb5_db_entry *server,
             krb5_ticket *ticket, const char **status, krb5_pa_data ***e_data)
{
    krb5_data empty = empty_data();
    krb5_error_code ret = refuse_policy(server->princ, status);

    if (ret)
        need(k5_add_pa_data_from_data(e_data, KDC_FUZZ_PREAUTH, &empty), "e-data");
    return ret;
}

static void
add_to_database(void)
{
    int i;

    for (i = 0; i < shandle.kdc_numrealms; i++) {
        kdb_vftabl *table =
            &shandle.kdc_realmlist[i]->realm_context->dal_handle->lib_handle->vftabl;

        table->check_allowed_to_delegate = may_delegate;
        table->allowed_to_delegate_from = may_delegate_from;
        table->check_policy_as = check_login;
        table->check_policy_tgs = check_ticket;
        kdc_fuzz_remote_start(table);
    }
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

static const krb5_data *asked; /* in progress */
static int asked_by_tcp;
static krb5_data meanwhile; /* a second request, if it is in progress too */
static struct answer meanwhile_answer;
int kdc_fuzz_address_type = ADDRTYPE_INET;
static unsigned char localhost[4] = {127, 0, 0, 1};

/* Whether the second request, if there is one, has its answer. */
static krb5_boolean
meanwhile_done(void)
{
    return meanwhile.data == NULL || meanwhile_answer.given > 0;
}

static void
finish_meanwhile(void)
{
    if (meanwhile.data == NULL)
        return;
    if (meanwhile_answer.given != 1)
        abort();
    krb5_free_data(NULL, meanwhile_answer.reply);
    if (meanwhile.length > asked->length)
        kdc_fuzz_forget(&meanwhile);
    free(meanwhile.data);
    meanwhile = empty_data();
}

krb5_data *
kdc_fuzz_ask(const krb5_data *request, int is_tcp)
{
    krb5_address address = {KV5M_ADDRESS, kdc_fuzz_address_type, 4, localhost};
    krb5_fulladdr full = {&address, 88};
    struct answer answer = {0, NULL};
    int turns;

    asked = request;
    asked_by_tcp = is_tcp;
    dispatch(&shandle, &full, &full, (krb5_data *)request, is_tcp, the_loop, take, &answer);
    for (turns = 0; (answer.given == 0 || !meanwhile_done()) && turns < 10000; turns++)
        verto_run_once(the_loop);
    finish_meanwhile();
    if (answer.given != 1) {
        fprintf(stderr, "kdc_fuzz: answered %d times\n", answer.given);
        abort();
    }
    return answer.reply;
}

void
kdc_fuzz_restrict_anonymous(krb5_boolean only_tgt)
{
    shandle.kdc_realmlist[0]->realm_restrict_anon = only_tgt;
}

/* What was remembered of a request is freed: else each would leave memory behind, libFuzzer would look for
 * leaks after each of a thousand inputs, and then never again; and the same input would not do the same. */
void
kdc_fuzz_forget(const krb5_data *request)
{
    kdc_remove_lookaside(shandle.kdc_err_context, (krb5_data *)request);
}

/* The same is true of what contexts have to say of the last error. */
void
kdc_fuzz_forget_errors(void)
{
    int i;

    for (i = 0; i < shandle.kdc_numrealms; i++)
        krb5_clear_error_message(shandle.kdc_realmlist[i]->realm_context);
    krb5_clear_error_message(shandle.kdc_err_context);
    krb5_clear_error_message(world.client);
}

void
kdc_fuzz_ask_meanwhile(krb5_boolean another)
{
    static krb5_address address;
    static krb5_fulladdr full = {&address, 88};

    if (meanwhile.data != NULL)
        return; /* it is the second request which waits */
    address = (krb5_address){KV5M_ADDRESS, ADDRTYPE_INET, 4, localhost};
    need(alloc_data(&meanwhile, asked->length + 1), "memory");
    memcpy(meanwhile.data, asked->data, asked->length);
    meanwhile.length = asked->length + (another ? 1 : 0);
    meanwhile_answer = (struct answer){0, NULL};
    dispatch(&shandle, &full, &full, &meanwhile, asked_by_tcp, the_loop, take, &meanwhile_answer);
    if (!another && (meanwhile_answer.given != 1 || meanwhile_answer.reply != NULL))
        abort();
    if (meanwhile_done())
        finish_meanwhile();
}

void
kdc_fuzz_start(const char *tools)
{
    __lsan_disable(); /* main() never comes back to free what it holds */
    make_realm(tools);
    start_kdc();
    add_to_database();
    __lsan_enable();
    need(krb5_init_context(&world.client), "context");
    need(krb5_set_debugging_time(world.client, NOW, 0), "stopping the clock");
    kdc_fuzz_key("krbtgt/" REALM, &world.krbtgt_key);
    kdc_fuzz_log_in_alice();
    kdc_fuzz_compose_start();
}
