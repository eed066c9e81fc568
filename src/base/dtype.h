#pragma once

#include "decant/dtype.h"
