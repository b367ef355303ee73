// SPDX-License-Identifier: Apache-2.0
// Measurements as JSON and as tables.
#ifndef MPC_SERVER_BENCH_PRINT_H_
#define MPC_SERVER_BENCH_PRINT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpc-server/bench/measure.h"

namespace mpckdc::bench {

using nlohmann::ordered_json;

// Machine and commit, to which a command adds its results.
ordered_json Heading(const std::string& command);
std::string HeadingText(bool brief);

ordered_json MeasurementJson(const Measurement& m);

// A table's head and one line of it.
std::string AesTableHead(bool with_floor);
std::string AesTableLine(const Measurement& m);
std::string HmacTableHead();
std::string HmacTableLine(const Measurement& m);
std::string ChannelTableHead();
std::string ChannelTableLine(const Measurement& m);

}  // namespace mpckdc::bench

#endif  // MPC_SERVER_BENCH_PRINT_H_
