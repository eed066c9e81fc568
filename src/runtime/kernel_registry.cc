#include <map>
#include <utility>

#include "runtime/kernel.h"

namespace decant::runtime {

#define X(id) KernelDef decant_kernel_##id();
#include "kernel_list.inc"
#undef X

std::unique_ptr<Kernel> make_kernel(const ir::Node& node) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, KernelFactory> kernels = [] {
    std::map<Key, KernelFactory> map;
    auto add = [&](const KernelDef& k) { map.emplace(Key(k.domain, k.op), k.make); };
#define X(id) add(decant_kernel_##id());
#include "kernel_list.inc"
#undef X
    (void)add;
    return map;
  }();
  auto it = kernels.find(Key(node.domain(), node.op()));
  return it == kernels.end() ? nullptr : it->second(node);
}

}  // namespace decant::runtime
