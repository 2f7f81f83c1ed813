/* SPDX-License-Identifier: MIT
 *
 * outbox/db_auth.c - see db_auth.h.
 *
 * A server chooses the login method, so whatever listens on the port could ask for one that sends the password as it
 * is. Only methods that prove the password are permitted. caching_sha2_password proves it too, until the server says
 * that it does not remember the user: then the password itself goes over TLS or a socket, or encrypted with the
 * server's key. Connector/C (3.3.20, and 3.4) never loads the key file that it is given, because it compares fread()'s
 * count of items with a count of bytes, and asks the server for a key instead. So that method is ours there.
 */
#include "outbox/db_auth.h"

#include <errmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "outbox/db_api.h"
#include "outbox/db_error.h"

static bool encrypted_or_local(const struct database_config *config) { return config->tls || config->socket; }

static bool check_key_file(const struct database_config *config, struct err *err) {
  const char *file = config->server_public_key_file;
  if (!file || access(file, R_OK) == 0)
    return true;
  return err_set(err, DB_E_PASSWORD, "database.server_public_key_file: %s cannot be read; %s", file,
                 db_error_cure(DB_E_PASSWORD));
}

#if DB_API_MARIADB

#include <mysql/plugin_auth.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#define METHOD "caching_sha2_password"
#define METHODS "mysql_native_password,client_ed25519,parsec," METHOD
enum { CHALLENGE = 20, DIGEST = 32, PASSWORD_MAX = 512, KEY_MAX = 1024 };
enum { SERVER_REMEMBERS = 3, SERVER_WANTS_PASSWORD = 4 }; /* its answers to our proof */

/* As in mysql/client_plugin.h, which cannot be included: Debian's package lacks a header that it needs. */
enum { AUTHENTICATION = 2, INTERFACE = 0x0100 };
struct client_plugin {
  int type;
  unsigned interface_version;
  const char *name, *author, *desc;
  unsigned version[3];
  const char *license;
  void *mysql_api;
  int (*init)(char *, size_t, int, va_list);
  int (*deinit)(void);
  int (*options)(const char *option, const void *);
  int (*authenticate_user)(MYSQL_PLUGIN_VIO *vio, MYSQL *mysql);
};

static bool sha256(const void *a, size_t a_len, const void *b, size_t b_len, uint8_t out[DIGEST]) {
  EVP_MD_CTX *md = EVP_MD_CTX_new();
  bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) && EVP_DigestUpdate(md, a, a_len) &&
            EVP_DigestUpdate(md, b, b_len) && EVP_DigestFinal_ex(md, out, NULL);
  EVP_MD_CTX_free(md);
  return ok;
}

/* SHA256(password) XOR SHA256(SHA256(SHA256(password)), challenge) */
static bool prove(const char *password, const uint8_t *challenge, uint8_t out[DIGEST]) {
  uint8_t once[DIGEST], twice[DIGEST], mask[DIGEST];
  if (!sha256(password, strlen(password), "", 0, once) || !sha256(once, DIGEST, "", 0, twice) ||
      !sha256(twice, DIGEST, challenge, CHALLENGE, mask))
    return false;
  for (int i = 0; i < DIGEST; i++)
    out[i] = once[i] ^ mask[i];
  return true;
}

static EVP_PKEY *read_key(const char *file) {
  FILE *in = fopen(file, "re");
  EVP_PKEY *key = in ? PEM_read_PUBKEY(in, NULL, NULL, NULL) : NULL;
  if (in)
    fclose(in);
  return key;
}

/* The password, mixed with the challenge, encrypted for the holder of the key; its length, 0 when that fails. */
static size_t encrypt(const char *file, const uint8_t *challenge, const char *password, uint8_t out[KEY_MAX]) {
  uint8_t mixed[PASSWORD_MAX];
  size_t len = strlen(password) + 1, out_len = KEY_MAX;
  EVP_PKEY *key = len <= sizeof mixed ? read_key(file) : NULL;
  EVP_PKEY_CTX *ctx = key ? EVP_PKEY_CTX_new(key, NULL) : NULL;
  for (size_t i = 0; ctx && i < len; i++)
    mixed[i] = (uint8_t)password[i] ^ challenge[i % CHALLENGE];
  bool ok = ctx && EVP_PKEY_encrypt_init(ctx) > 0 && EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_OAEP_PADDING) > 0 &&
            EVP_PKEY_get_size(key) <= KEY_MAX && EVP_PKEY_encrypt(ctx, out, &out_len, mixed, len) > 0;
  explicit_bzero(mixed, sizeof mixed);
  EVP_PKEY_CTX_free(ctx);
  EVP_PKEY_free(key);
  return ok ? out_len : 0;
}

/* The library's struct is all that it passes: what db_auth_prepare() set is read back from it. */
static int send_password(MYSQL_PLUGIN_VIO *vio, MYSQL *mysql, const uint8_t *challenge) {
  uint8_t encrypted[KEY_MAX];
  const char *file = NULL;
  unsigned protocol = MYSQL_PROTOCOL_TCP;
  (void)mysql_get_optionv(mysql, MYSQL_OPT_PROTOCOL, &protocol);
  if (protocol == MYSQL_PROTOCOL_SOCKET || mysql_get_ssl_cipher(mysql))
    return vio->write_packet(vio, (const uint8_t *)mysql->passwd, (int)strlen(mysql->passwd) + 1) ? CR_ERROR : CR_OK;
  (void)mysql_get_optionv(mysql, MYSQL_SERVER_PUBLIC_KEY, &file);
  size_t len = file ? encrypt(file, challenge, mysql->passwd, encrypted) : 0;
  if (len == 0)
    return CR_AUTH_PLUGIN_ERR;
  return vio->write_packet(vio, encrypted, (int)len) ? CR_ERROR : CR_OK;
}

static int authenticate(MYSQL_PLUGIN_VIO *vio, MYSQL *mysql) {
  uint8_t *packet, challenge[CHALLENGE], proof[DIGEST];
  if (vio->read_packet(vio, &packet) < CHALLENGE)
    return CR_ERROR;
  memcpy(challenge, packet, CHALLENGE);
  if (!mysql->passwd || !mysql->passwd[0])
    return vio->write_packet(vio, (const uint8_t *)"", 0) ? CR_ERROR : CR_OK;
  if (!prove(mysql->passwd, challenge, proof) || vio->write_packet(vio, proof, DIGEST))
    return CR_ERROR;
  int len = vio->read_packet(vio, &packet);
  if (len < 1)
    return CR_ERROR;
  if (len == 1 && *packet == SERVER_WANTS_PASSWORD)
    return send_password(vio, mysql, challenge);
  return len == 1 && *packet == SERVER_REMEMBERS ? CR_OK : CR_ERROR;
}

static int start(char *text, size_t cap, int count, va_list args) {
  (void)text, (void)cap, (void)count, (void)args;
  return 0;
}

bool db_auth_init(struct err *err) {
  static const struct client_plugin ours = {
      .type = AUTHENTICATION,
      .interface_version = INTERFACE,
      .name = METHOD,
      .author = "duebox",
      .desc = "caching_sha2_password with the server's key from a file",
      .version = {1, 0, 0},
      .license = "MIT",
      .init = start,
      .authenticate_user = authenticate,
  };
  MYSQL *mysql = mysql_init(NULL);
  bool ok = mysql && mysql_client_register_plugin(mysql, (struct st_mysql_client_plugin *)(uintptr_t)&ours);
  if (!ok)
    (void)err_set(err, DB_E_PASSWORD, "the MySQL client library does not take our login method (error %u)",
                  mysql ? mysql_errno(mysql) : (unsigned)CR_OUT_OF_MEMORY);
  if (mysql)
    mysql_close(mysql);
  return ok;
}

bool db_auth_prepare(MYSQL *mysql, const struct database_config *config, struct err *err) {
  mysql_options(mysql, MARIADB_OPT_RESTRICTED_AUTH, METHODS);
  if (config->server_public_key_file && !encrypted_or_local(config))
    mysql_options(mysql, MYSQL_SERVER_PUBLIC_KEY, config->server_public_key_file);
  return check_key_file(config, err);
}

#else

bool db_auth_init(struct err *err) {
  (void)err;
  return true;
}

/* This library sends no clear text unless asked to, and loads no method from a folder where there is none. But its
 * sha256_password takes any key that the server sends unless it has one: over TCP there must be a key, or TLS. */
bool db_auth_prepare(MYSQL *mysql, const struct database_config *config, struct err *err) {
  bool off = false;
  mysql_options(mysql, MYSQL_ENABLE_CLEARTEXT_PLUGIN, &off);
  mysql_options(mysql, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &off);
  mysql_options(mysql, MYSQL_PLUGIN_DIR, "/nonexistent");
  if (encrypted_or_local(config))
    return true;
  if (!config->server_public_key_file && config->password[0])
    return err_set(err, DB_E_PASSWORD, "database %s: any server could ask for the password; %s", config->host,
                   db_error_cure(DB_E_PASSWORD));
  mysql_options(mysql, MYSQL_SERVER_PUBLIC_KEY, config->server_public_key_file);
  return check_key_file(config, err);
}

#endif
