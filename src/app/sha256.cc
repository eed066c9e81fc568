#include "app/sha256.h"

#include <openssl/evp.h>

#include <filesystem>
#include <memory>

#include "base/mapped_file.h"

namespace decant::app {

Result<std::string> sha256_of_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return std::string();
  DECANT_ASSIGN(const auto file, MappedFile::open(path));
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  if (!context || EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), file->bytes().data(), file->bytes().size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), digest, &size) != 1) {
    return internal_error("SHA-256 of " + path + " failed");
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += kHex[digest[i] >> 4];
    out += kHex[digest[i] & 15];
  }
  return out;
}

}  // namespace decant::app
