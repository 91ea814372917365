#pragma once
// relay/admin/status_page.html, embedded at build time: one self-contained page that polls /status.

#include <string_view>

namespace outbox::relay {

extern const std::string_view status_page;

}  // namespace outbox::relay
