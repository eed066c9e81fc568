#include "formats/onnx/wire.h"

#include <fmt/format.h>
#include <protozero/varint.hpp>

namespace decant::onnx {

bool is_clean_text(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == 0) return false;
    if (c < 0x80) {
      ++i;
      continue;
    }
    const size_t more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
    if (c < 0xc2 || c > 0xf4 || text.size() - i <= more) return false;
    for (size_t k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    const auto second = static_cast<unsigned char>(text[i + 1]);
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
        (c == 0xf4 && second > 0x8f)) {
      return false;
    }
    i += more + 1;
  }
  return true;
}

void WireReader::fail(std::string_view what) {
  if (!status_.ok()) return;
  status_ = invalid_model(fmt::format("byte {}: {}", at_ - context_->base, what));
  at_ = end_;
}

uint64_t WireReader::raw_varint() {
  const auto* p = reinterpret_cast<const char*>(at_);
  try {
    const uint64_t value = protozero::decode_varint(&p, reinterpret_cast<const char*>(end_));
    at_ = reinterpret_cast<const std::byte*>(p);
    return value;
  } catch (const std::exception&) {
    fail("a number that is cut short or longer than 10 bytes");
    return 0;
  }
}

bool WireReader::next() {
  if (!status_.ok() || at_ == end_) return false;
  const uint64_t key = raw_varint();
  if (!status_.ok()) return false;
  field_ = static_cast<uint32_t>(key >> 3);
  wire_ = static_cast<uint32_t>(key & 7);
  if (key >> 32 || field_ == 0) {
    fail("a field without a valid number; this is no ONNX model");
  } else if (wire_ != 0 && wire_ != 1 && wire_ != 2 && wire_ != 5) {
    fail(fmt::format("field {} has the unsupported wire type {}", field_, wire_));
  }
  return status_.ok();
}

bool WireReader::expect(uint32_t wire) {
  if (!status_.ok()) return false;
  if (wire_ != wire) {
    fail(fmt::format("field {} has wire type {}, expected {}", field_, wire_, wire));
    return false;
  }
  return true;
}

bool WireReader::take(void* out, size_t size) {
  if (static_cast<size_t>(end_ - at_) < size) {
    fail(fmt::format("field {} is cut short", field_));
    return false;
  }
  std::memcpy(out, at_, size);
  at_ += size;
  return true;
}

uint64_t WireReader::varint() { return expect(0) ? raw_varint() : 0; }

float WireReader::float32() {
  float value = 0;
  if (expect(5)) take(&value, sizeof value);
  return value;
}

double WireReader::float64() {
  double value = 0;
  if (expect(1)) take(&value, sizeof value);
  return value;
}

std::span<const std::byte> WireReader::bytes() {
  if (!expect(2)) return {};
  const uint64_t length = raw_varint();
  if (!status_.ok()) return {};
  if (length > static_cast<uint64_t>(end_ - at_)) {
    fail(fmt::format("field {} declares {} bytes, {} are left; the file is truncated or damaged", field_,
                     length, end_ - at_));
    return {};
  }
  const std::span<const std::byte> view(at_, static_cast<size_t>(length));
  at_ += length;
  return view;
}

std::string_view WireReader::string() {
  const auto view = bytes();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

std::string_view WireReader::name() {
  const std::string_view text = string();
  if (!is_clean_text(text)) fail(fmt::format("field {} is a name with a NUL byte or bad UTF-8", field_));
  return status_.ok() ? text : std::string_view();
}

void WireReader::varints(std::vector<int64_t>& out) {
  if (wire_ == 0) {
    out.push_back(int64());
    return;
  }
  const auto view = bytes();
  const auto* p = reinterpret_cast<const char*>(view.data());
  const auto* end = p + view.size();
  try {
    while (p != end) out.push_back(static_cast<int64_t>(protozero::decode_varint(&p, end)));
  } catch (const std::exception&) {
    fail(fmt::format("field {} holds a number that is cut short or longer than 10 bytes", field_));
  }
}

void WireReader::floats(std::vector<float>& out) {
  if (wire_ == 5) {
    out.push_back(float32());
    return;
  }
  const auto view = bytes();
  if (view.size() % sizeof(float)) fail(fmt::format("field {} holds no whole number of floats", field_));
  if (!status_.ok() || view.empty()) return;
  const size_t old = out.size();
  out.resize(old + view.size() / sizeof(float));
  std::memcpy(out.data() + old, view.data(), view.size());
}

void WireReader::doubles(std::vector<double>& out) {
  if (wire_ == 1) {
    out.push_back(float64());
    return;
  }
  const auto view = bytes();
  if (view.size() % sizeof(double)) fail(fmt::format("field {} holds no whole number of doubles", field_));
  if (!status_.ok() || view.empty()) return;
  const size_t old = out.size();
  out.resize(old + view.size() / sizeof(double));
  std::memcpy(out.data() + old, view.data(), view.size());
}

void WireReader::skip() {
  if (!status_.ok()) return;
  char scratch[8];
  switch (wire_) {
    case 0:
      raw_varint();
      break;
    case 1:
      take(scratch, 8);
      break;
    case 2:
      bytes();
      break;
    default:
      take(scratch, 4);
  }
}

void WireReader::count_object() {
  if (--context_->objects_left < 0) fail("more than 4 million nodes, attributes, names and tensors");
}

}  // namespace decant::onnx
