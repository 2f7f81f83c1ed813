/* SPDX-License-Identifier: MIT
 *
 * admin/page.c - the operator's page: static files from admin/web/, and the word to robots.
 *
 * The page holds no data; its script fetches /api/v1/stats like any other client.
 */
#include "admin/http.h"
#include "web.h"

void page_html(struct admin *admin, const struct request *request, struct response *response) {
  respond_static(response, "text/html; charset=utf-8", web_page, web_page_len);
}

void page_style(struct admin *admin, const struct request *request, struct response *response) {
  respond_static(response, "text/css; charset=utf-8", web_style, web_style_len);
}

void page_script(struct admin *admin, const struct request *request, struct response *response) {
  respond_static(response, "text/javascript; charset=utf-8", web_script, web_script_len);
}

void page_icon(struct admin *admin, const struct request *request, struct response *response) {
  respond_static(response, "image/svg+xml", web_icon, web_icon_len);
}

void page_robots(struct admin *admin, const struct request *request, struct response *response) {
  static const char text[] = "User-agent: *\nDisallow: /\n";
  respond_static(response, "text/plain; charset=utf-8", text, sizeof(text) - 1);
}
