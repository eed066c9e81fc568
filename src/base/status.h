#pragma once

#include "decant/status.h"

#define DECANT_CONCAT_INNER(a, b) a##b
#define DECANT_CONCAT(a, b) DECANT_CONCAT_INNER(a, b)

/// Returns from the enclosing function when `expr` (a Status) is an error.
#define DECANT_RETURN_IF_ERROR(expr)                                                           \
  do {                                                                                         \
    if (::decant::Status decant_status_ = (expr); !decant_status_.ok()) return decant_status_; \
  } while (false)

/// `DECANT_ASSIGN(auto x, f());`: unwraps a Result into a declaration or an lvalue, or returns its error.
#define DECANT_ASSIGN(lhs, expr) DECANT_ASSIGN_IMPL(DECANT_CONCAT(decant_result_, __LINE__), lhs, expr)
#define DECANT_ASSIGN_IMPL(tmp, lhs, expr)       \
  auto tmp = (expr);                             \
  if (!tmp.ok()) return std::move(tmp).status(); \
  lhs = *std::move(tmp)
