// gathers.h: how is a gather carried out? When is said by the plan.
#pragma once
#include <cstdint>

namespace reference {

class Gathers {
 public:
  virtual ~Gathers() = default;
  // On the gather stream, behind what compute has been given: the weights that are sent were
  // installed, and the storage was allocated, on compute. first: since weights were installed.
  virtual void Launch(int32_t group, bool first) = 0;
  // The same, from the parts that Reshard has kept. Layer-wise, whole parameters are dealt: neither
  // is ever planned.
  virtual void LaunchParts(int32_t group) = 0;
  // Compute goes on when the gather has ended.
  virtual void Wait(int32_t group) = 0;
  // Frees the storage, behind what compute has been given.
  virtual void Release(int32_t group) = 0;
  // As Release, but keeps this rank's part.
  virtual void Reshard(int32_t group) = 0;
  virtual void Destroy() = 0;
};

}  // namespace reference
