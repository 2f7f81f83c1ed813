/* SPDX-License-Identifier: MIT */
#include "http_tls.h"

#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>

#include "http_flood.h"

enum { READ_ANEW_S = 10 }; /* libcurl's own limit is a day */

SSL *http_tls_of(CURL *easy) {
  struct curl_tlssessioninfo *tls = NULL;
  bool openssl =
      curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK && tls && tls->backend == CURLSSLBACKEND_OPENSSL;
  return openssl ? tls->internals : NULL;
}

bool http_tls_is_http2(const SSL *tls) {
  const unsigned char *protocol = NULL;
  unsigned len = 0;
  if (tls)
    SSL_get0_alpn_selected(tls, &protocol, &len);
  return len == 2 && memcmp(protocol, "h2", 2) == 0;
}

const char *http_tls_authorities(void) {
  const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
  return http_flood_measurable() && curl->age >= CURLVERSION_SEVENTH ? curl->capath : NULL;
}

/* The store may be that of other connections too: OpenSSL takes the same folder once. */
bool http_tls_add_authorities(SSL_CTX *context, const char *folder) {
  return X509_STORE_load_path(SSL_CTX_get_cert_store(context), folder) == 1;
}

/* A file of one's own stands instead of the system's, and of its folder; the same for a proxy. */
bool http_tls_trust(CURL *easy, const char *ca_file, bool added) {
  bool ok = curl_easy_setopt(easy, CURLOPT_CA_CACHE_TIMEOUT, (long)READ_ANEW_S) == CURLE_OK;
  if (ca_file || added)
    ok = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL) == CURLE_OK && ok;
  if (ca_file)
    ok = curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file) == CURLE_OK &&
         curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, ca_file) == CURLE_OK && ok;
  return ok;
}

bool http_tls_is_http(SSL *tls, int fd) {
  char byte;
  if (!tls)
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  bool any = SSL_peek(tls, &byte, 1) > 0;
  ERR_clear_error();
  return any;
}
