// SPDX-License-Identifier: Apache-2.0
// The whole runtime. Typical use:
//
//   Program program;            Program::load(bytes, &program)
//   EthosUDriver driver(device); driver.open()
//   EthosUDelegate npu(driver);  Backend* backends[] = {&npu};
//   Environment environment{kernels, backends};
//   Requirements needs;         Method::require(program, 0, environment, &needs)
//   Method method;              method.load(program, 0, environment, memory)
//   method.setInput(0, bytes);  method.execute();  method.output(0)
//
// Nothing here allocates, throws or prints; every call that can fail returns a Status.
#pragma once

#include "carina/backend.hpp"
#include "carina/device.hpp"
#include "carina/ethosu_delegate.hpp"
#include "carina/ethosu_driver.hpp"
#include "carina/kernel.hpp"
#include "carina/method.hpp"
#include "carina/program.hpp"
#include "carina/status.hpp"
#include "carina/value.hpp"
