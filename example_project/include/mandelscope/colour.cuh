// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace mandelscope {

struct Colour {
    float red, green, blue;
};

// One channel of the palette: a cosine, squared because the picture is kept in linear light.
__device__ __forceinline__ float palette_channel(float t, float rate, float phase)
{
    const float wave = 0.5f - 0.5f * cosf(6.2831853f * (rate * t + phase));
    return wave * wave;
}

// Deep blue at 0, over white, to a warm amber at 1.
__device__ __forceinline__ Colour palette(float t)
{
    return {
        palette_channel(t, 0.60f, 0.03f),
        palette_channel(t, 0.70f, 0.06f),
        palette_channel(t, 0.85f, 0.15f),
    };
}

// Linear light from 0 to 1, encoded for a screen (IEC 61966-2-1, sRGB).
__device__ __forceinline__ float srgb_encode(float light)
{
    return light <= 0.0031308f ? 12.92f * light : 1.055f * powf(light, 1.0f / 2.4f) - 0.055f;
}

// The nearest of the 256 steps of a byte.
__device__ __forceinline__ unsigned char to_byte(float value)
{
    const float step = 255.0f * value + 0.5f;
    return static_cast<unsigned char>(step < 0.0f ? 0.0f : step > 255.0f ? 255.0f : step);
}

}  // namespace mandelscope
