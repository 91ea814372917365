#pragma once
// A throwaway certificate authority, for servers and clients that speak TLS in tests. Made by openssl; the
// files are gone with the object. Blocks; throws std::runtime_error where openssl refuses.

#include <filesystem>
#include <string>

#include "tests/support/temporary_directory.hpp"

namespace outbox::test {

struct Certificate {
  std::filesystem::path certificate;  ///< PEM
  std::filesystem::path key;          ///< PEM, without a passphrase
};

class CertificateAuthority {
 public:
  /// `name`: its common name, by which error messages tell two apart.
  explicit CertificateAuthority(const std::string& name = "throwaway CA");

  /// What clients and servers are told to trust.
  [[nodiscard]] const std::filesystem::path& certificate() const { return own_.certificate; }
  /// One for `name` (its common name, and of its files), valid for a day. `hosts`: whom it is for, as in
  /// "DNS:localhost,IP:127.0.0.1".
  [[nodiscard]] Certificate issue(const std::string& name, const std::string& hosts) const;

 private:
  TemporaryDirectory folder_{"outbox-ca"};
  Certificate own_;
};

}  // namespace outbox::test
