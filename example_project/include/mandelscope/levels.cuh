// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mandelscope {

// The levels of the histogram. One block of this many threads handles all of them.
constexpr int LEVELS = 256;

// Where an escape time falls on the scale from 0 to LEVELS.
__device__ __forceinline__ int level_of(float position)
{
    const int level = static_cast<int>(position);
    return level < LEVELS ? level : LEVELS - 1;
}

}  // namespace mandelscope
