#pragma once

#include "decant/run_options.h"
