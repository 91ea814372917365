#include "tests/support/certificates.hpp"

#include <stdexcept>
#include <vector>

#include "tests/support/process.hpp"

namespace outbox::test {
namespace {

// Elliptic curves: an RSA key takes openssl up to a second.
const std::vector<std::string> fresh_key{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                                         "-nodes"};

void openssl(std::vector<std::string> args, const std::vector<std::string>& more) {
  args.insert(args.end(), more.begin(), more.end());
  const Finished done = run_program("openssl", {.args = std::move(args)});
  if (done.status != ExitStatus{0, 0}) throw std::runtime_error("openssl failed: " + done.errors);
}

}  // namespace

CertificateAuthority::CertificateAuthority(const std::string& name)
    : own_{folder_ / "ca.crt", folder_ / "ca.key"} {
  openssl(
      {"req", "-x509", "-days", "1", "-subj", "/CN=" + name, "-keyout", own_.key, "-out", own_.certificate},
      fresh_key);
}

Certificate CertificateAuthority::issue(const std::string& name, const std::string& hosts) const {
  Certificate made{folder_ / (name + ".crt"), folder_ / (name + ".key")};
  const auto request = folder_ / (name + ".csr");
  const auto extensions = folder_ / (name + ".ext");
  write_file(extensions, "subjectAltName=" + hosts + "\n");
  openssl({"req", "-subj", "/CN=" + name, "-keyout", made.key, "-out", request}, fresh_key);
  openssl({"x509", "-req", "-in", request, "-CA", own_.certificate, "-CAkey", own_.key, "-CAcreateserial",
           "-days", "1", "-extfile", extensions, "-out", made.certificate},
          {});
  return made;
}

}  // namespace outbox::test
