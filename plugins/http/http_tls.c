/* SPDX-License-Identifier: MIT */
#include "http_tls.h"

#include <string.h>

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
