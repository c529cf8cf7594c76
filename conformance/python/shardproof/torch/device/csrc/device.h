// The device: one a process, whatever index a program gives it (its local rank, say).
#pragma once

#include <c10/core/Device.h>

namespace shardproof::device {

constexpr auto kDeviceType = c10::DeviceType::PrivateUse1;

c10::Device CurrentDevice();  // of the calling thread
c10::DeviceIndex ExchangeDevice(c10::DeviceIndex index);
c10::DeviceIndex DeviceCount();
void SetDeviceCount(int count);

void RegisterHooks();  // once: pinned memory, generators, resizing of storages

}  // namespace shardproof::device
