#include "hub/digest.h"

#include <openssl/evp.h>

#include <memory>

#include "base/mapped_file.h"

namespace decant::hub {

Result<std::string> digest_of_file(const std::string& path, Digest digest) {
  DECANT_ASSIGN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  const EVP_MD* function = digest == Digest::kSha256 ? EVP_sha256() : EVP_sha1();
  std::string header;
  if (digest == Digest::kGitBlob) header = "blob " + std::to_string(bytes.size()) + '\0';
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!context || EVP_DigestInit_ex(context.get(), function, nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), header.data(), header.size()) != 1 ||
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), out, &size) != 1) {
    return internal_error("the digest of " + path + " cannot be computed");
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < size; ++i) {
    text += kHex[out[i] >> 4];
    text += kHex[out[i] & 15];
  }
  return text;
}

}  // namespace decant::hub
