#include "app/source.h"
#include "formats/huggingface/rope_parameters.h"

namespace decant::app {
namespace {

class View : public models::ConfigView {
 public:
  explicit View(huggingface::ModelConfig config) : config_(std::move(config)) {}

  bool has(std::string_view key) const override { return config_.has(key); }
  Result<int64_t> get_int(std::string_view key) const override { return config_.get_int(key); }
  Result<double> get_double(std::string_view key) const override { return config_.get_double(key); }
  Result<bool> get_bool(std::string_view key) const override { return config_.get_bool(key); }
  Result<std::string> get_string(std::string_view key) const override { return config_.get_string(key); }

  Result<models::RopeParameters> rope() const override {
    DECANT_ASSIGN(const huggingface::RopeParameters r, config_.rope());
    models::RopeParameters out;
    out.type = r.type;
    out.theta = r.theta;
    out.factor = r.factor;
    out.partial_rotary_factor = r.partial_rotary_factor;
    out.original_max_position_embeddings = r.original_max_position_embeddings;
    out.low_freq_factor = r.low_freq_factor;
    out.high_freq_factor = r.high_freq_factor;
    out.beta_fast = r.beta_fast;
    out.beta_slow = r.beta_slow;
    out.truncate = r.truncate;
    out.mscale = r.mscale;
    out.mscale_all_dim = r.mscale_all_dim;
    out.attention_factor = r.attention_factor;
    return out;
  }

 private:
  huggingface::ModelConfig config_;
};

}  // namespace

std::unique_ptr<models::ConfigView> config_view(const huggingface::ModelConfig& config) {
  return std::make_unique<View>(config);
}

}  // namespace decant::app
