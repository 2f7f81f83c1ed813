/* SPDX-License-Identifier: MIT */
#include "http_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool http_policy_make(const struct http_options *options, struct http_policy *out) {
  size_t count = options->allow_networks.count;
  *out = (struct http_policy){
      .rule = {.allow_private = options->allow_private, .allow_plaintext = options->allow_plaintext}};
  if (count == 0)
    return true;
  out->networks = calloc(count, sizeof(*out->networks));
  if (!out->networks)
    return false;
  for (size_t i = 0; i < count; i++)
    if (http_network_parse(options->allow_networks.items[i], &out->networks[out->rule.network_count]))
      out->rule.network_count++;
  out->rule.networks = out->networks;
  return true;
}

void http_policy_free(struct http_policy *policy) {
  free(policy->networks);
  *policy = (struct http_policy){0};
}

bool http_policy_literal(const char *host, struct http_address *out) {
  char bare[HTTP_ADDRESS_TEXT];
  size_t len = strlen(host);
  if (len >= 2 && host[0] == '[' && host[len - 1] == ']') {
    host++;
    len -= 2;
  }
  len = strcspn(host, "%") < len ? strcspn(host, "%") : len; /* without the zone */
  if (len >= sizeof(bare))
    return false;
  memcpy(bare, host, len);
  bare[len] = '\0';
  return http_address_parse(bare, out);
}

bool http_policy_allows(const struct http_policy *policy, const struct http_address *address, bool plain,
                        const char *host, size_t host_len, char *why, size_t cap) {
  char text[HTTP_ADDRESS_TEXT];
  enum http_address_class cls = http_address_classify(address);
  bool inside = cls == HTTP_ADDRESS_LOOPBACK || cls == HTTP_ADDRESS_PRIVATE;
  http_address_print(address, text);
  switch (http_address_judge(&policy->rule, address, plain)) {
  case HTTP_ADDRESS_ALLOWED:
    return true;
  case HTTP_ADDRESS_PLAINTEXT:
    snprintf(why, cap,
             "%.*s is the %s address %s and would be called in plain text; use https://, or set allow_plaintext on the "
             "plugin instance",
             (int)host_len, host, http_address_class_name(cls), text);
    return false;
  case HTTP_ADDRESS_DENIED:
    break;
  }
  snprintf(why, cap,
           "%.*s is the %s address %s, which this instance refuses to call; if it is meant, set %sallow_networks: [%s] "
           "on the plugin instance",
           (int)host_len, host, http_address_class_name(cls), text, inside ? "allow_private: true or " : "", text);
  return false;
}
