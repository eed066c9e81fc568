#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/datum.h"
#include "ir/graph.h"
#include "kernels/kernels.h"

namespace decant::runtime {

/// One operand of a step: dense, row-major. Null data for an optional operand that is left out. Strings are
/// std::string objects.
struct Arg {
  DType dtype = DType::kUndefined;
  void* data = nullptr;
  const int64_t* dims = nullptr;
  int32_t rank = 0;
  int64_t elements = 0;
  /// Set for what is no tensor (a sequence, an optional without element); all but dtype is unset then.
  const ir::Datum* datum = nullptr;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  explicit operator bool() const { return dims != nullptr || data != nullptr || datum != nullptr; }
  std::span<const int64_t> shape() const { return {dims, static_cast<size_t>(rank)}; }
};

/// What one call of a kernel works on.
struct Call {
  std::span<const Arg> inputs;
  std::span<const Arg> outputs;
  std::span<std::byte> scratch;  ///< at least scratch_bytes() for these operands
  kernels::Context kernels;
};

/// A node compiled for its dtypes and attributes; sizes come with each call. run() does not allocate on
/// success and may be called by one thread at a time.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Scratch for operands of these sizes (data pointers are not set yet).
  virtual size_t scratch_bytes(std::span<const Arg> inputs, std::span<const Arg> outputs, int threads) const {
    return 0;
  }
  virtual Status run(const Call& call) = 0;
};

/// Makes the kernel of a node, or null when this op's fast kernel does not cover the node's dtypes or form:
/// the reference kernel runs it then. The node outlives the kernel.
using KernelFactory = std::unique_ptr<Kernel> (*)(const ir::Node& node);

/// A fast implementation of an op. `DECANT_KERNEL(MatMul) { return {"MatMul", "", &make}; }` at the start of
/// a line in runtime/ops/<op>.cc, inside namespace decant::runtime.
struct KernelDef {
  std::string_view op;
  std::string_view domain;
  KernelFactory make;
};
#define DECANT_KERNEL(id)         \
  KernelDef decant_kernel_##id(); \
  KernelDef decant_kernel_##id()

/// The fast kernel of a node, or null.
std::unique_ptr<Kernel> make_kernel(const ir::Node& node);

/// A kernel from a callable `Status(const Call&)`, for ops that need no scratch and no state.
template <typename F>
std::unique_ptr<Kernel> kernel_of(F function) {
  class Wrapped final : public Kernel {
   public:
    explicit Wrapped(F f) : f_(std::move(f)) {}
    Status run(const Call& call) override { return f_(call); }

   private:
    F f_;
  };
  return std::make_unique<Wrapped>(std::move(function));
}

}  // namespace decant::runtime
