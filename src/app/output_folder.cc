#include "app/output_folder.h"

namespace decant::app {

Status prepare_output(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return resource_error(folder.string() + ": cannot be created: " + error.message());
  // Whatever happens next, the folder must not look like a finished export.
  const std::filesystem::path manifest = folder / kManifestFile;
  std::filesystem::remove(manifest, error);
  if (error) return resource_error(manifest.string() + ": cannot be removed: " + error.message());
  return ok_status();
}

}  // namespace decant::app
