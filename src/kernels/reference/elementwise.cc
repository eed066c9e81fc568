#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/reference.h"

namespace decant::kernels::reference {

double unary(UnaryOp op, double x) {
  switch (op) {
    case UnaryOp::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case UnaryOp::kSilu:
      return x / (1 + std::exp(-x));
    case UnaryOp::kTanh:
      return std::tanh(x);
    case UnaryOp::kExp:
      return std::exp(x);
    case UnaryOp::kGeluErf:
      return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
    case UnaryOp::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
    case UnaryOp::kErf:
      return std::erf(x);
    case UnaryOp::kRelu:
      return x < 0 ? 0 : x;
    case UnaryOp::kNeg:
      return -x;
    case UnaryOp::kAbs:
      return std::abs(x);
    case UnaryOp::kSqrt:
      return std::sqrt(x);
    case UnaryOp::kReciprocal:
      return 1 / x;
    case UnaryOp::kSquare:
      return x * x;
    case UnaryOp::kSin:
      return std::sin(x);
    case UnaryOp::kCos:
      return std::cos(x);
    case UnaryOp::kLog:
      return std::log(x);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double binary(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMin:
      return std::min(a, b);
    case BinaryOp::kMax:
      return std::max(a, b);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace decant::kernels::reference
