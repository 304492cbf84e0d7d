#pragma once

constexpr int bins = 64;
