// The AVX-512 kernels with products on AMX tiles.
#include <immintrin.h>

#include "kernels/kernel_table.h"

namespace decant::kernels {
namespace amx {

constexpr int64_t kStep = 32;       // of k in a tile of A or B
constexpr int64_t kTile = 16 * 32;  // bf16 in a tile

/// Palette 1: eight tiles of 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void enter() {
  static const TileConfig config;
  _tile_loadconfig(&config);
}

void leave() { _tile_release(); }

/// The upper halves of the words are the bf16 nearest to `v`, ties away from zero; what is left of `v` stays
/// in it.
inline __m512i take_piece(__m512& v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i piece =
      _mm512_and_si512(_mm512_add_epi32(bits, _mm512_set1_epi32(0x8000)), _mm512_set1_epi32(-0x10000));
  v = _mm512_sub_ps(v, _mm512_castsi512_ps(piece));
  return piece;
}

/// Watches for what has no pieces: infinities, NaNs, and what rounds to infinity.
class Range {
 public:
  void see(__m512 v) {
    const __m512i size = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff));
    largest_ = _mm512_max_epu32(largest_, size);
  }
  bool fits() const { return _mm512_reduce_max_epu32(largest_) < 0x7f7f8000u; }

 private:
  __m512i largest_ = _mm512_setzero_si512();
};

/// bf16 of `even` and `odd` side by side.
inline __m512i interleave(__m512i even, __m512i odd) {
  return _mm512_or_si512(_mm512_srli_epi32(even, 16), odd);
}

/// bf16 of `low`, then those of `high`.
inline __m512i concatenate(__m512i low, __m512i high) {
  const __m512i index = _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33, 31,
                                         29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(low, index, high);
}

inline __mmask16 first(int64_t n) {
  return n >= 16 ? static_cast<__mmask16>(0xffff) : n <= 0 ? 0 : static_cast<__mmask16>((1u << n) - 1u);
}

struct F32 {
  static constexpr int kPieces = 3, kBytes = 4;
  static constexpr bool kWhole = false;  // whether an element is one piece as it is
  static __m512 load(const void* p, int64_t i, __mmask16 m) {
    return _mm512_maskz_loadu_ps(m, static_cast<const float*>(p) + i);
  }
};
/// f32 rounded to bf16.
struct F32Once : F32 {
  static constexpr int kPieces = 1;
};
struct F16 {
  static constexpr int kPieces = 2, kBytes = 2;
  static constexpr bool kWhole = false;
  static __m512 load(const void* p, int64_t i, __mmask16 m) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, static_cast<const uint16_t*>(p) + i));
  }
};
struct Bf16 {
  static constexpr int kPieces = 1, kBytes = 2;
  static constexpr bool kWhole = true;
  static __m512 load(const void* p, int64_t i, __mmask16 m) {
    const __m256i bits = _mm256_maskz_loadu_epi16(m, static_cast<const uint16_t*>(p) + i);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

/// Row by row: [steps][pieces][16][32].
template <int Pieces>
bool pack_a(int64_t rows, int64_t k, const float* a, int64_t lda, uint16_t* packed) {
  Range range;
  for (int64_t x = 0; x < k; x += kStep, packed += Pieces * kTile) {
    for (int64_t r = 0; r < 16; ++r) {
      const bool some = r < rows;
      __m512 low = some ? F32::load(a, r * lda + x, first(k - x)) : _mm512_setzero_ps();
      __m512 high =
          some && k - x > 16 ? F32::load(a, r * lda + x + 16, first(k - x - 16)) : _mm512_setzero_ps();
      range.see(low);
      range.see(high);
      for (int p = 0; p < Pieces; ++p) {
        const __m512i l = take_piece(low), h = take_piece(high);
        _mm512_storeu_si512(packed + p * kTile + r * 32, concatenate(l, h));
      }
    }
  }
  return range.fits();
}

constexpr int64_t kAhead = 16;  // rows of B

/// Two rows of k become one row of a tile: [steps][pieces][2][16][16][2].
template <typename T>
bool pack_b_kn(int64_t k, int64_t n, const void* b, int64_t ldb, uint16_t* packed) {
  Range range;
  const int64_t padded = (k + kStep - 1) / kStep * kStep;
  for (int64_t x = 0; x < padded; x += 2) {
    const char* const ahead = static_cast<const char*>(b) + (x + kAhead) * ldb * T::kBytes;
    for (int64_t line = 0; line < 32 * T::kBytes; line += 64) {
      _mm_prefetch(ahead + line, _MM_HINT_T0);
      _mm_prefetch(ahead + ldb * T::kBytes + line, _MM_HINT_T0);
    }
    uint16_t* const out = packed + x / kStep * T::kPieces * 2 * kTile + x % kStep * 16;
    for (int64_t half = 0; half < 2; ++half) {
      const __mmask16 m = first(n - 16 * half);
      __m512 even = T::load(b, x * ldb + 16 * half, x < k ? m : 0);
      __m512 odd = T::load(b, (x + 1) * ldb + 16 * half, x + 1 < k ? m : 0);
      range.see(even);
      range.see(odd);
      for (int p = 0; p < T::kPieces; ++p) {
        const __m512i e = T::kWhole ? _mm512_castps_si512(even) : take_piece(even);
        const __m512i o = T::kWhole ? _mm512_castps_si512(odd) : take_piece(odd);
        _mm512_storeu_si512(out + (p * 2 + half) * kTile, interleave(e, o));
      }
    }
  }
  return range.fits();
}

/// 16 x 16 transpose of words.
inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 2; ++j) {
      r[4 * i + 2 * j] = _mm512_unpacklo_epi64(t[4 * i + j], t[4 * i + 2 + j]);
      r[4 * i + 2 * j + 1] = _mm512_unpackhi_epi64(t[4 * i + j], t[4 * i + 2 + j]);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

/// As pack_b_kn, from rows of n.
template <typename T>
bool pack_b_nk(int64_t k, int64_t n, const void* b, int64_t ldb, uint16_t* packed) {
  Range range;
  for (int64_t x = 0; x < k; x += kStep, packed += T::kPieces * 2 * kTile) {
    for (int64_t half = 0; half < 2; ++half) {
      __m512i rows[T::kPieces][16];
#pragma GCC unroll 16
      for (int64_t i = 0; i < 16; ++i) {
        const int64_t line = 16 * half + i;
        const __mmask16 some = line < n ? static_cast<__mmask16>(0xffff) : 0;
        __m512 low = T::load(b, line * ldb + x, some & first(k - x));
        __m512 high = T::load(b, line * ldb + x + 16, some & first(k - x - 16));
        range.see(low);
        range.see(high);
#pragma GCC unroll 3
        for (int p = 0; p < T::kPieces; ++p) {
          const __m512i l = T::kWhole ? _mm512_castps_si512(low) : take_piece(low);
          const __m512i h = T::kWhole ? _mm512_castps_si512(high) : take_piece(high);
          rows[p][i] = concatenate(l, h);
        }
      }
      for (int p = 0; p < T::kPieces; ++p) {
        transpose(rows[p]);
        for (int64_t i = 0; i < 16; ++i)
          _mm512_storeu_si512(packed + (p * 2 + half) * kTile + i * 32, rows[p][i]);
      }
    }
  }
  return range.fits();
}

/// Tiles 0 to 3 are C, 4 and 5 rows of A, 6 and 7 columns of B.
template <int Rows>
inline void load_a(const PieceTileArgs& g, const uint16_t* a, int piece) {
  _tile_loadd(4, a + piece * kTile, 64);
  if constexpr (Rows == 2) _tile_loadd(5, a + g.a_stride + piece * kTile, 64);
}

inline void load_b(const uint16_t* b, int piece) {
  _tile_loadd(6, b + piece * 2 * kTile, 64);
  _tile_loadd(7, b + (piece * 2 + 1) * kTile, 64);
}

template <int Rows>
inline void multiply() {
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (Rows == 2) {
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

template <int Rows>
inline void begin_tiles(const PieceTileArgs& g) {
  const int64_t ldc = g.ldc * 4;
  float* const lower = g.c + 16 * g.ldc;
  if (g.accumulate) {
    _tile_loadd(0, g.c, ldc);
    _tile_loadd(1, g.c + 16, ldc);
    if constexpr (Rows == 2) {
      _tile_loadd(2, lower, ldc);
      _tile_loadd(3, lower + 16, ldc);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (Rows == 2) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
}

template <int Rows>
inline void end_tiles(const PieceTileArgs& g) {
  const int64_t ldc = g.ldc * 4;
  float* const lower = g.c + 16 * g.ldc;
  _tile_stored(0, g.c, ldc);
  _tile_stored(1, g.c + 16, ldc);
  if constexpr (Rows == 2) {
    _tile_stored(2, lower, ldc);
    _tile_stored(3, lower + 16, ldc);
  }
}

/// One piece of A times one of B.
template <int Rows>
void tile_once(const PieceTileArgs& g) {
  begin_tiles<Rows>(g);
  for (int64_t s = 0; s < g.steps; ++s) {
    load_a<Rows>(g, g.a + s * kTile, 0);
    load_b(g.b + s * 2 * kTile, 0);
    multiply<Rows>();
  }
  end_tiles<Rows>(g);
}

template <int Rows, int Pieces>
void tile(const PieceTileArgs& g) {
  begin_tiles<Rows>(g);
  const std::byte* fetch = g.fetch;
  for (int64_t s = 0; s < g.steps; ++s) {
    for (int64_t i = 0; i < g.fetch_rows; ++i, fetch += g.fetch_stride) {
      for (int64_t line = 0; line < g.fetch_bytes; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(fetch) + line, _MM_HINT_T1);
    }
    const uint16_t* const a = g.a + s * F32::kPieces * kTile;
    const uint16_t* const b = g.b + s * Pieces * 2 * kTile;
    // Pairs of pieces from 2^-16 of the product upwards; the order saves loads.
    if constexpr (Pieces == 3) {
      load_a<Rows>(g, a, 0);
      load_b(b, 2);
      multiply<Rows>();
    }
    if constexpr (Pieces >= 2) {
      if constexpr (Pieces == 2) load_a<Rows>(g, a, 0);
      load_b(b, 1);
      multiply<Rows>();
      load_a<Rows>(g, a, 1);
      multiply<Rows>();
    } else {
      load_a<Rows>(g, a, 1);
    }
    load_b(b, 0);
    multiply<Rows>();
    load_a<Rows>(g, a, 2);
    multiply<Rows>();
    load_a<Rows>(g, a, 0);
    multiply<Rows>();
  }
  end_tiles<Rows>(g);
}

template <typename T>
void fill(PieceKernels& k, int element) {
  k.pieces[element] = T::kPieces;
  k.pack_b_kn[element] = pack_b_kn<T>;
  k.pack_b_nk[element] = pack_b_nk<T>;
  k.tile[element][0] = tile<1, T::kPieces>;
  k.tile[element][1] = tile<2, T::kPieces>;
}

}  // namespace amx

const KernelTable* amx_table() {
  static const PieceKernels pieces = [] {
    PieceKernels k{};
    k.enter = amx::enter;
    k.leave = amx::leave;
    k.pack_a = amx::pack_a<amx::F32::kPieces>;
    k.pack_a_once = amx::pack_a<1>;
    k.pack_b_once = amx::pack_b_kn<amx::F32Once>;
    k.tile_once[0] = amx::tile_once<1>;
    k.tile_once[1] = amx::tile_once<2>;
    amx::fill<amx::F32>(k, kElementF32);
    amx::fill<amx::F16>(k, kElementF16);
    amx::fill<amx::Bf16>(k, kElementBf16);
    return k;
  }();
  static const KernelTable table = [] {
    KernelTable t = *avx512_table();
    t.name = "amx";
    t.pieces = &pieces;
    return t;
  }();
  return &table;
}

}  // namespace decant::kernels
