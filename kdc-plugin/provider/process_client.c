/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/provider/process_client.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct served_realm {
    struct served_realm *next;
    mpc_options options; /* strings are ours */
    mpc_client *client;  /* NULL before its first job */
} served_realm;

/* A database that is open. */
typedef struct open_context {
    struct open_context *next;
    krb5_context context;
    served_realm *realm;
} open_context;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static served_realm *realms;
static open_context *opened;
static int any_context; /* see client_contexts */

static int same_text(const char *a, const char *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return strcmp(a, b) == 0;
}

static int same_servers(const mpc_options *a, const mpc_options *b)
{
    int i, same = 1;

    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        same = same && same_text(a->servers[i], b->servers[i]);
    return same;
}

static const char *copy_text(const char *text, int *failed)
{
    char *copy = (text == NULL) ? NULL : strdup(text);

    if (text != NULL && copy == NULL)
        *failed = 1;
    return copy;
}

static void free_options(mpc_options *o)
{
    int i;

    free((char *)o->realm);
    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        free((char *)o->servers[i]);
    free((char *)o->ca_file);
    free((char *)o->certificate_file);
    free((char *)o->key_file);
}

/* Returns 0 without memory; *copy is to be freed in any case. */
static int copy_options(const mpc_options *from, mpc_options *copy)
{
    int i, failed = 0;

    *copy = *from;
    copy->realm = copy_text(from->realm, &failed);
    for (i = 0; i < MPC_MAX_TRIPLES * MPC_SERVERS; i++)
        copy->servers[i] = copy_text(from->servers[i], &failed);
    copy->ca_file = copy_text(from->ca_file, &failed);
    copy->certificate_file = copy_text(from->certificate_file, &failed);
    copy->key_file = copy_text(from->key_file, &failed);
    return !failed;
}

/* The place of a realm in the list, or of the next one. */
static served_realm **find_realm(const char *name)
{
    served_realm **place = &realms;

    while (*place != NULL && !same_text((*place)->options.realm, name))
        place = &(*place)->next;
    return place;
}

static open_context **find_context(krb5_context context)
{
    open_context **place = &opened;

    while (*place != NULL && (*place)->context != context)
        place = &(*place)->next;
    return place;
}

/* Whose servers an operation of this context is for; NULL: nobody's. */
static served_realm *realm_of(krb5_context context)
{
    const open_context *known = *find_context(context);

    if (known != NULL)
        return known->realm;
    return any_context && realms != NULL && realms->next == NULL ? realms : NULL;
}

/* With the lock. The options become the realm's. Returns it, or NULL as process_client_configure. */
static served_realm *serve(mpc_options *options)
{
    served_realm **place = find_realm(options->realm), *realm = *place;
    mpc_options old;

    if (realm != NULL && !same_servers(&realm->options, options))
        return NULL;
    if (realm == NULL)
        realm = *place = calloc(1, sizeof(*realm));
    if (realm == NULL)
        return NULL;
    old = realm->options;
    realm->options = *options;
    *options = old;
    return realm;
}

int process_client_configure(krb5_context context, const mpc_options *wanted,
                             client_contexts contexts)
{
    open_context *fresh = calloc(1, sizeof(*fresh)), **place;
    mpc_options copy = {0};
    served_realm *realm = NULL;

    if (fresh != NULL && copy_options(wanted, &copy)) {
        pthread_mutex_lock(&lock);
        realm = serve(&copy);
        place = find_context(context);
        if (realm != NULL && *place == NULL) {
            *place = fresh;
            fresh->context = context;
            fresh = NULL;
        }
        if (realm != NULL) {
            (*place)->realm = realm;
            any_context = contexts == CONTEXTS_ANY;
        }
        pthread_mutex_unlock(&lock);
    }
    free(fresh);
    free_options(&copy);
    return realm == NULL ? -1 : 0;
}

void process_client_forget(krb5_context context)
{
    open_context **place, *found;

    pthread_mutex_lock(&lock);
    place = find_context(context);
    found = *place;
    if (found != NULL)
        *place = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
}

/* The clients of another process are left alone: their threads are not here. */
static void forget_inherited(void)
{
    served_realm *realm;

    for (realm = realms; realm != NULL; realm = realm->next)
        realm->client = NULL;
    pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* Asking for the process id instead would be a system call for each operation. */
static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork, forget_inherited);
}

mpc_client *process_client_get(krb5_context context, char **error)
{
    static pthread_once_t watched = PTHREAD_ONCE_INIT;
    mpc_client *result = NULL;
    served_realm *realm;

    *error = NULL;
    pthread_once(&watched, watch_forks);
    pthread_mutex_lock(&lock);
    realm = realm_of(context);
    if (realm != NULL && realm->client == NULL) {
        realm->options.names_realm = realms->next != NULL;
        realm->client = mpc_client_start(&realm->options, error);
    }
    if (realm != NULL)
        result = realm->client;
    else if (realms != NULL)
        *error = strdup("the key is used by a realm that has no MPC servers in this process");
    pthread_mutex_unlock(&lock);
    return result;
}

kdc_metrics *process_client_metrics(krb5_context context)
{
    const served_realm *realm;
    kdc_metrics *metrics = NULL;

    pthread_mutex_lock(&lock);
    realm = realm_of(context);
    if (realm != NULL)
        metrics = realm->options.metrics;
    pthread_mutex_unlock(&lock);
    return metrics;
}

void process_client_stop(void)
{
    served_realm *stopped, *realm;
    open_context *contexts, *next;

    pthread_mutex_lock(&lock);
    stopped = realms;
    contexts = opened;
    realms = NULL;
    opened = NULL;
    pthread_mutex_unlock(&lock);
    for (; contexts != NULL; contexts = next) {
        next = contexts->next;
        free(contexts);
    }
    while ((realm = stopped) != NULL) {
        stopped = realm->next;
        if (realm->client != NULL)
            mpc_client_stop(realm->client); /* logs through its own copy of the log function */
        free_options(&realm->options);
        free(realm);
    }
}

void process_client_log(krb5_context context, int priority, const char *text)
{
    char line[1200];
    const served_realm *realm;
    mpc_log_function log = NULL;

    pthread_mutex_lock(&lock);
    realm = realm_of(context);
    if (realm != NULL && realms->next != NULL) {
        snprintf(line, sizeof(line), "%s: %s", realm->options.realm, text);
        text = line;
    }
    realm = (realm != NULL) ? realm : realms;
    if (realm != NULL)
        log = realm->options.log;
    pthread_mutex_unlock(&lock);
    if (log != NULL)
        log(priority, text);
}
