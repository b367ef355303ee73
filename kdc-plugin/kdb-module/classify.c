/* SPDX-License-Identifier: Apache-2.0 */
#include "kdc-plugin/kdb-module/classify.h"

#include <fnmatch.h>
#include <string.h>

/* First components whose principals are services, with keys that must leave as keytabs. The same
 * list as in mpc-server/admin/names.cc. */
static const char *const service_names[] = {
    "HTTP", "afs", "cifs", "dns", "DNS", "ftp", "host", "imap", "kiprop", "ldap", "nfs",
    "pop",  "postgres", "rcmd", "smtp", "WELLKNOWN", NULL
};

enum { NAME_SIZE = 512 };

static int same_text(const krb5_data *data, const char *text)
{
    return data->length == strlen(text) && memcmp(data->data, text, data->length) == 0;
}

int component_is(krb5_const_principal p, int i, const char *text)
{
    return i < p->length && same_text(&p->data[i], text);
}

int is_master_principal(krb5_const_principal p)
{
    return p->length == 2 && component_is(p, 0, "K") && component_is(p, 1, "M");
}

int is_history_principal(krb5_const_principal p)
{
    return p->length == 2 && component_is(p, 0, "kadmin") && component_is(p, 1, "history");
}

static int is_kadmin(krb5_const_principal p)
{
    return p->length >= 2 && component_is(p, 0, "kadmin");
}

static int is_service_like(krb5_const_principal p)
{
    size_t i;

    if (p->length < 2)
        return 0;
    if (memchr(p->data[1].data, '.', p->data[1].length) != NULL)
        return 1; /* something on a host */
    for (i = 0; service_names[i] != NULL; i++)
        if (component_is(p, 0, service_names[i]))
            return 1;
    return 0;
}

/* The components with slashes between them, for patterns. Names that do not fit match nothing. */
static int plain_name(krb5_const_principal p, char name[NAME_SIZE])
{
    size_t used = 0;
    int i;

    for (i = 0; i < p->length; i++) {
        if (used + p->data[i].length + 2 > NAME_SIZE)
            return 0;
        if (i > 0)
            name[used++] = '/';
        memcpy(name + used, p->data[i].data, p->data[i].length);
        used += p->data[i].length;
    }
    name[used] = '\0';
    return 1;
}

static int matches(char *const *patterns, const char *name)
{
    for (; *patterns != NULL; patterns++)
        if (fnmatch(*patterns, name, 0) == 0)
            return 1;
    return 0;
}

static placement protected_place(const module_config *config, krb5_const_principal p)
{
    if (p->length != 2 || !component_is(p, 0, "krbtgt"))
        return PLACE_PROTECTED;
    return component_is(p, 1, config->realm) && same_text(&p->realm, config->realm)
               ? PLACE_DRAWN
               : PLACE_BY_ENCTYPE;
}

placement classify(const module_config *config, krb5_const_principal p)
{
    char name[NAME_SIZE];

    if (is_master_principal(p) || is_history_principal(p))
        return PLACE_LOCAL;
    if (plain_name(p, name)) {
        if (matches(config->protect, name))
            return protected_place(config, p);
        if (matches(config->local, name))
            return PLACE_LOCAL;
    }
    if (component_is(p, 0, "krbtgt"))
        return protected_place(config, p);
    if (is_kadmin(p))
        return PLACE_PROTECTED; /* kadmin/HOST too: the keys to all of administration */
    return is_service_like(p) ? PLACE_LOCAL : PLACE_PROTECTED;
}

int needs_gcm(krb5_const_principal p, placement place)
{
    return place == PLACE_DRAWN || (place == PLACE_PROTECTED && is_kadmin(p));
}

enum mpc_key_class key_class_of(krb5_const_principal p)
{
    if (p->length == 2 && component_is(p, 0, "krbtgt"))
        return MPC_CLASS_TGS;
    if (is_kadmin(p))
        return MPC_CLASS_SERVICE;
    return is_service_like(p) ? MPC_CLASS_SERVICE : MPC_CLASS_USER;
}
