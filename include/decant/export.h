#pragma once

/// Marks what the shared library exports; everything else in it is hidden.
#if defined(__GNUC__) || defined(__clang__)
#define DECANT_EXPORT [[gnu::visibility("default")]]
#else
#define DECANT_EXPORT
#endif
