/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/config.h"

#include <errno.h>
#include <profile.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "dbmodules"
#define DEFAULT_TIMEOUT_MS 5000
#define MIN_TIMEOUT_MS 10
#define MAX_TIMEOUT_MS 60000

/* One configuration being read: where from, and the first error. */
struct reader {
    krb5_context context;
    profile_t profile;
    const char *section;
    krb5_error_code error;
};

static void fail(struct reader *r, const char *name, const char *problem)
{
    if (r->error)
        return;
    r->error = EINVAL;
    krb5_set_error_message(r->context, r->error, "kdc.conf, [dbmodules] %s: %s %s", r->section,
                           name, problem);
}

/* The relation's value, or `fallback` (may be NULL); free with profile_release_string. */
static char *read_string(struct reader *r, const char *name, const char *fallback)
{
    char *value = NULL;
    long ret = profile_get_string(r->profile, SECTION, r->section, name, fallback, &value);

    if (ret && !r->error)
        r->error = ret;
    return value;
}

static char *read_required(struct reader *r, const char *name)
{
    char *value = read_string(r, name, NULL);

    if (value == NULL || *value == '\0')
        fail(r, name, "is missing");
    return value;
}

void config_free_list(char **list)
{
    size_t i;

    for (i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

/* Appends the words of `text` to a list. */
static int append_words(char ***list, size_t *count, const char *text)
{
    char *copy = strdup(text), *save = NULL, *word;
    int ok = copy != NULL;

    for (word = ok ? strtok_r(copy, " \t,", &save) : NULL; word != NULL && ok;
         word = strtok_r(NULL, " \t,", &save)) {
        char **bigger = realloc(*list, (*count + 2) * sizeof(**list));

        ok = bigger != NULL;
        if (!ok)
            break;
        *list = bigger;
        bigger[*count] = strdup(word);
        bigger[*count + 1] = NULL;
        ok = bigger[*count] != NULL;
        *count += ok;
    }
    free(copy);
    return ok;
}

/* The words of all relations with this name. */
static char **read_words(struct reader *r, const char *const *names)
{
    char **values = NULL, **list = calloc(1, sizeof(*list));
    size_t i, count = 0;
    long ret = profile_get_values(r->profile, names, &values);

    if (list == NULL || (ret && ret != PROF_NO_RELATION && ret != PROF_NO_SECTION))
        r->error = list == NULL ? ENOMEM : ret;
    for (i = 0; !r->error && values != NULL && values[i] != NULL; i++)
        if (!append_words(&list, &count, values[i]))
            r->error = ENOMEM;
    profile_free_list(values);
    return list;
}

static char **read_list(struct reader *r, const char *name)
{
    const char *names[] = {SECTION, r->section, name, NULL};

    return read_words(r, names);
}

/* "2s", "500ms"; a bare number means seconds. */
static uint32_t read_timeout(struct reader *r, const char *name)
{
    char *text = read_string(r, name, NULL), *end = NULL;
    uint32_t result = DEFAULT_TIMEOUT_MS;
    unsigned long value;

    if (text != NULL) {
        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno == 0 && value <= MAX_TIMEOUT_MS && strcmp(end, "ms") != 0)
            value *= 1000;
        if (errno != 0 || end == text ||
            (*end != '\0' && strcmp(end, "s") != 0 && strcmp(end, "ms") != 0))
            fail(r, name, "is not a duration such as 2s or 500ms");
        else if (value < MIN_TIMEOUT_MS || value > MAX_TIMEOUT_MS)
            fail(r, name, "must be between 10ms and 60s");
        result = (uint32_t)value;
    }
    profile_release_string(text);
    return result;
}

static int64_t read_cluster(struct reader *r, const char *name)
{
    char *text = read_string(r, name, NULL), *end = NULL;
    int64_t result = -1;
    unsigned long value;

    if (text != NULL) {
        errno = 0;
        value = strtoul(text, &end, 10);
        if (errno != 0 || end == text || *end != '\0' || value > UINT16_MAX)
            fail(r, name, "is not a number from 0 to 65535");
        result = (int64_t)value;
    }
    profile_release_string(text);
    return result;
}

static int read_boolean(struct reader *r, const char *name)
{
    int value = 0;
    long ret = profile_get_boolean(r->profile, SECTION, r->section, name, 0, &value);

    if (ret == PROF_BAD_BOOLEAN)
        fail(r, name, "must be true or false");
    return value;
}

/* One relation with this name: the three servers of a triple. */
static void read_triple(struct reader *r, const char *name, const char *text, char **servers)
{
    char **list = calloc(1, sizeof(*list));
    size_t i, count = 0;

    if (list == NULL || !append_words(&list, &count, text))
        r->error = ENOMEM;
    else if (count != MPC_SERVERS)
        fail(r, name, "must name three servers as host:port, on one line");
    for (i = 0; i < count && count == MPC_SERVERS; i++) {
        if (strrchr(list[i], ':') == NULL)
            fail(r, name, "must name each server as host:port");
        servers[i] = list[i];
        list[i] = NULL;
    }
    if (count == MPC_SERVERS)
        free(list);
    else
        config_free_list(list);
}

/* A relation for each triple. */
static void read_servers(struct reader *r, const char *name, module_config *config)
{
    const char *names[] = {SECTION, r->section, name, NULL};
    char **values = NULL;
    size_t i;
    long ret = profile_get_values(r->profile, names, &values);

    if (ret && ret != PROF_NO_RELATION && ret != PROF_NO_SECTION && !r->error)
        r->error = ret;
    for (i = 0; values != NULL && values[i] != NULL && i < MPC_MAX_TRIPLES; i++)
        read_triple(r, name, values[i], &config->servers[i * MPC_SERVERS]);
    config->triples = i;
    if (i == 0)
        fail(r, name, "is missing");
    else if (values[i] != NULL)
        fail(r, name, "is there for more than 16 triples");
    profile_free_list(values);
}

/* A file for node_exporter, which takes names with this end. */
static char *read_metrics_file(struct reader *r, const char *name)
{
    static const char end[] = ".prom";
    char *file = read_string(r, name, NULL);
    const size_t length = file == NULL ? 0 : strlen(file);

    if (file != NULL && (*file != '/' || length < sizeof(end) ||
                         strcmp(file + length - strlen(end), end) != 0))
        fail(r, name, "must be an absolute path that ends with .prom");
    return file;
}

static char *read_wrapped(struct reader *r, const char *name)
{
    char *wrapped = read_string(r, name, "db2");

    if (wrapped != NULL && strcmp(wrapped, "db2") != 0 && strcmp(wrapped, "klmdb") != 0 &&
        strcmp(wrapped, "kldap") != 0)
        fail(r, name, "must be db2, klmdb or kldap");
    return wrapped;
}

static char *default_realm(struct reader *r)
{
    char *realm = NULL, *copy = NULL;

    r->error = krb5_get_default_realm(r->context, &realm);
    if (!r->error && (copy = strdup(realm)) == NULL)
        r->error = ENOMEM;
    krb5_free_default_realm(r->context, realm);
    return copy;
}

krb5_error_code config_read(krb5_context context, const char *section, module_config **config_out)
{
    struct reader r = {context, NULL, section, 0};
    module_config *config = calloc(1, sizeof(*config));

    *config_out = NULL;
    if (config == NULL)
        return ENOMEM;
    r.error = krb5_get_profile(context, &r.profile);
    if (r.error) {
        free(config);
        return r.error;
    }
    config->realm = default_realm(&r);
    config->wrapped = read_wrapped(&r, "mpc_wrapped");
    read_servers(&r, "mpc_servers", config);
    config->ca_file = read_required(&r, "mpc_ca");
    config->certificate_file = read_string(&r, "mpc_certificate", NULL);
    config->key_file = read_string(&r, "mpc_key", NULL);
    config->admin_certificate_file = read_string(&r, "mpc_admin_certificate", NULL);
    config->admin_key_file = read_string(&r, "mpc_admin_key", NULL);
    config->cluster = read_cluster(&r, "mpc_cluster");
    config->timeout_ms = read_timeout(&r, "mpc_timeout");
    config->service_logins = read_boolean(&r, "mpc_service_logins");
    config->allow_core_dumps = read_boolean(&r, "mpc_allow_core_dumps");
    /* The wrapped module's own relations. */
    config->counts_logins = !read_boolean(&r, "disable_last_success") ||
                            !read_boolean(&r, "disable_lockout");
    config->metrics_file = read_metrics_file(&r, "mpc_metrics_file");
    config->protect = read_list(&r, "mpc_protect");
    config->local = read_list(&r, "mpc_local");
    profile_release(r.profile);
    if (r.error) {
        config_free(config);
        return r.error;
    }
    *config_out = config;
    return 0;
}

void config_free(module_config *config)
{
    int i;

    if (config == NULL)
        return;
    free(config->realm);
    profile_release_string(config->wrapped);
    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        free(config->servers[i]);
    profile_release_string(config->ca_file);
    profile_release_string(config->certificate_file);
    profile_release_string(config->key_file);
    profile_release_string(config->admin_certificate_file);
    profile_release_string(config->admin_key_file);
    profile_release_string(config->metrics_file);
    config_free_list(config->protect);
    config_free_list(config->local);
    free(config);
}

krb5_error_code config_module_dirs(krb5_context context, char ***dirs_out)
{
    const char *names[] = {SECTION, "db_module_dir", NULL};
    struct reader r = {context, NULL, "db_module_dir", 0};

    *dirs_out = NULL;
    r.error = krb5_get_profile(context, &r.profile);
    if (r.error)
        return r.error;
    *dirs_out = read_words(&r, names);
    profile_release(r.profile);
    return r.error;
}

static void fill_options(const module_config *config, const char *certificate_file,
                         const char *key_file, mpc_options *options)
{
    int i;

    memset(options, 0, sizeof(*options));
    options->realm = config->realm;
    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        options->servers[i] = config->servers[i];
    options->triples = config->triples;
    options->ca_file = config->ca_file;
    options->certificate_file = certificate_file;
    options->key_file = key_file;
    options->cluster = config->cluster;
    options->timeout_ms = config->timeout_ms;
}

void config_client_options(const module_config *config, mpc_options *options)
{
    fill_options(config, config->certificate_file, config->key_file, options);
}

krb5_error_code config_admin_options(krb5_context context, const module_config *config,
                                     mpc_options *options)
{
    if (config->admin_certificate_file == NULL || config->admin_key_file == NULL) {
        krb5_set_error_message(context, EINVAL,
                               "kdc.conf: mpc_admin_certificate and mpc_admin_key must be set to "
                               "change the keys of protected principals");
        return EINVAL;
    }
    fill_options(config, config->admin_certificate_file, config->admin_key_file, options);
    return 0;
}
