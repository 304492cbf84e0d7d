#pragma once

__device__ inline float weight(float t) { return t * t * (3.0f - 2.0f * t); }
