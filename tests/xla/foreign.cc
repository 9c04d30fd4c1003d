// Foreign functions by the headers that come with jaxlib: what other libraries are built from.
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Norm(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  auto sizes = x.dimensions();
  if (sizes.size() == 0) return ffi::Error::InvalidArgument("x must be an array");
  int64_t n = sizes.back(), rows = n == 0 ? 0 : x.element_count() / n;
  for (int64_t r = 0; r < rows; ++r) {
    const float* in = x.typed_data() + r * n;
    float* out = y->typed_data() + r * n;
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(in[i]) * in[i];
    float factor = 1.0f / std::sqrt(float(sum / n) + eps);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] * factor;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(Normalise, Norm,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

struct Counter {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int64_t n = 0;
};
ffi::TypeId Counter::id = {};
ffi::TypeInfo Counter::info = ffi::MakeTypeInfo<Counter>();
extern "C" void* CounterId() { return &Counter::id; }
extern "C" void* CounterInfo() { return &Counter::info; }

static ffi::ErrorOr<std::unique_ptr<Counter>> Begin() { return std::make_unique<Counter>(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(CounterBegin, Begin, ffi::Ffi::BindInstantiate());

static ffi::Error Next(Counter* counter, ffi::ResultBufferR0<ffi::S32> out) {
  out->typed_data()[0] = int32_t(counter->n++);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    CounterNext, Next,
    ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::BufferR0<ffi::S32>>());

static ffi::Error Kinds(ffi::ThreadPool pool, std::string_view text, bool flag, int32_t narrow,
                        int64_t whole, double real, ffi::Span<const int64_t> row,
                        ffi::Dictionary inside, ffi::RemainingArgs args,
                        ffi::ResultBuffer<ffi::F32> out) {
  std::mutex guard;
  std::condition_variable done;
  int left = 10, sum = 0;
  for (int k = 0; k < 10; ++k) {
    pool.Schedule([&, k] {
      std::lock_guard<std::mutex> held(guard);
      sum += k;
      if (--left == 0) done.notify_all();
    });
  }
  {
    std::unique_lock<std::mutex> held(guard);
    done.wait(held, [&] { return left == 0; });
  }
  float total = 0;
  for (int64_t v : row) total += float(v);
  auto q = inside.get<float>("q");
  if (!q.has_value()) return q.error();
  float found[] = {float(text.size()), float(flag), float(narrow), float(whole), float(real),
                   total, *q, float(args.size()), float(sum)};
  for (int k = 0; k < 9; ++k) out->typed_data()[k] = found[k];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(AllKinds, Kinds,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ThreadPool>()
                                  .Attr<std::string_view>("text")
                                  .Attr<bool>("flag")
                                  .Attr<int32_t>("narrow")
                                  .Attr<int64_t>("whole")
                                  .Attr<double>("real")
                                  .Attr<ffi::Span<const int64_t>>("row")
                                  .Attr<ffi::Dictionary>("inside")
                                  .RemainingArgs()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error Scratch(ffi::ScratchAllocator memory, ffi::ResultBuffer<ffi::S32> out) {
  auto block = memory.Allocate(400, 16);
  if (!block.has_value()) return ffi::Error::Internal("no memory");
  auto* words = static_cast<int32_t*>(*block);
  for (int k = 0; k < 100; ++k) words[k] = k;
  for (int k = 0; k < 3; ++k) out->typed_data()[k] = words[33 * k];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    WithMemory, Scratch,
    ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Ret<ffi::Buffer<ffi::S32>>());
